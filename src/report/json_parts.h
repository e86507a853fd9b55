// SPDX-License-Identifier: Apache-2.0
// How does a page read JSON that somebody else wrote, without an exception for what is missing?
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/json.h"
#include "base/units.h"

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

}  // namespace kiln::report
