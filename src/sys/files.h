// SPDX-License-Identifier: Apache-2.0
// How does kiln touch the disk? Through Files: the real one here, one in memory for tests in
// sys/fake_files.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kiln::sys {

namespace fs = std::filesystem;

// What a look at a path shows, links followed. Two equal states mean the same content for every
// practical purpose: inode and nanoseconds of the change both take part.
struct FileState {
  bool exists = false;
  bool is_directory = false;
  bool is_executable = false;
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns =
      0;  // of the last change of any kind, by the disk's own clock: nobody can set it
  uint64_t inode = 0;
  bool others_may_write = false;  // group or world, or another user owns it

  bool operator==(const FileState&) const = default;
  bool is_file() const { return exists && !is_directory; }
};

// Yes: on the disk before its name is. No: for what the next run can make anew; fsync takes
// milliseconds. Scratch: the same for what may be empty or cut off once the machine has lost its
// power, because who reads it would see that. ext4 begins to write a file out when it takes the
// place of another one, and renames of others then wait: 1 to 5 ms each.
enum class Durable { Yes, No, Scratch };

class Files {
 public:
  virtual ~Files() = default;

  virtual FileState state(const fs::path& path) const = 0;
  virtual Result<std::string> read(const fs::path& path) const = 0;
  // The names in a directory, sorted; none if it cannot be read.
  virtual std::vector<std::string> list(const fs::path& directory) const = 0;
  // Absolute, with no link and no "..".
  virtual Result<fs::path> real_path(const fs::path& path) const = 0;
  // What this user can still write to the disk that holds the path.
  virtual uint64_t free_bytes(const fs::path& path) const = 0;

  // The content appears under `path` whole, or nothing changes. Makes the directories above it.
  virtual Status write(const fs::path& path, std::string_view content,
                       Durable durable = Durable::Yes) = 0;
  // The same for a program: with the right to be executed.
  virtual Status write_executable(const fs::path& path, std::string_view content) = 0;
  virtual Status make_directories(const fs::path& directory) = 0;
  // As above; the last one is for this user alone, if it was not there.
  virtual Status make_private_directory(const fs::path& directory) = 0;
  // Its time becomes now, if that can be.
  virtual void touch(const fs::path& path) = 0;
  virtual void set_mtime(const fs::path& path, int64_t mtime_ns) = 0;
  // `to` becomes another name of `from` (a hard link; a copy where the file system has none), by
  // rename.
  virtual Status publish(const fs::path& from, const fs::path& to) = 0;
  // `to` becomes a copy of `from`, by rename.
  virtual Status copy(const fs::path& from, const fs::path& to) = 0;
  // `link` points to `target`; swapped by rename if it was there.
  virtual Status point_link(const fs::path& link, const fs::path& target) = 0;
  // A file that is not there is no error.
  virtual Status remove(const fs::path& path) = 0;
};

Files& real_files();

// An Error for a failed call on `path`: errno's text as why, and a fix where the number tells one
// (read-only, no space, no permission).
Error disk_error(std::string_view what, const fs::path& path, int error_number);

// The executable of this process, links resolved.
Result<fs::path> own_executable();

// A new folder of this user alone under the system's folder for temporary files; the caller removes
// it.
Result<fs::path> make_temporary_folder(std::string_view stem);

// What `PATH` gives for a name; a name with a slash is taken as it is.
fs::path find_program(const Files& files, std::string_view name, std::string_view search_path);

}  // namespace kiln::sys
