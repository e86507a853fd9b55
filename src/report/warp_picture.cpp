// SPDX-License-Identifier: Apache-2.0
// How does one warp's access look in a terminal? Global memory by sectors, shared memory by banks.
#include <fmt/format.h>

#include <map>
#include <set>

#include "report/counters.h"

namespace kiln::report {
namespace {

constexpr int64_t kSectorBytes = 32, kBanks = 32, kWordBytes = 4;

std::string lanes_text(const std::vector<uint32_t>& lanes) {
  std::string out;
  for (size_t i = 0; i < lanes.size();) {
    size_t end = i + 1;
    while (end < lanes.size() && lanes[end] == lanes[end - 1] + 1) ++end;
    out += out.empty() ? "" : " ";
    out += end - i > 2
               ? fmt::format("{}-{}", lanes[i], lanes[end - 1])
               : fmt::format("{}", fmt::join(lanes.begin() + static_cast<int64_t>(i),
                                             lanes.begin() + static_cast<int64_t>(end), " "));
    i = end;
  }
  return out;
}

// The lanes that touch each unit of memory.
std::map<int64_t, std::vector<uint32_t>> units_of(const results::WarpSample& sample,
                                                  int64_t unit_bytes) {
  std::map<int64_t, std::vector<uint32_t>> out;
  for (uint32_t lane = 0; lane < sample.addresses.size(); ++lane) {
    const int64_t at = sample.addresses[lane];
    if (at < 0) continue;
    for (int64_t unit = at / unit_bytes; unit <= (at + sample.bytes - 1) / unit_bytes; ++unit)
      out[unit].push_back(lane);
  }
  return out;
}

std::string sectors_text(const results::WarpSample& sample) {
  const auto sectors = units_of(sample, kSectorBytes);
  std::string out = fmt::format("  {} sectors of 32 bytes\n", sectors.size());
  int64_t before = -1;
  for (const auto& [sector, lanes] : sectors) {
    if (before >= 0 && sector != before + 1) out += "            ...\n";
    before = sector;
    // A mark for each quarter of the sector that a lane touches.
    std::string marks = "........";
    for (uint32_t lane : lanes) {
      const int64_t at = sample.addresses[lane];
      for (int64_t word = 0; word < 8; ++word) {
        const int64_t begin = sector * kSectorBytes + word * kWordBytes;
        if (at < begin + kWordBytes && at + sample.bytes > begin)
          marks[static_cast<size_t>(word)] = '#';
      }
    }
    out +=
        fmt::format("  {:>+8}  [{}]  lanes {}\n", sector * kSectorBytes, marks, lanes_text(lanes));
  }
  return out;
}

std::string banks_text(const results::WarpSample& sample) {
  std::map<int64_t, std::map<int64_t, std::vector<uint32_t>>> banks;
  for (const auto& [word, lanes] : units_of(sample, kWordBytes)) banks[word % kBanks][word] = lanes;
  std::string out = "  banks with more than one word give one word per pass\n";
  for (const auto& [bank, words] : banks) {
    out += fmt::format("  bank {:>2}  {:>2} word{}  ", bank, words.size(),
                       words.size() == 1 ? " " : "s");
    std::string lanes;
    for (const auto& [word, of] : words)
      lanes += (lanes.empty() ? "lanes " : " | ") + lanes_text(of);
    out += lanes + "\n";
  }
  return out;
}

}  // namespace

std::string warp_picture_text(const results::WarpSample& sample) {
  return fmt::format("  {} {} of {} bytes per lane, warp {} of block {}\n", sample.space,
                     sample.kind, sample.bytes, sample.warp, sample.block) +
         (sample.space == "shared" ? banks_text(sample) : sectors_text(sample));
}

}  // namespace kiln::report
