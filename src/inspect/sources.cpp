// SPDX-License-Identifier: Apache-2.0
// Which source files may be shown next to the code?
#include "inspect/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "sys/guarded_files.h"

namespace kiln::inspect {

namespace {

using sys::fs::path;

// A page stays below some megabytes, and no source that people write is longer.
constexpr uint64_t kMaxSourceBytes = 400'000;
constexpr size_t kNamedInNote = 5;
constexpr std::string_view kCanonicalFolder = "/proc/self/cwd/";
constexpr const char* kMissing = "it is not on the machine that created this page";
constexpr std::array<std::string_view, 19> kEndings = {
    ".cu",  ".cuh", ".h",   ".hh",  ".hpp", ".hxx", ".h++", ".c",   ".cc", ".cpp",
    ".cxx", ".c++", ".inl", ".inc", ".ipp", ".tpp", ".def", ".ptx", ".cl"};

bool is_below(const path& file, const path& folder) {
  const auto [rest, unused] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return rest == folder.end();
}

bool is_below_any(const path& file, const std::vector<path>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const path& folder) { return is_below(file, folder); });
}

bool has_ending_of_source(const path& file) {
  return std::find(kEndings.begin(), kEndings.end(), text::lower(file.extension().string())) !=
         kEndings.end();
}

// Files that are none: to read one can block, or has no end.
bool is_of_the_system(const path& file) {
  return is_below(file, "/proc") || is_below(file, "/sys") || is_below(file, "/dev");
}

}  // namespace

Sources::Sources(const sys::Files& files, SourceScope scope) : files_(files) {
  for (auto [from, to] :
       {std::pair{&scope.projects, &scope_.projects}, {&scope.named, &scope_.named}})
    for (const path& folder : *from)
      if (auto real = files.real_path(folder);
          real && std::find(to->begin(), to->end(), *real) == to->end())
        to->push_back(*real);
}

Sources::Text Sources::read_candidate(const path& file) const {
  if (is_of_the_system(file.lexically_normal())) return {{}, false, "it belongs to the system"};
  auto real = files_.real_path(file);
  if (!real) return {{}, false, kMissing};
  const bool named = is_below_any(*real, scope_.named);
  if (is_of_the_system(*real) || (!named && !is_below_any(*real, scope_.projects)))
    return {{}, false, "it is outside the project"};
  if (!named && !has_ending_of_source(*real))
    return {{}, false, "its name is not that of a source"};
  auto content =
      sys::read_limited(files_, *real, {.max_bytes = kMaxSourceBytes, .own_only = false});
  if (!content) return {{}, false, content.error().why};
  Text text{{}, true, ""};
  for (std::string_view line : text::lines(*content)) text.lines.emplace_back(line);
  return text;
}

Sources::Text Sources::read(const std::string& name) const {
  const bool canonical = name.starts_with(kCanonicalFolder);
  const path written = canonical ? name.substr(kCanonicalFolder.size()) : name;
  if (written.is_absolute()) return read_candidate(written);
  Text first{{}, false, kMissing};
  for (const auto* folders : {&scope_.projects, &scope_.named})
    for (const path& folder : *folders) {
      Text found = read_candidate(folder / written);
      if (found.shown) return found;
      if (first.why == kMissing) first = std::move(found);
    }
  return first;
}

const Sources::Text& Sources::of(const std::string& name) {
  auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  Text text = name.empty() ? Text{{}, false, kMissing} : read(name);
  if (!text.shown && text.why != kMissing) left_out_.push_back(name);
  return known_.emplace(name, std::move(text)).first->second;
}

std::string Sources::note() const {
  if (left_out_.empty()) return "";
  std::string out = left_out_.size() == 1
                        ? "1 source is left out: "
                        : fmt::format("{} sources are left out: ", left_out_.size());
  for (size_t i = 0; i < std::min(left_out_.size(), kNamedInNote); ++i)
    out += fmt::format("{}{} ({})", i ? ", " : "", left_out_[i], known_.at(left_out_[i]).why);
  if (left_out_.size() > kNamedInNote)
    out += fmt::format(", {} more", left_out_.size() - kNamedInNote);
  return out + "; --sources DIR includes what is below DIR";
}

}  // namespace kiln::inspect
