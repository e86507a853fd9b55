// SPDX-License-Identifier: Apache-2.0
// What did a step read, and where did its compiler find nothing?
#include "build/cache/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/hash.h"
#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::string_view kReadsMagic = "kiln-reads 1 ";

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

bool parse_by_state(std::string_view line, ReadFile& file) {
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

bool parse_by_content(std::string_view line, ReadFile& file) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0) return false;
  file.hash = line.substr(0, blank);
  file.path = line.substr(blank + 1);
  return true;
}

bool parse_line(std::string_view line, Reads& reads) {
  if (line.starts_with("- ")) {
    reads.absent.emplace_back(line.substr(2));
    return true;
  }
  if (line.starts_with('#')) return parse_by_content(line.substr(1), reads.files.emplace_back());
  return parse_by_state(line, reads.files.emplace_back());
}

void sort_names(Reads& reads) {
  std::sort(reads.files.begin(), reads.files.end(),
            [](const ReadFile& a, const ReadFile& b) { return a.path < b.path; });
  std::sort(reads.absent.begin(), reads.absent.end());
}

template <typename StateOf>
std::optional<Difference> first_change_by(StateOf state_of, const Reads& reads) {
  for (const ReadFile& file : reads.files) {
    const sys::FileState& now = state_of(file.path);
    if (!is_same(now, file.state))
      return Difference{file.path, now.exists ? Change::Changed : Change::Gone};
  }
  for (const std::string& path : reads.absent)
    if (path == kUnknownRead)
      return Difference{path, Change::Unknown};
    else if (state_of(path).exists)
      return Difference{path, Change::Appeared};
  return std::nullopt;
}

}  // namespace

bool Reads::are_known() const {
  return std::find(absent.begin(), absent.end(), kUnknownRead) == absent.end();
}

std::string write_reads(const Reads& reads, By by) {
  std::string text = fmt::format("{}{}\n", kReadsMagic, reads.files.size() + reads.absent.size());
  for (const ReadFile& file : reads.files)
    if (by == By::Content)
      text.append("#").append(file.hash).append(" ").append(file.path).append("\n");
    else
      fmt::format_to(std::back_inserter(text), "{} {} {} {} {}\n", file.state.size_bytes,
                     file.state.mtime_ns, file.state.ctime_ns,
                     static_cast<int64_t>(file.state.inode), file.path);
  for (const std::string& path : reads.absent) text.append("- ").append(path).append("\n");
  return text;
}

std::optional<Reads> parse_reads(std::string_view text) {
  auto lines = text::lines(text);
  if (lines.empty() || !lines[0].starts_with(kReadsMagic)) return std::nullopt;
  auto count = text::to_int(lines[0].substr(kReadsMagic.size()));
  if (!count || static_cast<size_t>(*count) != lines.size() - 1) return std::nullopt;
  Reads reads;
  reads.files.reserve(lines.size());
  reads.absent.reserve(lines.size());
  for (size_t i = 1; i < lines.size(); ++i)
    if (!parse_line(lines[i], reads)) return std::nullopt;
  return reads;
}

Reads with_canonical_names(const std::vector<Root>& roots, Reads reads) {
  for (ReadFile& file : reads.files) file.path = canonical_path(roots, file.path);
  for (std::string& path : reads.absent) path = canonical_path(roots, path);
  sort_names(reads);
  return reads;
}

Reads with_real_names(const std::vector<Root>& roots, Reads reads) {
  for (ReadFile& file : reads.files) file.path = real_path(roots, file.path);
  for (std::string& path : reads.absent) path = real_path(roots, path);
  return reads;
}

Json shown(const Reads& reads) {
  Json files = Json::object();
  for (const ReadFile& file : reads.files) files[file.path] = file.hash;
  return {{"files", files}, {"absent", reads.absent}};
}

const std::string& ContentHashes::of(const std::string& file) {
  auto [at, is_new] = known_.try_emplace(file);
  if (is_new) {
    auto content = files_.read(file);
    if (content) at->second = hash_hex(*content);
  }
  return at->second;
}

const sys::FileState& FileStates::of(const std::string& path) {
  auto [at, is_new] = known_.try_emplace(path);
  if (is_new) at->second = files_.state(path);
  return at->second;
}

bool look_at_states(const sys::Files& files, int64_t begun_ns, Reads& reads) {
  bool sound = true;
  for (ReadFile& file : reads.files) {
    file.state = files.state(file.path);
    sound &= file.state.exists && file.state.ctime_ns < begun_ns;
  }
  return sound;
}

std::string sentence(const Difference& difference) {
  switch (difference.change) {
    case Change::Changed:
      return fmt::format("{} changed", difference.path);
    case Change::Gone:
      return fmt::format("{} is gone", difference.path);
    case Change::Appeared:
      return fmt::format("{} appeared", difference.path);
    case Change::Unknown:
      break;
  }
  return "the files that asm() reads are not known";
}

bool is_same(const sys::FileState& a, const sys::FileState& b) {
  return a.exists == b.exists && a.size_bytes == b.size_bytes && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns && a.inode == b.inode;
}

std::optional<Difference> first_change(const sys::Files& files, const Reads& reads) {
  return first_change_by([&](const std::string& path) { return files.state(path); }, reads);
}

std::optional<Difference> first_change(FileStates& states, const Reads& reads) {
  return first_change_by(
      [&](const std::string& path) -> const sys::FileState& { return states.of(path); }, reads);
}

std::optional<Difference> first_difference(const sys::Files& files, ContentHashes& hashes,
                                           const Reads& reads) {
  for (const std::string& path : reads.absent)
    if (path == kUnknownRead)
      return Difference{path, Change::Unknown};
    else if (files.state(path).exists)
      return Difference{path, Change::Appeared};
  for (const ReadFile& file : reads.files) {
    const std::string& now = hashes.of(file.path);
    if (now.empty()) return Difference{file.path, Change::Gone};
    if (now != file.hash) return Difference{file.path, Change::Changed};
  }
  return std::nullopt;
}

}  // namespace kiln::build
