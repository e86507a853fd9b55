// SPDX-License-Identifier: Apache-2.0
// Which options had another name, or another meaning, in the release before? They work for one
// release more, with a note.
#pragma once

#include <string>
#include <string_view>

namespace kiln::cli {

struct Renamed {
  enum class Kind {
    Name,        // `now` is the same option under its new name
    Flag,        // `now` is a flag: the value of the old option is dropped
    Positional,  // the value is an argument without a name
    Meaning,     // the option stays; `note` says what is different
    Gone,        // nothing takes its place
  };
  std::string_view command;  // "" stands for all
  std::string_view old_name;
  Kind kind;
  std::string_view now;
  std::string_view note;                        // instead of the usual sentence
  bool (*applies)(std::string_view) = nullptr;  // to this value; null: to all
};

// The row for an option of a command, or null.
const Renamed* find_renamed(std::string_view command, std::string_view option,
                            std::string_view value);

// One line for whoever used it.
std::string note_of(const Renamed& row);

}  // namespace kiln::cli
