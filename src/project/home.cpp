// SPDX-License-Identifier: Apache-2.0
// Where are kiln's own headers, archive and templates?
#include "project/home.h"

namespace kiln::project {

Result<Home> find_home(const sys::Environment& env) {
  if (auto root = env.get("KILN_HOME")) return Home{*root};
  TRY(sys::fs::path executable, sys::own_executable());
  return Home{executable.parent_path().parent_path()};
}

Result<sys::fs::path> cache_folder(const sys::Environment& env) {
  // The XDG specification tells to ignore a relative path.
  if (auto cache = env.get("XDG_CACHE_HOME"); cache && cache->starts_with('/'))
    return sys::fs::path(*cache) / "kiln";
  if (auto home = env.get("HOME")) return sys::fs::path(*home) / ".cache" / "kiln";
  return Error{Fault::Environment, "cannot determine where to keep build results",
               "neither HOME nor XDG_CACHE_HOME is set", "set XDG_CACHE_HOME, or use --build-dir"};
}

}  // namespace kiln::project
