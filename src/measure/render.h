// SPDX-License-Identifier: Apache-2.0
// In which forms can a result be shown, and how are the options of a run read from JSON?
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "measure/run.h"

namespace kiln::measure {

// `kind` as abi.h lists them; `value` is a result or an array of results.
Result<std::string> render(std::string_view kind, const Json& value);

// The options of abi.h; what is missing keeps its default. An unknown name is a usage error.
Result<RunOptions> run_options(const Json& options);

}  // namespace kiln::measure
