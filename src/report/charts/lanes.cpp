// SPDX-License-Identifier: Apache-2.0
// Each unit of memory is drawn once, however far apart they are: a picture to scale would show
// nothing but a gap wherever a stride is large.
#include "report/charts/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/page.h"

namespace kiln::report {
namespace {

using results::LaneAccess;
using results::LaneAddress;

constexpr int64_t kSector = 32, kBankCount = 32, kWord = 4;
constexpr double kSheetWidth = 704, kLaneStep = 21, kEdge = 16, kLanesTop = 44, kMemoryTop = 150,
                 kCell = 18;
// Dark enough on white; neighbours differ in lightness too.
constexpr std::string_view kRays[] = {"#0a54a6", "#b45309", "#0f766e", "#8b1f5c"};

std::string_view ray_color(int64_t unit) {
  return kRays[static_cast<size_t>(((unit % 4) + 4) % 4)];
}

// Rounds down, also below zero: an access before its tensor is what a learner draws most.
int64_t unit_of(int64_t address, int64_t size) {
  return address >= 0 ? address / size : -((-address + size - 1) / size);
}

std::string lane_cell(double x, double y, double width, std::string_view fill) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"{}\" "
      "stroke=\"#999999\" stroke-width=\"0.8\"/>\n",
      x, y, width, kCell, fill);
}

std::string cell_number(double x, double y, int64_t number) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">{}</text>\n",
                     x + kCell / 2, y + 13, number);
}

std::string lanes_row(const LaneAccess& access) {
  std::string out;
  for (int64_t lane = 0; lane < 32; ++lane) {
    const bool active = std::ranges::count(access.lanes, lane, &LaneAddress::lane) > 0;
    const double x = kEdge + static_cast<double>(lane) * kLaneStep;
    out += lane_cell(x, kLanesTop, kCell, active ? "#cfe3f3" : "#f4f4f4");
    out += cell_number(x, kLanesTop, lane);
  }
  return out;
}

std::string ray(int64_t lane, double x, int64_t unit) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"1\" "
      "opacity=\"0.7\"/>\n",
      kEdge + static_cast<double>(lane) * kLaneStep + kCell / 2, kLanesTop + kCell, x, kMemoryTop,
      ray_color(unit));
}

using Sectors = std::map<int64_t, std::set<int64_t>>;  // the bytes of each that are used

Sectors sectors_of(const LaneAccess& access) {
  Sectors out;
  for (const LaneAddress& one : access.lanes)
    for (int64_t byte = one.address; byte < one.address + access.bytes; ++byte) {
      const int64_t sector = unit_of(byte, kSector);
      out[sector].insert(byte - sector * kSector);
    }
  return out;
}

std::string sectors_row(const LaneAccess& access) {
  const Sectors sectors = sectors_of(access);
  const double step =
      std::min(kLaneStep * 2, (kSheetWidth - 2 * kEdge) /
                                  static_cast<double>(std::max<size_t>(sectors.size(), 1)));
  std::map<int64_t, double> place;
  for (const auto& [sector, bytes] : sectors)
    place.emplace(sector, kEdge + static_cast<double>(place.size()) * step);
  const double width = std::max(2.0, step - 4);
  const auto at = [&](int64_t byte) { return static_cast<double>(byte) / kSector * width; };
  std::string out;
  for (const LaneAddress& one : access.lanes) {
    const int64_t sector = unit_of(one.address, kSector);
    out += ray(one.lane, place[sector] + at(one.address - sector * kSector), sector);
  }
  for (const auto& [sector, bytes] : sectors) {
    out += lane_cell(place[sector], kMemoryTop, width, "#eeeeee");
    // Neighbouring bytes are one rectangle.
    for (auto first = bytes.begin(); first != bytes.end();) {
      auto last = first;
      int64_t count = 1;
      while (++last != bytes.end() && *last == *first + count) ++count;
      out +=
          fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>\n",
                      place[sector] + at(*first), kMemoryTop, at(count), kCell, ray_color(sector));
      first = last;
    }
  }
  return out;
}

std::string banks_row(const LaneAccess& access) {
  std::vector<std::set<int64_t>> words(kBankCount);
  std::string out;
  for (const LaneAddress& one : access.lanes) {
    const int64_t first = unit_of(one.address, kWord);
    const int64_t last = unit_of(one.address + access.bytes - 1, kWord);
    for (int64_t word = first; word <= last; ++word)
      words[static_cast<size_t>(word & (kBankCount - 1))].insert(word);
    const int64_t bank = first & (kBankCount - 1);
    out += ray(one.lane, kEdge + static_cast<double>(bank) * kLaneStep + kCell / 2, bank);
  }
  for (size_t bank = 0; bank < words.size(); ++bank) {
    const size_t wanted = words[bank].size();
    const double x = kEdge + static_cast<double>(bank) * kLaneStep;
    out += lane_cell(x, kMemoryTop, kCell,
                     !wanted       ? "#ffffff"
                     : wanted == 1 ? "#cfe3f3"
                                   : "#f3c9b5");
    if (wanted) out += cell_number(x, kMemoryTop, static_cast<int64_t>(wanted));
  }
  return out;
}

}  // namespace

std::string lanes_text(const LaneAccess& access) {
  const std::string head =
      fmt::format("line {}: {} of {} bytes per lane", access.line, access.kind, access.bytes);
  if (access.space == "shared")
    return fmt::format("{} in shared memory, {} lanes, {} turn{}", head, access.lanes.size(),
                       access.turns, access.turns == 1 ? "" : "s");
  const Sectors sectors = sectors_of(access);
  size_t used = 0;
  for (const auto& [sector, bytes] : sectors) used += bytes.size();
  return fmt::format("{}, {} lanes, {} sectors, {} of {} bytes used", head, access.lanes.size(),
                     sectors.size(), used, kSector * static_cast<int64_t>(sectors.size()));
}

std::string lanes_picture(const LaneAccess& access) {
  const bool shared = access.space == "shared";
  const std::string title = escape(lanes_text(access));
  const std::string label =
      shared ? "banks 0 to 31; the number: different words wanted from the bank"
             : fmt::format("sectors of {}, 32 bytes each; filled: used",
                           access.where.empty() ? "global memory" : access.where);
  return fmt::format(
      "<svg class=\"document\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "width=\"{0}\" height=\"{1}\" style=\"max-width:100%;height:auto\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"10\" role=\"img\" aria-label=\"{2}\">\n"
      "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" rx=\"6\" fill=\"#ffffff\"/>\n"
      "<text x=\"{3}\" y=\"20\" font-size=\"13\" fill=\"#222\">{2}</text>\n{4}{5}"
      "<text x=\"{3}\" y=\"{6}\" fill=\"#444\">{7}</text>\n</svg>\n",
      kSheetWidth, kMemoryTop + 48, title, kEdge, lanes_row(access),
      shared ? banks_row(access) : sectors_row(access), kMemoryTop + 36, escape(label));
}

}  // namespace kiln::report
