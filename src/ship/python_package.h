// SPDX-License-Identifier: Apache-2.0
// Which Python files make an op library a package of its own, with ops, fakes, autograd and types,
// without kiln?
//
//   my_ext/__init__.py   the author's own, or one that takes all of _ops
//   my_ext/_ops.py       loads libmy_ext.so; _ops.pyi has its types
//   my_ext/_kiln/        what _ops needs of kiln's package, copied
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ship/op_facts.h"
#include "ship/zip.h"
#include "sys/files.h"

namespace kiln::ship {

std::string ops_module(const LibraryFacts& library);
std::string ops_stub(const LibraryFacts& library);
std::string init_module(const LibraryFacts& library, const std::string& description,
                        const std::string& version);

// For `pip install -e`: the ops are built when they are imported, from the project where it lies.
std::string editable_ops_module(const std::string& project);
std::string editable_init_module(const LibraryFacts& library, const std::string& author_folder,
                                 const std::string& description, const std::string& version);

// The parts of kiln's package, under `folder`. Fails where kiln's own package is not whole.
Result<std::vector<PackedFile>> copied_parts(const sys::Files& files,
                                             const sys::fs::path& kiln_package,
                                             const std::string& folder);

}  // namespace kiln::ship
