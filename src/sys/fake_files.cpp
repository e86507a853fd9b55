// SPDX-License-Identifier: Apache-2.0
// How is code that touches the disk tested without one?
#include "sys/fake_files.h"

#include <cerrno>

namespace kiln::sys {

FakeFiles::Entry& FakeFiles::put(const fs::path& path) {
  Entry& entry = entries_[path.lexically_normal().string()];
  entry = Entry{.mtime_ns = now_ns_++, .inode = next_inode_++};
  for (fs::path above = path.lexically_normal().parent_path(); above.has_relative_path();
       above = above.parent_path())
    entries_.try_emplace(above.string(), Entry{.directory = true, .inode = next_inode_++});
  return entry;
}

FakeFiles& FakeFiles::add(const fs::path& path, std::string content, bool executable) {
  Entry& entry = put(path);
  entry.content = std::move(content);
  entry.executable = executable;
  return *this;
}

FakeFiles& FakeFiles::add_directory(const fs::path& path) {
  put(path).directory = true;
  return *this;
}

const FakeFiles::Entry* FakeFiles::find(const fs::path& path) const {
  auto found = entries_.find(path.lexically_normal().string());
  if (found == entries_.end()) return nullptr;
  if (found->second.link_target.empty()) return &found->second;
  return find(path.parent_path() / found->second.link_target);
}

FileState FakeFiles::state(const fs::path& path) const {
  const Entry* entry = find(path);
  if (!entry) return {};
  return {.exists = true,
          .is_directory = entry->directory,
          .is_executable = entry->executable,
          .size_bytes = entry->content.size(),
          .mtime_ns = entry->mtime_ns,
          .ctime_ns = entry->mtime_ns,
          .inode = entry->inode};
}

void FakeFiles::touch(const fs::path& path) {
  auto found = entries_.find(path.lexically_normal().string());
  if (found != entries_.end()) found->second.mtime_ns = now_ns_++;
}

void FakeFiles::set_mtime(const fs::path& path, int64_t mtime_ns) {
  auto found = entries_.find(path.lexically_normal().string());
  if (found != entries_.end()) found->second.mtime_ns = mtime_ns;
}

Result<std::string> FakeFiles::read(const fs::path& path) const {
  accesses.push_back("read " + path.string());
  const Entry* entry = find(path);
  if (!entry) return disk_error("cannot read", path, ENOENT);
  if (entry->directory) return disk_error("cannot read", path, EISDIR);
  return entry->content;
}

std::vector<std::string> FakeFiles::list(const fs::path& directory) const {
  std::vector<std::string> names;
  fs::path folder = directory.lexically_normal();
  if (!folder.has_filename() && folder.has_relative_path())
    folder = folder.parent_path();  // "/a/" is "/a"
  for (const auto& [path, entry] : entries_)
    if (fs::path(path).parent_path() == folder) names.push_back(fs::path(path).filename());
  return names;
}

Result<fs::path> FakeFiles::real_path(const fs::path& path) const {
  if (!find(path)) return disk_error("cannot find", path, ENOENT);
  return path.lexically_normal();
}

Status FakeFiles::write(const fs::path& path, std::string_view content, Durable) {
  accesses.push_back("write " + path.string());
  if (auto failure = failures_.extract(path.string()))
    return disk_error("cannot write", path, failure.mapped());
  put(path).content = content;
  return {};
}

Status FakeFiles::make_directories(const fs::path& directory) {
  if (auto failure = failures_.extract(directory.string()))
    return disk_error("cannot make the folder", directory, failure.mapped());
  if (!find(directory)) put(directory).directory = true;
  return {};
}

Status FakeFiles::publish(const fs::path& from, const fs::path& to) { return copy(from, to); }

Status FakeFiles::copy(const fs::path& from, const fs::path& to) {
  TRY(std::string content, read(from));
  return write(to, content);
}

Status FakeFiles::point_link(const fs::path& link, const fs::path& target) {
  accesses.push_back("link " + link.string());
  put(link).link_target = target.string();
  return {};
}

Status FakeFiles::remove(const fs::path& path) {
  accesses.push_back("remove " + path.string());
  std::string prefix = path.lexically_normal().string();
  std::erase_if(entries_, [&](const auto& item) {
    return item.first == prefix || std::string_view(item.first).starts_with(prefix + "/");
  });
  return {};
}

}  // namespace kiln::sys
