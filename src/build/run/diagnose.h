// SPDX-License-Identifier: Apache-2.0
// What does a compiler's log say went wrong, in kiln's form?
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "build/plan/step.h"

namespace kiln::build {

// `log` is what the commands of `step` printed. The error's why is that text, with the source's
// name as the user wrote it; a message of kiln's own static assertions comes first.
Error diagnose(const Step& step, std::string_view log, std::string_view supported_archs);

// Does diagnose() need the list of what nvcc supports for this log? (It costs a process.)
bool names_unknown_arch(std::string_view log);

}  // namespace kiln::build
