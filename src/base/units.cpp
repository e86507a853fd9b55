// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

namespace kiln {
namespace {

// Limits are those of the rounded number: 9.996 is "10.0" and not "10.00".
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

// The first unit is written without a fraction. A value goes to the next unit where its rounded
// number would have a fourth digit.
std::string scaled(double value, double step, std::span<const std::string_view> units) {
  if (!std::isfinite(value)) return "-";
  size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(value) >= (step == 1024 ? 1023.5 : 999.5)) {
    value /= step;
    ++unit;
  }
  // Adding zero makes a zero of what is rounded to "-0".
  const std::string number =
      unit == 0 ? fmt::format("{:.0f}", std::round(value) + 0.0) : three_digits(value);
  return fmt::format("{} {}", number, units[unit]);
}

constexpr std::string_view kTimes[] = {"ns", "us", "ms", "s"};
constexpr std::string_view kBytes[] = {"B", "KB", "MB", "GB"};
constexpr std::string_view kMemory[] = {"bytes", "KiB", "MiB", "GiB"};

}  // namespace

std::string time_text(double ns) { return scaled(ns, 1000, kTimes); }

std::string bytes_text(double bytes) { return scaled(bytes, 1000, kBytes); }

std::string memory_text(double bytes) { return scaled(bytes, 1024, kMemory); }

std::string rate_text(double gb_per_s) {
  return std::isfinite(gb_per_s) ? three_digits(gb_per_s) + " GB/s" : "-";
}

std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace kiln
