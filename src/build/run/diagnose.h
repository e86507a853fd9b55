// SPDX-License-Identifier: Apache-2.0
// What does a compiler's log say went wrong, in kiln's form?
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "build/plan/step.h"

namespace kiln::build {

// The text of a file, "" for one that cannot be read: messages quote the line that was written.
using ReadFileText = std::function<std::string(const std::string& path)>;

// `log` is what the commands of `step` printed. The error's why is that text, with mistakes about
// kiln's macros said in a line and paths as the user wrote them (build/run/plain_log.h); `whole`:
// all of it as it was printed.
Error diagnose(const Step& step, std::string_view log, std::string_view supported_archs,
               const ReadFileText& read = {}, bool whole = false);

// Does diagnose() need the list of what nvcc supports for this log? (It costs a process.)
// The log without what compilers repeat of the source: its lines below their messages, and texts
// that the source gives to them. A sign in those says nothing about the machine.
std::string said_by_compilers(std::string_view log);

bool names_unknown_arch(std::string_view log);

}  // namespace kiln::build
