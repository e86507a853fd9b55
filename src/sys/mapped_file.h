// SPDX-License-Identifier: Apache-2.0
// How is a file of hundreds of megabytes read without copying it? Mapped, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace kiln::sys {

class MappedFile {
 public:
  // A directory, a pipe, a device or an unreadable file is an error that says so. An empty file has
  // no bytes.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // The pages of this part may go: what was read once need not count as this process's memory.
  void forget(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kiln::sys
