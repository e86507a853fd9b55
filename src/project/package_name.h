// SPDX-License-Identifier: Apache-2.0
// Which names and versions may a package have? What PyPI refuses is refused before anything is
// built.
#pragma once

#include <string>
#include <string_view>

namespace kiln::project {

// "my_ext" of "My.Ext": as file names have it.
std::string package_file_name(std::string_view name);

// Would PyPI take a project of this name? Why not, or nothing.
std::string name_refused(const std::string& name);
// The same, but only whether `import NAME` already means something else; "" if not.
std::string name_taken(const std::string& name);
// PEP 440.
bool is_version(std::string_view text);

}  // namespace kiln::project
