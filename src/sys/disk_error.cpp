// SPDX-License-Identifier: Apache-2.0
// What does a person do about a call on a path that failed?
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "sys/files.h"

namespace kiln::sys {

Error disk_error(std::string_view what, const fs::path& path, int error_number) {
  Error error{Fault::Environment, fmt::format("{} {}", what, path.string()),
              std::strerror(error_number), ""};
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      error.fix =
          "free some space there, or choose another folder with --build-dir or XDG_CACHE_HOME";
      break;
    case EROFS:
    case EACCES:
    case EPERM:
      error.fix = "make it writable, or choose another folder with --build-dir or XDG_CACHE_HOME";
      if (what == "cannot read") error.fix = "make it readable";
      break;
    case ENOENT:
      error.fault = Fault::Usage;
      error.why = "there is no such file or folder";
      error.fix = "check the path";
      break;
    case ENOTDIR:
      error.fault = Fault::Usage;
      error.why = "a part of the path is a file, not a folder";
      error.fix = "name a path below a folder";
      break;
    case EISDIR:
      error.fault = Fault::Usage;
      error.why = "it is a folder, not a file";
      error.fix = "name a file in it";
      break;
    case ENOMEM:
      error.why = "there is not enough memory for it";
      error.fix = "free some memory, or check whether the file should be that large";
      break;
    case EFBIG:
      error.fix = "raise the limit of file sizes: ulimit -f unlimited";
      break;
    case EMFILE:
    case ENFILE:
      error.fix = "raise the limit of open files: ulimit -n 4096";
      break;
    default:
      error.fix = "check the disk and the path, then run it again";
      break;
  }
  return error;
}

}  // namespace kiln::sys
