// SPDX-License-Identifier: Apache-2.0
// How do `kiln setup` and `kiln doctor --fix` say what they will do, and then do it?
#pragma once

#include "cli/command.h"
#include "doctor/setup.h"

namespace kiln::cli {

Result<int> run_setup(const doctor::Facts& facts, const doctor::SetupOptions& options, bool dry_run,
                      const Context& context);

}  // namespace kiln::cli
