// SPDX-License-Identifier: Apache-2.0
// What does a project's pyproject.toml say of the package that others install? PEP 621; defaults
// where there is none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/files.h"

namespace kiln::project {

struct Distribution {
  std::string name, version, description;
  std::string readme, readme_type;  // its text, "text/markdown"
  std::string license;              // an SPDX expression
  std::string requires_python = ">=3.9";
  std::vector<std::string> license_files;         // relative to the project
  std::vector<std::string> authors, maintainers;  // "Ada <ada@x.org>", "Ada" or "ada@x.org"
  std::vector<std::string> keywords, classifiers;
  std::vector<std::string> dependencies;
  std::vector<std::pair<std::string, std::vector<std::string>>> extras;
  std::vector<std::pair<std::string, std::string>> urls;
  std::string entry_points;  // as entry_points.txt
  bool from_file = false;    // else all of it is a default

  // "my_ext" of "My.Ext": as file names have it.
  std::string file_name() const;
};

inline constexpr const char* kPyproject = "pyproject.toml";

// `ops` is the name in kiln.toml.
Result<Distribution> read_distribution(const sys::Files& files, const sys::fs::path& folder,
                                       const std::string& ops);

}  // namespace kiln::project
