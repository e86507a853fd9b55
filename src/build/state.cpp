// SPDX-License-Identifier: Apache-2.0
// Can it be proved, without ninja, that nothing has changed since the last build?
//
//   kiln-state 3 <number of files and absent ones>
//   <key>
//   <result>
//   <size> <mtime_ns> <ctime_ns> <inode> <path>      one line a file
//   - <path>                                         one line a path where nothing was
#include "build/state.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::string_view kMagic = "kiln-state 3 ";

std::optional<SeenFile> parse_line(std::string_view line) {
  SeenFile file;
  int64_t numbers[4];
  for (int64_t& number : numbers) {
    size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    auto value = text::to_int(line.substr(0, blank));
    if (!value) return std::nullopt;
    number = *value;
    line.remove_prefix(blank + 1);
  }
  file.path = line;
  file.state.exists = true;
  file.state.size_bytes = static_cast<uint64_t>(numbers[0]);
  file.state.mtime_ns = numbers[1];
  file.state.ctime_ns = numbers[2];
  file.state.inode = static_cast<uint64_t>(numbers[3]);
  return file;
}

}  // namespace

bool is_same(const sys::FileState& a, const sys::FileState& b) {
  return a.exists == b.exists && a.size_bytes == b.size_bytes && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns &&
         a.inode == b.inode;
}

std::string write_state(const BuildState& state) {
  std::string text =
      fmt::format("{}{}\n{}\n{}\n", kMagic, state.files.size() + state.absent.size(), state.key, state.result.string());
  for (const SeenFile& file : state.files)
    text += fmt::format("{} {} {} {} {}\n", file.state.size_bytes, file.state.mtime_ns, file.state.ctime_ns,
                        static_cast<int64_t>(file.state.inode), file.path.string());
  for (const sys::fs::path& path : state.absent) text += fmt::format("- {}\n", path.string());
  return text;
}

std::optional<BuildState> parse_state(std::string_view text) {
  auto lines = text::lines(text);
  if (lines.size() < 3 || !lines[0].starts_with(kMagic)) return std::nullopt;
  auto count = text::to_int(lines[0].substr(kMagic.size()));
  if (!count || static_cast<size_t>(*count) != lines.size() - 3) return std::nullopt;
  BuildState state{std::string(lines[1]), lines[2], {}, {}};
  for (size_t i = 3; i < lines.size(); ++i) {
    if (lines[i].starts_with("- ")) {
      state.absent.emplace_back(lines[i].substr(2));
      continue;
    }
    auto file = parse_line(lines[i]);
    if (!file) return std::nullopt;
    state.files.push_back(std::move(*file));
  }
  return state;
}

std::optional<sys::fs::path> first_change(const sys::Files& files, const BuildState& state) {
  for (const SeenFile& file : state.files)
    if (!is_same(files.state(file.path), file.state)) return file.path;
  for (const sys::fs::path& path : state.absent)
    if (files.state(path).exists) return path;
  return std::nullopt;
}

}  // namespace kiln::build
