// SPDX-License-Identifier: Apache-2.0
// Which files would the dynamic loader map for a library, and why each? ld.so(8): RPATH,
// LD_LIBRARY_PATH, RUNPATH, the cache of ldconfig, the system's folders.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "binary/symbols.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/mapped_file.h"

namespace kiln::inspect {

struct LoadedLibrary {
  std::string name;           // as NEEDED says
  sys::fs::path path;         // empty: not found
  std::string how;            // "RUNPATH $ORIGIN/../lib", "ld.so.cache", ...
  bool by_loader = true;      // false: only the folders that were given besides find it
  int parent = -1;            // who asked for it first
  std::vector<int> children;  // whom it asks for, by index
  std::string member;   // of the wheel that is looked at, which brings it; empty: it is on the disk
  binary::Bytes bytes;  // empty: not found, or not readable
  std::shared_ptr<const void> keeper;  // of the bytes
};

// A file that will be on the disk once pip has installed the wheel.
struct ComingFile {
  std::string member;
  binary::Bytes bytes;
  std::shared_ptr<const void> keeper;
};

struct LoadWorld {
  const sys::Files& files;
  const sys::Environment& env;
  // Where libraries lie that a process may have mapped before: torch/lib of the installed torch.
  std::vector<sys::fs::path> beside;
  std::map<sys::fs::path, ComingFile> coming;  // by the path that it will have
};

// The library itself is 0; the others in the order in which the loader maps them.
Result<std::vector<LoadedLibrary>> load_tree(const sys::fs::path& library, binary::Bytes bytes,
                                             const LoadWorld& world);

// "libm.so.6" to paths, best first, of /etc/ld.so.cache; of a damaged cache what can be read.
std::map<std::string, std::vector<std::string>> parse_loader_cache(binary::Bytes cache);

}  // namespace kiln::inspect
