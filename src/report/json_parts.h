// SPDX-License-Identifier: Apache-2.0
// How does a page read JSON that somebody else wrote, without an exception for what is missing?
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/json.h"

namespace kiln::report {

inline const Json& part(const Json& json, const char* key) {
  static const Json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(key);
  return found != json.end() ? *found : kNothing;
}

inline double number(const Json& json, const char* key) {
  const Json& value = part(json, key);
  return value.is_number() ? value.get<double>() : 0;
}

inline std::string words(const Json& json, const char* key) {
  const Json& value = part(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// Three digits and a unit.
inline std::string time_text(double ns) {
  const double size = std::abs(ns);
  const auto digits = [](double v) {
    return fmt::format("{:.{}f}", v, std::abs(v) < 10 ? 2 : std::abs(v) < 100 ? 1 : 0);
  };
  if (size < 1e3) return fmt::format("{:.0f} ns", ns);
  if (size < 1e6) return digits(ns / 1e3) + " us";
  if (size < 1e9) return digits(ns / 1e6) + " ms";
  return digits(ns / 1e9) + " s";
}

}  // namespace kiln::report
