// SPDX-License-Identifier: Apache-2.0
// What does a kiln.toml say?
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/files.h"

namespace kiln::project {

struct Manifest {
  std::string name;  // the namespace of the ops; required
  std::vector<std::string>
      sources;       // relative to the folder of kiln.toml; <name>.cu if it names none
  std::string arch;  // "" or a list as --arch takes it
  std::vector<std::string> include;     // folders, relative to kiln.toml
  std::vector<std::string> defines;     // "K=V" or "K"
  std::vector<std::string> cuda_flags;  // for nvcc
  std::vector<std::string> cflags;      // for the host compiler on C++ sources
  std::vector<std::string> ldflags;
  bool fast_math = false;
  bool findings_fail = false;   // findings = "error": spills and serialised wgmma end a build
  Json tune = Json::object();   // kept as written, for `kiln tune`
  Json bench = Json::object();  // and `kiln bench`
};

inline constexpr std::string_view kManifestName = "kiln.toml";

// `path` is for messages: "path:line:column".
Result<Manifest> parse_manifest(std::string_view text, std::string_view path);
Result<Manifest> read_manifest(const sys::Files& files, const sys::fs::path& path);

}  // namespace kiln::project
