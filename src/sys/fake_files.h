// SPDX-License-Identifier: Apache-2.0
// How is code that touches the disk tested without one? With FakeFiles: files in memory, every
// access recorded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sys/files.h"

namespace kiln::sys {

class FakeFiles final : public Files {
 public:
  // A test's own set-up: not recorded.
  FakeFiles& add(const fs::path& path, std::string content = "", bool executable = false);
  FakeFiles& add_directory(const fs::path& path);
  // The next write-like call on this path fails so.
  void fail_next_write(const fs::path& path, int error_number) {
    failures_[path.string()] = error_number;
  }
  bool has(const fs::path& path) const {
    return entries_.contains(path.lexically_normal().string());
  }

  FileState state(const fs::path& path) const override;
  Result<std::string> read(const fs::path& path) const override;
  std::vector<std::string> list(const fs::path& directory) const override;
  Result<fs::path> real_path(const fs::path& path) const override;
  uint64_t free_bytes(const fs::path&) const override { return free; }
  Status write(const fs::path& path, std::string_view content,
               Durable durable = Durable::Yes) override;
  Status write_executable(const fs::path& path, std::string_view content) override {
    return write(path, content);
  }
  Status make_directories(const fs::path& directory) override;
  Status make_private_directory(const fs::path& directory) override {
    return make_directories(directory);
  }
  void touch(const fs::path& path) override;
  void set_mtime(const fs::path& path, int64_t mtime_ns) override;
  Status publish(const fs::path& from, const fs::path& to) override;
  Status copy(const fs::path& from, const fs::path& to) override;
  Status point_link(const fs::path& link, const fs::path& target) override;
  Status remove(const fs::path& path) override;

  // "read /a", "write /b", in order.
  mutable std::vector<std::string> accesses;
  uint64_t free = 1ull << 40;

 private:
  struct Entry {
    std::string content = {};
    bool directory = false;
    bool executable = false;
    int64_t mtime_ns = 0;
    uint64_t inode = 0;
    std::string link_target = {};
  };
  const Entry* find(const fs::path& path) const;
  Entry& put(const fs::path& path);

  std::map<std::string, Entry> entries_;
  std::map<std::string, int> failures_;
  int64_t now_ns_ = 1'000'000'000;
  uint64_t next_inode_ = 1;
};

}  // namespace kiln::sys
