// SPDX-License-Identifier: Apache-2.0
// Which messages does a compiler's log contain?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::build {

// One message of nvcc's front end, "add.cu(4): error: TEXT", or of gcc, "add.cu:4:7: error: TEXT",
// with the lines around it that belong to it. Lines that belong to none have one without a file.
struct Diagnostic {
  std::string file;
  int line = 0;      // 0: nvcc's "At end of source", without a file too
  std::string kind;  // "error", "warning #940-D"; empty: not a message
  std::string message;
  bool by_gcc = false;
  std::vector<std::string_view> before, after;
  std::string_view head;

  bool is_error() const { return kind.find("error") != std::string::npos; }
  // In one of kiln's headers, where no user looks.
  bool is_in_own_header() const;
  // In the user's file, about what one of kiln's macros became.
  bool is_in_own_macro() const;
};

using Place = std::pair<std::string, int>;  // file and line

// The summary lines at the end ("2 errors detected in ...") are left out.
std::vector<Diagnostic> diagnostics_in(std::string_view log);

// Of a diagnostic in a header of kiln: the first line on the way out that is the user's.
std::optional<Place> user_place(const Diagnostic& one);

}  // namespace kiln::build
