// SPDX-License-Identifier: Apache-2.0
#include "report/inspect/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/inspect.h"

namespace kiln::report {

std::string InspectStyle::bold(std::string_view text) const {
  return color ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string InspectStyle::dim(std::string_view text) const {
  return color ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

std::string fitted_name(std::string_view text, int columns) {
  if (columns <= 1 || text.size() <= static_cast<size_t>(columns)) return std::string(text);
  return std::string(text.substr(0, static_cast<size_t>(columns) - 1)) + "…";
}

std::vector<std::string> mix_items(const results::KernelFacts& kernel) {
  auto parts = kernel.mix;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> out;
  for (const auto& [name, count] : parts) out.push_back(fmt::format("{} {}", count, name));
  return out;
}

std::string bounds_text(const results::KernelFacts& kernel) {
  auto shape = [](const results::Shape& d) {
    if (d[2] > 1) return fmt::format("{}x{}x{}", d[0], d[1], d[2]);
    return d[1] > 1 ? fmt::format("{}x{}", d[0], d[1]) : fmt::format("{}", d[0]);
  };
  std::string least = kernel.min_blocks ? fmt::format(", {}", kernel.min_blocks) : "";
  if (kernel.required_threads[0]) return "= " + shape(kernel.required_threads) + least;
  return kernel.max_threads[0] ? "<= " + shape(kernel.max_threads) + least : "";
}

std::string listed_items(const std::string& head, const std::vector<std::string>& items,
                         int columns) {
  std::string out = head, blank(head.size(), ' ');
  size_t width = head.size();
  for (size_t i = 0; i < items.size(); ++i) {
    std::string word = items[i] + (i + 1 < items.size() ? "," : "");
    bool first = width == head.size();
    if (!first && columns > 0 && width + 1 + word.size() > static_cast<size_t>(columns)) {
      out += "\n" + blank;
      width = head.size();
      first = true;
    }
    out += (first ? "" : " ") + word;
    width += word.size() + !first;
  }
  return out + "\n";
}

}  // namespace kiln::report
