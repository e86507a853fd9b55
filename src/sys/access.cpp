// SPDX-License-Identifier: Apache-2.0
// May this user write there?
#include "sys/access.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::sys {

fs::path nearest_existing(const Files& files, fs::path path) {
  while (path.has_relative_path() && !files.state(path).exists) path = path.parent_path();
  return path;
}

Status may_write(const Files& files, const fs::path& directory) {
  fs::path there = nearest_existing(files, directory);
  if (!files.state(there).is_directory) return disk_error("cannot write to", directory, ENOTDIR);
  if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return disk_error("cannot write to", directory, errno);
  return {};
}

}  // namespace kiln::sys
