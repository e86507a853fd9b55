// SPDX-License-Identifier: Apache-2.0
// How is a file mapped, and what cannot be?
#include "sys/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sys/files.h"

namespace kiln::sys {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  struct stat state;
  int file = -1;
  auto wrong = [&](const char* why) {
    if (file >= 0) ::close(file);
    return Error{Fault::Work, fmt::format("cannot read {}", path.string()), why, "name a file"};
  };
  // A path may come out of a binary: to open a device can have effects.
  if (::stat(path.c_str(), &state) != 0) return disk_error("cannot read", path, errno);
  if (!S_ISREG(state.st_mode) && !S_ISDIR(state.st_mode)) return wrong("it is not a regular file");
  // O_NONBLOCK: a pipe without a writer, which it may have become meanwhile, would wait here
  // forever.
  file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return disk_error("cannot read", path, errno);
  if (::fstat(file, &state) != 0) return wrong("its state cannot be read");
  if (S_ISDIR(state.st_mode)) return wrong("it is a directory");
  if (!S_ISREG(state.st_mode)) return wrong("it is not a regular file");
  size_t size = static_cast<size_t>(state.st_size);
  if (size == 0) {
    ::close(file);
    return MappedFile(nullptr, 0);
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  ::close(file);
  if (data == MAP_FAILED) return disk_error("cannot map", path, error);
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::forget(std::span<const std::byte> part) const {
  uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page,
            end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace kiln::sys
