// SPDX-License-Identifier: Apache-2.0
// How does a text from outside reach a terminal? What a file, a server or a compiler says must not
// steer it.
#pragma once

#include <string>
#include <string_view>

namespace kiln::sys {

// Control characters and bytes that are not UTF-8 appear as \x1b, save newline, tab and the styles
// that kiln writes itself (bold, dim, colours, off).
std::string printable(std::string_view text);
// The same for JSON, which has an escape for each and writes those below 0x20 with it already.
std::string printable_json(std::string_view json);

}  // namespace kiln::sys
