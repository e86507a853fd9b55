// SPDX-License-Identifier: Apache-2.0
#include "report/inspect/page_code.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

#include "base/text.h"

namespace kiln::report {
namespace {

using FrameKey = std::vector<std::tuple<size_t, uint32_t, std::string>>;

// Files and names of inlined functions are long and come again on every line: each is kept once,
// and lines have their numbers.
class Numbered {
 public:
  explicit Numbered(const std::vector<results::SourceText>& sources) {
    for (const results::SourceText& source : sources) files_.emplace(source.path, files_.size());
  }

  size_t file(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? files_.size() : found->second;
  }
  std::optional<size_t> function(const std::string& name) {
    if (name.empty()) return std::nullopt;
    const auto [found, added] = names_.emplace(name, list_.size());
    if (added) list_.push_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return list_; }

 private:
  std::map<std::string, size_t> files_, names_;
  std::vector<std::string> list_;
};

// The lines of the PTX that this kernel is: from its name to the brace that closes it.
std::pair<size_t, size_t> ptx_range(const std::vector<std::string>& lines,
                                    const std::string& symbol) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(".entry") == std::string::npos || lines[i].find(symbol) == std::string::npos)
      continue;
    for (size_t end = i; end < lines.size(); ++end)
      if (text::trim(lines[end]) == "}") return {i, end + 1};
  }
  return {0, lines.size()};
}

Json frames_json(const FrameKey& key, Numbered& numbered) {
  Json out = Json::array();
  for (const auto& [file, line, function] : key) {
    Json one = Json::array({file, line});
    if (const auto name = numbered.function(function)) one.push_back(*name);
    out.push_back(std::move(one));
  }
  return out;
}

// The keys of this and the next function are those of look/inspect.js.
Json listing_data(const results::Listing& listing, const std::vector<std::string>& ptx,
                  Numbered& numbered) {
  Json lines = Json::array(), frames = Json::array(), labels = Json::array();
  std::map<FrameKey, size_t> known;
  for (const results::SassLine& line : listing.lines) {
    FrameKey key;
    for (const results::SourceFrame& frame : line.source)
      key.emplace_back(numbered.file(listing.files[frame.file]), frame.line, frame.function);
    const auto [found, added] = known.emplace(key, known.size());
    if (added) frames.push_back(frames_json(key, numbered));
    if (!line.label.empty()) labels.push_back(Json::array({lines.size(), line.label}));
    std::string text = line.text;
    if (!listing.disassembled)
      text = fmt::format("{:<12} 0x{:016x} 0x{:016x}", text, line.low, line.high);
    lines.push_back(Json::array({std::move(text), line.high >> 41 & 0x1fffff, line.live_registers,
                                 found->second, line.ptx_line}));
  }
  const auto [begin, end] = ptx_range(ptx, listing.symbol);
  Json part = Json::array();
  for (size_t i = begin; i < end; ++i) part.push_back(ptx[i]);
  const uint64_t first = listing.lines.empty() ? 0 : listing.lines.front().address;
  return {{"name", listing.name},        {"symbol", listing.symbol},
          {"arch", listing.arch},        {"first", first},
          {"lines", std::move(lines)},   {"frames", std::move(frames)},
          {"labels", std::move(labels)}, {"ptx_first", begin},
          {"ptx", std::move(part)}};
}

}  // namespace

PageCode page_code(const results::CodeList& code) {
  PageCode out;
  for (const results::SourceText& source : code.sources)
    out.files.push_back({{"path", source.path},
                         {"lines", source.lines ? Json(*source.lines) : Json()},
                         {"why", source.why}});
  Numbered numbered(code.sources);
  for (const results::CodeImage& image : code.images)
    for (const results::Listing& listing : image.listing.kernels)
      out.code.push_back(listing_data(listing, image.listing.ptx, numbered));
  out.names = numbered.names();
  return out;
}

}  // namespace kiln::report
