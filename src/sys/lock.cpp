// SPDX-License-Identifier: Apache-2.0
// How do two processes take turns?
#include "sys/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/process.h"

namespace kiln::sys {

Result<FileLock> FileLock::acquire(const fs::path& path, const std::function<void()>& on_busy,
                                   Users users) {
  // Children must not inherit it: a compiler's server process would hold it forever.
  const mode_t mode = users == Users::Owner ? 0600 : 0666;
  int fd =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0) return disk_error("cannot write", path, errno);
  FileLock lock(fd);
  if (users == Users::Owner) ::fchmod(fd, mode);  // an earlier one may have left it open to others
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) {
    if (on_busy) on_busy();
    InterruptScope scope;
    while (::flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return disk_error("cannot lock", path, errno);
      if (pending_interrupt()) return interrupted_error();
    }
    return lock;
  }
  return disk_error("cannot lock", path, errno);
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kiln::sys
