// SPDX-License-Identifier: Apache-2.0
#include "measure/units.h"

#include <fmt/format.h>

#include <cmath>

namespace kiln::measure {
namespace {

std::string digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

}  // namespace

std::string time_text(double ns) {
  if (std::abs(ns) < 1e3) return fmt::format("{:.0f} ns", ns);
  if (std::abs(ns) < 1e6) return fmt::format("{} us", digits(ns / 1e3));
  if (std::abs(ns) < 1e9) return fmt::format("{} ms", digits(ns / 1e6));
  return fmt::format("{} s", digits(ns / 1e9));
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 1 << 20) return fmt::format("{} KiB", digits(bytes / 1024));
  if (bytes < 1 << 30) return fmt::format("{} MiB", digits(bytes / (1 << 20)));
  return fmt::format("{} GiB", digits(bytes / (1 << 30)));
}

std::string rate_text(double gbs) { return fmt::format("{} GB/s", digits(gbs)); }

}  // namespace kiln::measure
