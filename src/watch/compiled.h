// SPDX-License-Identifier: Apache-2.0
// What does a process report about its compiled kernels? KILN_ENGINE_COMPILE=report: of an ordinary
// run, for a watched one compiles nothing.
#pragma once

namespace kiln::watch {

// Prints to stderr when the process ends, for each kernel that ran long enough to be compiled.
void report_compiled();

}  // namespace kiln::watch
