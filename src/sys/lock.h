// SPDX-License-Identifier: Apache-2.0
// How do two processes take turns? By flock on a file: the kernel frees it with its owner, so a
// dead one blocks nobody.
#pragma once

#include <functional>
#include <utility>

#include "base/result.h"
#include "sys/files.h"

namespace kiln::sys {

class FileLock {
 public:
  // Whoever may open the file can hold it forever.
  enum class Users { Umask, Owner };
  // Makes the file if it is not there. `on_busy` is called once if another process holds it. An
  // interrupt ends the wait.
  static Result<FileLock> acquire(const fs::path& path, const std::function<void()>& on_busy,
                                  Users users = Users::Umask);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kiln::sys
