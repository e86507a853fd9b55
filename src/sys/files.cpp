// SPDX-License-Identifier: Apache-2.0
// How does kiln touch the disk?
#include "sys/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "sys/guarded_files.h"

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

// Next to its goal, so that rename() stays within one file system. The process's number alone would
// not do: in a container every run may have the same one, and what a killed run left behind would
// be in the way of all later ones.
fs::path temporary_name(const fs::path& goal) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) !=
      sizeof random) {  // early in a machine's start
    static std::atomic<uint64_t> counter{0};
    random =
        static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 1000 +
        counter++;
  }
  constexpr size_t kKeptOfName = 128;  // a name has 255 bytes at most
  return goal.parent_path() / fmt::format(".{}.{}.{:016x}.tmp",
                                          goal.filename().string().substr(0, kKeptOfName),
                                          ::getpid(), random);
}

// `make` makes something of that name: 0, or errno. The name is in `temporary`.
template <class Make>
int make_temporary(const fs::path& goal, fs::path& temporary, Make make) {
  int failed = EEXIST;
  for (int tries = 0; tries < 100 && failed == EEXIST; ++tries) {
    temporary = temporary_name(goal);
    failed = make(temporary);
  }
  return failed;
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

// Who may write: whoever the umask leaves, or this user alone.
enum class Writers { Umask, Owner };

mode_t mode_for(Writers writers, mode_t mode) {
  return writers == Writers::Umask ? mode : mode & ~mode_t{0022};
}

// errno, or 0.
int make_all(const fs::path& directory, Writers writers) {
  const auto is_directory = [&] {
    struct stat s;
    return ::stat(directory.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
  };
  if (directory.empty() || is_directory()) return 0;
  const auto make = [&] {
    return ::mkdir(directory.c_str(), mode_for(writers, 0777)) == 0 ? 0 : errno;
  };
  int failed = make();
  if (failed == ENOENT && directory.has_parent_path() && directory.parent_path() != directory) {
    if (int above = make_all(directory.parent_path(), writers)) return above;
    failed = make();
  }
  if (failed != EEXIST) return failed;
  return is_directory() ? 0 : ENOTDIR;  // made by another process meanwhile, or a file
}

// errno, or 0. Over what is there without a moment in which neither is.
int take_place(const fs::path& temporary, const fs::path& goal, Durable durable) {
  auto exchange = [&] {
    return ::syscall(SYS_renameat2, AT_FDCWD, temporary.c_str(), AT_FDCWD, goal.c_str(),
                     kRenameExchange) == 0;
  };
  if (durable == Durable::Scratch && exchange()) {
    if (::unlink(temporary.c_str()) == 0) return 0;
    exchange();  // a folder was there
  }
  return ::rename(temporary.c_str(), goal.c_str()) == 0 ? 0 : errno;
}

// errno, or 0. The mode last: a change of the owner takes bits away.
int take_rights(int fd, const struct stat& like) {
  struct stat now;
  if (::fstat(fd, &now) != 0) return errno;
  const bool same_owner = now.st_uid == like.st_uid && now.st_gid == like.st_gid;
  if (!same_owner && ::fchown(fd, like.st_uid, like.st_gid) != 0) return errno;
  return ::fchmod(fd, like.st_mode & 07777) == 0 ? 0 : errno;
}

// What has no end, or may never begin: "a device", "a pipe", "a socket". Nothing for regular files,
// for /dev/null, and for what the shell passes to this process: <(command), /dev/stdin.
const char* endless_kind(const fs::path& path, const struct stat& s) {
  if (S_ISREG(s.st_mode)) return nullptr;
  if (S_ISCHR(s.st_mode) && s.st_rdev == makedev(1, 3)) return nullptr;
  for (std::string_view own : {"/dev/fd/", "/dev/stdin", "/proc/self/fd/"})
    if (path.native().starts_with(own)) return nullptr;
  if (S_ISFIFO(s.st_mode)) return "a pipe";
  return S_ISSOCK(s.st_mode) ? "a socket" : "a device";
}

class RealFiles final : public Files {
 public:
  FileState state(const fs::path& path) const override {
    struct stat s;
    if (::stat(path.c_str(), &s) != 0) return {};
    return {
        .exists = true,
        .is_directory = S_ISDIR(s.st_mode),
        .is_executable = (s.st_mode & 0111) != 0 && S_ISREG(s.st_mode),
        .size_bytes = static_cast<uint64_t>(s.st_size),
        .mtime_ns = int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec,
        .ctime_ns = int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec,
        .inode = static_cast<uint64_t>(s.st_ino),
        .others_may_write = (s.st_mode & 0022) != 0 || (s.st_uid != ::geteuid() && s.st_uid != 0)};
  }

  Result<std::string> read(const fs::path& path) const override {
    // O_NONBLOCK: to open a pipe that nobody writes to would take forever.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return disk_error("cannot read", path, errno);
    struct stat s;
    if (::fstat(file.get(), &s) != 0) return disk_error("cannot read", path, errno);
    if (S_ISDIR(s.st_mode)) return disk_error("cannot read", path, EISDIR);
    if (const char* kind = endless_kind(path, s))
      return Error{Fault::Environment, fmt::format("cannot read {}", path.string()),
                   fmt::format("it is {}, not a regular file", kind), "name a regular file"};
    if (!S_ISREG(s.st_mode)) ::fcntl(file.get(), F_SETFL, 0);  // of this process: may take its time
    std::string content;
    try {
      content.resize(static_cast<size_t>(std::max<off_t>(s.st_size, 0)));
    } catch (const std::exception&) {  // a sparse file of a size that no machine has
      return disk_error("cannot read", path, ENOMEM);
    }
    size_t filled = 0;
    for (;;) {  // files in /proc say that they have no size
      if (filled == content.size())
        content.resize(std::max<size_t>(4096, content.size() + content.size() / 2));
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
    return write_with(path, content, durable, 0666, Writers::Umask);
  }

  Status write_executable(const fs::path& path, std::string_view content) override {
    return write_with(path, content, Durable::No, 0777, Writers::Umask);
  }

  // `like`: a file whose mode and owner the new one gets.
  Status write_with(const fs::path& path, std::string_view content, Durable durable, mode_t mode,
                    Writers writers, const struct stat* like = nullptr) {
    if (int failed = make_all(path.parent_path(), writers))
      return disk_error("cannot make the folder", path.parent_path(), failed);
    fs::path temporary;
    int fd = -1;
    if (int failed = make_temporary(path, temporary, [&](const fs::path& name) {
          fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      mode_for(writers, mode));
          return fd < 0 ? errno : 0;
        }))
      return disk_error("cannot write", path, failed);
    Descriptor file(fd);
    int failed = like ? take_rights(file.get(), *like) : 0;
    if (!failed) failed = write_all(file.get(), content);
    if (!failed && durable == Durable::Yes && ::fsync(file.get()) != 0) failed = errno;
    if (!failed && file.close_now() != 0) failed = errno;
    if (!failed) failed = take_place(temporary, path, durable);
    if (!failed) return {};
    ::unlink(temporary.c_str());
    return disk_error("cannot write", path, failed);
  }

  Status make_directories(const fs::path& directory) override {
    if (int failed = make_all(directory, Writers::Umask))
      return disk_error("cannot make the folder", directory, failed);
    return {};
  }

  Status make_private_directory(const fs::path& directory) override {
    if (state(directory).is_directory) return {};
    if (int failed = make_all(directory.parent_path(), Writers::Owner))
      return disk_error("cannot make the folder", directory.parent_path(), failed);
    if (::mkdir(directory.c_str(), 0700) != 0 && !state(directory).is_directory)
      return disk_error("cannot make the folder", directory, errno);
    return {};
  }

  void touch(const fs::path& path) override { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

  void set_mtime(const fs::path& path, int64_t mtime_ns) override {
    timespec time{static_cast<time_t>(mtime_ns / 1'000'000'000),
                  static_cast<long>(mtime_ns % 1'000'000'000)};
    timespec both[2] = {time, time};
    ::utimensat(AT_FDCWD, path.c_str(), both, 0);
  }

  Status publish(const fs::path& from, const fs::path& to) override {
    CHECK_OK(make_directories(to.parent_path()));
    fs::path temporary;
    if (make_temporary(to, temporary, [&](const fs::path& name) {
          return ::link(from.c_str(), name.c_str()) == 0 ? 0 : errno;
        }))
      return copy(from, to);
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
    return write_with(to, content, Durable::No, state(from).is_executable ? 0777 : 0666,
                      Writers::Umask);
  }

  Status point_link(const fs::path& link, const fs::path& target) override {
    fs::path temporary;
    if (int failed = make_temporary(link, temporary, [&](const fs::path& name) {
          return ::symlink(target.c_str(), name.c_str()) == 0 ? 0 : errno;
        }))
      return disk_error("cannot write", link, failed);
    if (::rename(temporary.c_str(), link.c_str()) == 0) return {};
    int failed = errno;
    ::unlink(temporary.c_str());
    return disk_error("cannot write", link, failed);
  }

  Status remove(const fs::path& path) override {
    // A process that was killed may have children that still write there or clean up behind
    // themselves.
    std::error_code error;
    for (int tries = 0; tries < 100; tries++) {
      fs::remove_all(path, error);
      if (error != std::errc::no_such_file_or_directory && error != std::errc::directory_not_empty)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (error) return disk_error("cannot remove", path, error.value());
    return {};
  }
};

RealFiles& the_real_ones() {
  static RealFiles files;
  return files;
}

}  // namespace

Files& real_files() { return the_real_ones(); }

Status write_protected(Files& files, const fs::path& path, std::string_view content,
                       Durable durable) {
  // A disk in memory has no other users.
  if (&files != &real_files()) return files.write(path, content, durable);
  return the_real_ones().write_with(path, content, durable, 0666, Writers::Owner);
}

Status rewrite(Files& files, const fs::path& path, std::string_view content) {
  if (&files != &real_files()) return files.write(path, content);
  TRY(const fs::path file, files.real_path(path));
  struct stat like;
  if (::stat(file.c_str(), &like) != 0) return disk_error("cannot write", path, errno);
  return the_real_ones().write_with(file, content, Durable::Yes, like.st_mode & 0777,
                                    Writers::Umask, &like);
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
  if (name.find('/') != std::string_view::npos)
    return files.state(name).is_executable ? fs::path(name) : fs::path();
  for (std::string_view directory : text::split(search_path, ':')) {
    if (directory.empty()) continue;
    fs::path candidate = fs::path(directory) / name;
    if (files.state(candidate).is_executable) return candidate;
  }
  return {};
}

}  // namespace kiln::sys
