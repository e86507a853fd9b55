// SPDX-License-Identifier: Apache-2.0
// What is common to every page that kiln writes? One file, no network, light and dark by the
// reader's system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace kiln::report {

// For text and attribute values of HTML and SVG alike. Bytes that are not UTF-8 become U+FFFD, and
// control characters blanks: XML allows neither, whatever a section or a kernel is called.
std::string escape(std::string_view text);

// JSON for a script element, which ends at the first "</" and changes its rules at "<!--".
std::string embedded(const Json& value);

// At most `characters` of it; what is longer ends in an ellipsis. Never cuts a character in two.
std::string shortened(std::string_view text, size_t characters);

struct PageParts {
  std::string title;
  std::string body;  // HTML
  // What this page has besides the common look; may be empty.
  std::string_view style = {}, script = {};
  std::string header = {};  // HTML above the body, across the whole window; may be empty
  Json data = nullptr;      // for the script, in the element "data"; null: none
};
std::string page(const PageParts& parts);

// <table>; the first row is the head. Cells are HTML. `columns` has a letter for each: "t" text,
// "n" a number; the first is text and the others are numbers where it says nothing. A `kind` of
// "sortable" lets readers sort by a column: by the numbers its cells begin with, or by data-value
// of an element in a cell.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view columns = "",
                  std::string_view kind = "");

}  // namespace kiln::report
