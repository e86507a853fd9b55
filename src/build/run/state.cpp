// SPDX-License-Identifier: Apache-2.0
// Can it be proved, without ninja, that nothing has changed since the last build?
//
//   kiln-state 3 <number of files and absent ones>
//   <key>
//   <result>
//   <size> <mtime_ns> <ctime_ns> <inode> <path>      one line a file
//   - <path>                                         one line a path where nothing was
#include "build/run/state.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::string_view kMagic = "kiln-state 3 ";

// A number and the blank behind it. By hand, for there are four in each of hundreds of lines of
// every build.
std::optional<int64_t> take_number(std::string_view& line) {
  uint64_t value = 0;
  size_t at = line.starts_with('-') ? 1 : 0;
  const size_t first = at;
  const uint64_t most =
      static_cast<uint64_t>(INT64_MAX) + first;  // an inode may be written as the least number
  for (; at < line.size() && line[at] >= '0' && line[at] <= '9'; ++at) {
    const uint64_t digit = static_cast<uint64_t>(line[at] - '0');
    if (value > (most - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (at == first || at == line.size() || line[at] != ' ') return std::nullopt;
  line.remove_prefix(at + 1);
  return static_cast<int64_t>(first ? 0 - value : value);
}

bool parse_line(std::string_view line, SeenFile& file) {
  int64_t numbers[4];
  for (int64_t& number : numbers) {
    auto value = take_number(line);
    if (!value) return false;
    number = *value;
  }
  file.path = line;
  file.state.exists = true;
  file.state.size_bytes = static_cast<uint64_t>(numbers[0]);
  file.state.mtime_ns = numbers[1];
  file.state.ctime_ns = numbers[2];
  file.state.inode = static_cast<uint64_t>(numbers[3]);
  return true;
}

}  // namespace

bool is_same(const sys::FileState& a, const sys::FileState& b) {
  return a.exists == b.exists && a.size_bytes == b.size_bytes && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns && a.inode == b.inode;
}

std::string write_state(const BuildState& state) {
  std::string text = fmt::format("{}{}\n{}\n{}\n", kMagic, state.files.size() + state.absent.size(),
                                 state.key, state.result.string());
  for (const SeenFile& file : state.files)
    text += fmt::format("{} {} {} {} {}\n", file.state.size_bytes, file.state.mtime_ns,
                        file.state.ctime_ns, static_cast<int64_t>(file.state.inode),
                        file.path.string());
  for (const sys::fs::path& path : state.absent) text += fmt::format("- {}\n", path.string());
  return text;
}

std::optional<BuildState> parse_state(std::string_view text) {
  auto lines = text::lines(text);
  if (lines.size() < 3 || !lines[0].starts_with(kMagic)) return std::nullopt;
  auto count = text::to_int(lines[0].substr(kMagic.size()));
  if (!count || static_cast<size_t>(*count) != lines.size() - 3) return std::nullopt;
  BuildState state{std::string(lines[1]), lines[2], {}, {}};
  state.files.reserve(lines.size());
  state.absent.reserve(lines.size());
  for (size_t i = 3; i < lines.size(); ++i) {
    if (lines[i].starts_with("- "))
      state.absent.emplace_back(lines[i].substr(2));
    else if (!parse_line(lines[i], state.files.emplace_back()))
      return std::nullopt;
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
