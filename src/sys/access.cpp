// SPDX-License-Identifier: Apache-2.0
// Who may write there?
#include "sys/access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::sys {

namespace {

Exposure writable(const fs::path& path) {
  return {
      path,
      fmt::format("other users can write to {}, and could inject code into what you build",
                  path.string()),
      fmt::format("chmod -R go-w '{}' if you trust what is in it, else remove it", path.string())};
}

Exposure owned(const fs::path& path, uid_t user) {
  return {path,
          fmt::format("user {} owns {}, and could inject code into what you build", user,
                      path.string()),
          "use a folder that you own"};
}

// One path as it is written, its links looked at and not followed.
std::optional<Exposure> look_along(const fs::path& folder, const fs::path& own, Above above) {
  fs::path at;
  bool closed = false;  // nobody else gets here
  bool is_own = false;
  for (const fs::path& part : folder) {
    at /= part;
    is_own |= at == own;
    struct stat s;
    if (::lstat(at.c_str(), &s) != 0) return std::nullopt;  // made later, by this user
    const bool trusted = s.st_uid == ::geteuid() || s.st_uid == 0;
    if (is_own && !trusted) return owned(at, s.st_uid);
    if (S_ISLNK(s.st_mode)) {
      closed = false;
      continue;
    }
    if (is_own && !closed && (s.st_mode & (S_IWGRP | S_IWOTH))) return writable(at);
    if (is_own || above == Above::Counts)
      closed |= trusted && (s.st_mode & (S_IXGRP | S_IXOTH)) == 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Exposure> exposure_of(const fs::path& folder, const fs::path& own, Above above) {
  const fs::path absolute = fs::absolute(folder).lexically_normal(),
                 top = fs::absolute(own).lexically_normal();
  if (auto found = look_along(absolute, top, above)) return found;
  std::error_code unknown;
  const fs::path real = fs::weakly_canonical(absolute, unknown),
                 real_top = fs::weakly_canonical(top, unknown);
  if (unknown || real == absolute) return std::nullopt;
  return look_along(real, real_top, above);
}

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
