// SPDX-License-Identifier: Apache-2.0
// How are files read that others may have chosen or filled?
#include "sys/guarded_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

namespace kiln::sys {

namespace {

struct Opened {
  explicit Opened(int number) : fd(number) {}
  Opened(Opened&& other) noexcept : fd(std::exchange(other.fd, -1)), state(other.state) {}
  Opened& operator=(Opened&&) = delete;
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
  struct stat state {};
};

bool others_may_write(const struct stat& s) {
  return (s.st_mode & 0022) != 0 || (s.st_uid != ::geteuid() && s.st_uid != 0);
}

// A descriptor of a regular file that is not a link, or why there is none. Looked at before it is
// opened, because opening a device can have effects; again afterwards, because it may be another
// one by then.
Result<Opened> open_regular(const fs::path& path) {
  const auto refused = [&](const struct stat& s) {
    const char* why = S_ISLNK(s.st_mode)   ? "it is a link"
                      : S_ISDIR(s.st_mode) ? "it is a folder"
                                           : "it is a pipe or a device, not a file";
    return Error{Fault::Work, fmt::format("cannot read {}", path.string()), why, "name a file"};
  };
  struct stat s;
  if (::lstat(path.c_str(), &s) != 0) return disk_error("cannot read", path, errno);
  if (!S_ISREG(s.st_mode)) return refused(s);
  Opened file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0 || ::fstat(file.fd, &file.state) != 0)
    return disk_error("cannot read", path, errno);
  if (!S_ISREG(file.state.st_mode)) return refused(file.state);
  return file;
}

// As many bytes as it says it has: it may be growing.
Result<std::string> read_up_to(int fd, const fs::path& path, size_t bytes) {
  std::string content;
  try {
    content.resize(bytes);
  } catch (const std::exception&) {
    return disk_error("cannot read", path, ENOMEM);
  }
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t count = ::read(fd, content.data() + filled, bytes - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return disk_error("cannot read", path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  content.resize(filled);
  return content;
}

}  // namespace

Result<std::string> read_limited(const Files& files, const fs::path& path, const ReadLimit& limit) {
  const auto refused = [&](std::string why, const char* fix) {
    return Error{Fault::Environment, fmt::format("cannot use {}", path.string()), std::move(why),
                 fix};
  };
  const auto too_large = [&](uint64_t bytes) {
    return refused(fmt::format("it has {} bytes; the limit is {}", bytes, limit.max_bytes),
                   "remove it");
  };
  if (&files != &real_files()) {  // a disk in memory has neither pipes nor other users
    TRY(std::string content, files.read(path));
    return content.size() > limit.max_bytes ? Result<std::string>(too_large(content.size()))
                                            : std::move(content);
  }
  TRY(const Opened file, open_regular(path));
  if (limit.own_only && others_may_write(file.state))
    return refused("another user owns it or can write to it",
                   "remove it, or chmod go-w it if you trust its content");
  const auto bytes = static_cast<uint64_t>(file.state.st_size);
  if (bytes > limit.max_bytes) return too_large(bytes);
  return read_up_to(file.fd, path, bytes);
}

Result<std::string> read_beginning(const Files& files, const fs::path& path, size_t bytes) {
  if (&files != &real_files()) {
    TRY(const std::string content, files.read(path));
    return content.substr(0, bytes);
  }
  TRY(const Opened file, open_regular(path));
  return read_up_to(file.fd, path, bytes);
}

}  // namespace kiln::sys
