// SPDX-License-Identifier: Apache-2.0
// Where does kiln keep code and commands that its next run trusts?
#include "project/own_cache.h"

#include <fmt/format.h>

#include "sys/access.h"

namespace kiln::project {

Result<sys::fs::path> own_cache_folder(sys::Files& files, const sys::Environment& env) {
  TRY(sys::fs::path folder, cache_folder(env));
  CHECK_OK(files.make_private_directory(folder));
  if (auto exposed = sys::exposure_of(folder, folder, sys::Above::Counts))
    return Error{Fault::Environment, fmt::format("cannot use the cache folder {}", folder.string()),
                 exposed->why, exposed->fix + "; or set XDG_CACHE_HOME to a folder that you own"};
  return folder;
}

}  // namespace kiln::project
