// SPDX-License-Identifier: Apache-2.0
// How does kiln touch the disk?
#include "sys/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/text.h"

namespace kiln::sys {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // close() reports what write() could not: a full network disk.
  int close_now() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

constexpr unsigned kRenameExchange = 2;  // RENAME_EXCHANGE of linux/fs.h

// Beside its goal, so that rename() stays within one file system.
fs::path temporary_name(const fs::path& goal) {
  static std::atomic<unsigned> counter{0};
  return goal.parent_path() / fmt::format(".{}.{}.{}.tmp", goal.filename().string(), ::getpid(), counter++);
}

int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

// errno, or 0. Over what is there without a moment in which neither is.
int take_place(const fs::path& temporary, const fs::path& goal, Durable durable) {
  auto exchange = [&] {
    return ::syscall(SYS_renameat2, AT_FDCWD, temporary.c_str(), AT_FDCWD, goal.c_str(), kRenameExchange) == 0;
  };
  if (durable == Durable::Scratch && exchange()) {
    if (::unlink(temporary.c_str()) == 0) return 0;
    exchange();  // a folder was there
  }
  return ::rename(temporary.c_str(), goal.c_str()) == 0 ? 0 : errno;
}

class RealFiles final : public Files {
 public:
  FileState state(const fs::path& path) const override {
    struct stat s;
    if (::stat(path.c_str(), &s) != 0) return {};
    return {.exists = true,
            .is_directory = S_ISDIR(s.st_mode),
            .is_executable = (s.st_mode & 0111) != 0 && S_ISREG(s.st_mode),
            .size_bytes = static_cast<uint64_t>(s.st_size),
            .mtime_ns = int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec,
            .ctime_ns = int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec,
            .inode = static_cast<uint64_t>(s.st_ino),
            .others_may_write = (s.st_mode & 0022) != 0 || (s.st_uid != ::geteuid() && s.st_uid != 0)};
  }

  Result<std::string> read(const fs::path& path) const override {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return disk_error("cannot read", path, errno);
    struct stat s;
    if (::fstat(file.get(), &s) != 0) return disk_error("cannot read", path, errno);
    if (S_ISDIR(s.st_mode)) return disk_error("cannot read", path, EISDIR);
    std::string content;
    content.resize(static_cast<size_t>(std::max<off_t>(s.st_size, 0)));
    size_t filled = 0;
    for (;;) {  // files in /proc say that they have no size
      if (filled == content.size()) content.resize(std::max<size_t>(4096, content.size() + content.size() / 2));
      ssize_t count = ::read(file.get(), content.data() + filled, content.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return disk_error("cannot read", path, errno);
      if (count == 0) break;
      filled += static_cast<size_t>(count);
    }
    content.resize(filled);
    return content;
  }

  std::vector<std::string> list(const fs::path& directory) const override {
    std::vector<std::string> names;
    DIR* stream = ::opendir(directory.c_str());
    if (!stream) return names;
    while (const dirent* entry = ::readdir(stream)) {
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(stream);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<fs::path> real_path(const fs::path& path) const override {
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (!resolved) return disk_error("cannot find", path, errno);
    fs::path out(resolved);
    ::free(resolved);
    return out;
  }

  uint64_t free_bytes(const fs::path& path) const override {
    struct statvfs disk;
    if (::statvfs(path.c_str(), &disk) != 0) return 0;
    return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  }

  Status write(const fs::path& path, std::string_view content, Durable durable) override {
    return write_with(path, content, durable, 0666);
  }

  Status write_executable(const fs::path& path, std::string_view content) override {
    return write_with(path, content, Durable::No, 0777);
  }

  Status write_with(const fs::path& path, std::string_view content, Durable durable, mode_t mode) {
    CHECK_OK(make_directories(path.parent_path()));
    fs::path temporary = temporary_name(path);
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0) return disk_error("cannot write", path, errno);
    int failed = write_all(file.get(), content);
    if (!failed && durable == Durable::Yes && ::fsync(file.get()) != 0) failed = errno;
    if (!failed && file.close_now() != 0) failed = errno;
    if (!failed) failed = take_place(temporary, path, durable);
    if (!failed) return {};
    ::unlink(temporary.c_str());
    return disk_error("cannot write", path, failed);
  }

  Status make_directories(const fs::path& directory) override {
    if (directory.empty() || state(directory).is_directory) return {};
    std::error_code error;
    fs::create_directories(directory, error);
    if (error && !state(directory).is_directory) return disk_error("cannot make the folder", directory, error.value());
    return {};
  }

  Status make_private_directory(const fs::path& directory) override {
    if (state(directory).is_directory) return {};
    CHECK_OK(make_directories(directory.parent_path()));
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
      return disk_error("cannot make the folder", directory, errno);
    return {};
  }

  void touch(const fs::path& path) override { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

  void set_mtime(const fs::path& path, int64_t mtime_ns) override {
    timespec time{static_cast<time_t>(mtime_ns / 1'000'000'000), static_cast<long>(mtime_ns % 1'000'000'000)};
    timespec both[2] = {time, time};
    ::utimensat(AT_FDCWD, path.c_str(), both, 0);
  }

  Status publish(const fs::path& from, const fs::path& to) override {
    CHECK_OK(make_directories(to.parent_path()));
    fs::path temporary = temporary_name(to);
    if (::link(from.c_str(), temporary.c_str()) != 0) return copy(from, to);
    // rename() of two names of one inode does nothing and leaves both.
    if (::rename(temporary.c_str(), to.c_str()) != 0) {
      int failed = errno;
      ::unlink(temporary.c_str());
      return disk_error("cannot write", to, failed);
    }
    ::unlink(temporary.c_str());
    return {};
  }

  Status copy(const fs::path& from, const fs::path& to) override {
    TRY(std::string content, read(from));
    bool executable = state(from).is_executable;
    CHECK_OK(make_directories(to.parent_path()));
    fs::path temporary = temporary_name(to);
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, executable ? 0777 : 0666));
    if (file.get() < 0) return disk_error("cannot write", to, errno);
    int failed = write_all(file.get(), content);
    if (!failed && file.close_now() != 0) failed = errno;
    if (!failed && ::rename(temporary.c_str(), to.c_str()) != 0) failed = errno;
    if (!failed) return {};
    ::unlink(temporary.c_str());
    return disk_error("cannot write", to, failed);
  }

  Status point_link(const fs::path& link, const fs::path& target) override {
    fs::path temporary = temporary_name(link);
    if (::symlink(target.c_str(), temporary.c_str()) != 0) return disk_error("cannot write", link, errno);
    if (::rename(temporary.c_str(), link.c_str()) == 0) return {};
    int failed = errno;
    ::unlink(temporary.c_str());
    return disk_error("cannot write", link, failed);
  }

  Status remove(const fs::path& path) override {
    // A process that was killed may have children that still write there or clean up behind themselves.
    std::error_code error;
    for (int tries = 0; tries < 100; tries++) {
      fs::remove_all(path, error);
      if (error != std::errc::no_such_file_or_directory && error != std::errc::directory_not_empty) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (error) return disk_error("cannot remove", path, error.value());
    return {};
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

Error disk_error(std::string_view what, const fs::path& path, int error_number) {
  Error error{Fault::Environment, fmt::format("{} {}", what, path.string()), std::strerror(error_number), ""};
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      error.fix = "free some space there, or choose another place with --build-dir or XDG_CACHE_HOME";
      break;
    case EROFS:
    case EACCES:
    case EPERM:
      error.fix = "make it writable, or choose another place with --build-dir or XDG_CACHE_HOME";
      if (what == "cannot read") error.fix = "make it readable for you";
      break;
    case ENOENT:
      error.why = "there is no such file or folder";
      error.fix = "correct the path, or make it first";
      break;
    case ENOTDIR:
      error.why = "a part of the path is a file, not a folder";
      error.fix = "name a path below a folder";
      break;
    case EISDIR:
      error.why = "it is a folder, not a file";
      error.fix = "name a file in it";
      break;
    case EMFILE:
    case ENFILE:
      error.fix = "raise the limit of open files: ulimit -n 4096";
      break;
    default:
      error.fix = "see that the disk is sound and the path as it should be, then run it again";
      break;
  }
  return error;
}

Result<fs::path> own_executable() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) return disk_error("cannot read", "/proc/self/exe", error.value());
  return path;
}

Result<fs::path> make_temporary_folder(std::string_view stem) {
  std::error_code none;
  fs::path top = fs::temp_directory_path(none);
  std::string name = ((none ? fs::path("/tmp") : top) / stem).string() + "-XXXXXX";
  if (!::mkdtemp(name.data())) return disk_error("cannot make", name, errno);
  return fs::path(name);
}

fs::path find_program(const Files& files, std::string_view name, std::string_view search_path) {
  if (name.empty()) return {};
  if (name.find('/') != std::string_view::npos) return files.state(name).is_executable ? fs::path(name) : fs::path();
  for (std::string_view directory : text::split(search_path, ':')) {
    if (directory.empty()) continue;
    fs::path candidate = fs::path(directory) / name;
    if (files.state(candidate).is_executable) return candidate;
  }
  return {};
}

}  // namespace kiln::sys
