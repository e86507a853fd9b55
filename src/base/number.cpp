// SPDX-License-Identifier: Apache-2.0
// How are fractions read and printed whatever the locale of the process is?
#include "base/number.h"

#include <cstdlib>
#include <string>

#include "base/ascii.h"

namespace kiln {
namespace {

locale_t c_locale() {
  // Never null: the C library has this locale built in.
  static const locale_t kept = newlocale(LC_ALL_MASK, "C", nullptr);
  return kept;
}

}  // namespace

double leading_number(std::string_view text, size_t* used) {
  *used = 0;
  if (text.empty() || is_blank(text[0])) return 0;
  const std::string ended(text);
  char* end = nullptr;
  const double value = strtod_l(ended.c_str(), &end, c_locale());
  *used = static_cast<size_t>(end - ended.c_str());
  return value;
}

std::optional<double> to_number(std::string_view text) {
  size_t used = 0;
  const double value = leading_number(text, &used);
  if (used == 0 || used != text.size()) return std::nullopt;
  return value;
}

CLocale::CLocale() : before_(uselocale(c_locale())) {}
CLocale::~CLocale() { uselocale(before_); }

}  // namespace kiln
