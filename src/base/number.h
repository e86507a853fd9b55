// SPDX-License-Identifier: Apache-2.0
// How are fractions read and printed whatever the locale of the process is? The engine and op
// libraries live in processes that others have set to German or Turkish: no other place may ask the
// C library for a decimal point.
#pragma once

#include <locale.h>

#include <optional>
#include <string_view>

namespace kiln {

// The number at the start of the text, as strtod reads it in the "C" locale, without its leading
// blanks; `used` becomes the number of characters it takes, 0 when there is none.
double leading_number(std::string_view text, size_t* used);
// The whole text as a number, or nothing.
std::optional<double> to_number(std::string_view text);

// printf and similar functions write in the "C" locale while this lives, in this thread alone.
class CLocale {
 public:
  CLocale();
  ~CLocale();
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  locale_t before_;
};

}  // namespace kiln
