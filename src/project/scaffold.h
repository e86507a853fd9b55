// SPDX-License-Identifier: Apache-2.0
// Which files does a new project begin with? Those of a template folder, with its name put in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/files.h"

namespace kiln::project {

struct ScaffoldFile {
  sys::fs::path path;  // relative to where it goes
  std::string content;
};

// NAME becomes `name` in paths and contents, "dot-x" the file ".x"; the templates' own licence line
// is left out.
Result<std::vector<ScaffoldFile>> read_scaffold(const sys::Files& files,
                                                const sys::fs::path& templates,
                                                std::string_view name);

// All or nothing where that is known before: an existing file is an error unless `force`.
Status write_scaffold(sys::Files& files, const sys::fs::path& folder,
                      const std::vector<ScaffoldFile>& scaffold, bool force);

}  // namespace kiln::project
