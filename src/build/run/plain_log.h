// SPDX-License-Identifier: Apache-2.0
// What does the author of a kernel need of a compiler's log? Compilers show macros expanded and
// templates from the inside out: one wrong name in KILN_OP is forty lines of kiln's headers. Here
// each such error becomes one message at the line that was written; everything else stays as the
// compiler printed it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

// Where the compiled source is, and what it says.
struct SourcePlace {
  std::string source;                                        // absolute
  std::string shown;                                         // as the user wrote it
  std::function<std::string(const std::string& file)> read;  // "" for what cannot be read
};

struct PlainLog {
  std::string text;      // errors at the user's lines, paths as the user wrote them
  bool located = false;  // an error names a file
  // Where all that is wrong is one mistake about kiln's macros and types: "add.cu(4): error:
  // KILN_OP: ..." and what to do about it.
  std::string why, fix;
};

PlainLog plain_log(std::string_view log, const SourcePlace& place);

// The warnings of a step that succeeded, one text each. What was said before about the same line is
// left out, by `said`: two compilers look at every line, one of them for each architecture.
std::vector<std::string> plain_warnings(std::string_view log, const SourcePlace& place,
                                        std::set<std::string>& said);

}  // namespace kiln::build
