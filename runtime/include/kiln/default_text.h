// SPDX-License-Identifier: Apache-2.0
// Is the default of a parameter in the text of KILN_OP a value of its type? Decided while
// compiling, so that a wrong one is an error at the author's line and not when the library is
// loaded.
#pragma once

#include <kiln/types.h>

namespace kiln {
namespace detail {

// The numbers are KilnType's in kiln/abi.h; a parameter may add the two bits.
enum Kind : uint8_t {
  kTensor = 1,
  kInt = 2,
  kFloat = 3,
  kBool = 4,
  kStr = 5,
  kDtype = 6,
  kDevice = 7,
  kTensorList = 8,
  kIntList = 9,
  kFloatList = 10,
  kBaseMask = 0x3f,
  kOptional = 0x40,
  kMutable = 0x80
};

enum class Fit : int {
  fits = 0,
  too_few_names,
  too_many_names,
  syntax,
  unknown_type,
  result_count,
  result_type,
  repeated_name,
  type_of_parameter = 100,
  default_of_parameter = 10000  // and 256 times its number, and its kind
};

constexpr bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}
constexpr bool text_equal(const char* begin, const char* end, const char* text) {
  for (; begin != end && *text; begin++, text++)
    if (*begin != *text) return false;
  return begin == end && !*text;
}

constexpr const char* skip_number(const char* q, const char* end, bool real) {
  const char* begin = q;
  if (q < end && (*q == '-' || *q == '+')) q++;
  const char* digits = q;
  while (q < end && *q >= '0' && *q <= '9') q++;
  if (real) {
    // inf, nan, 1e-5, 0x1p3: what strtod takes; it is read again when the library is loaded.
    while (q < end && (is_word_char(*q) || *q == '.' ||
                       ((*q == '-' || *q == '+') && (q[-1] == 'e' || q[-1] == 'E'))))
      q++;
    const bool number = (*digits >= '0' && *digits <= '9') || *digits == '.';
    if (!number && !text_equal(digits, q, "inf") && !text_equal(digits, q, "nan")) return begin;
  }
  return q == digits ? begin : q;
}
constexpr bool is_list(const char* q, const char* end, bool real) {
  if (q == end || *q != '[' || end[-1] != ']') return false;
  for (q++, end--; q < end;) {
    while (q < end && *q == ' ') q++;
    if (q == end) break;
    const char* next = skip_number(q, end, real);
    if (next == q) return false;
    for (q = next; q < end && *q == ' ';) q++;
    if (q < end && *q++ != ',') return false;
  }
  return true;
}
// As runtime/src/registry.cpp reads defaults when the library is loaded; what is wrong with one
// is known here, at the author's line.
constexpr bool is_default(const char* q, const char* end, int kind) {
  if (text_equal(q, end, "None") || text_equal(q, end, "none")) return (kind & kOptional) != 0;
  switch (kind & kBaseMask) {
    case kInt:
    case kDtype:
      return q < end && skip_number(q, end, false) == end;
    case kFloat:
      return q < end && skip_number(q, end, true) == end;
    case kBool:
      return text_equal(q, end, "True") || text_equal(q, end, "true") ||
             text_equal(q, end, "False") || text_equal(q, end, "false");
    case kStr:
      return end - q >= 2 && (*q == '\'' || *q == '"') && end[-1] == *q;
    case kIntList:
      return is_list(q, end, false);
    case kFloatList:
      return is_list(q, end, true);
    default:
      return false;
  }
}

// Its first argument in the compiler's message says which parameter (counted from 1); the kind
// chooses the text.
template <int Parameter, int Kind>
struct DefaultFits {
  static_assert(Kind == 0,
                "KILN_OP: a parameter of this type takes no default. Take Optional<...> in the "
                "function and write x=None");
  static constexpr bool value = Kind == 0;
};
#define KILN_DEFAULT_OF(kind, text)      \
  template <int Parameter>               \
  struct DefaultFits<Parameter, kind> {  \
    static_assert(Parameter < 0, text);  \
    static constexpr bool value = false; \
  };
KILN_DEFAULT_OF(kInt,
                "KILN_OP: the default of an int is not an integer. Write n=1; a parameter "
                "that takes 1.5 is a double in the function")
KILN_DEFAULT_OF(kDtype,
                "KILN_OP: the default of a Dtype is not an integer. Write torch's number "
                "of the dtype")
KILN_DEFAULT_OF(kFloat, "KILN_OP: the default of a float is not a number. Write s=1.0")
KILN_DEFAULT_OF(kBool,
                "KILN_OP: the default of a bool is neither True nor False. Write flag=True "
                "or flag=False")
KILN_DEFAULT_OF(kStr, "KILN_OP: the default of a Str is not in quotes. Write mode='fast'")
KILN_DEFAULT_OF(kIntList, "KILN_OP: the default of a list of ints is not one. Write sizes=[1, 2]")
KILN_DEFAULT_OF(kFloatList,
                "KILN_OP: the default of a list of floats is not one. Write "
                "scales=[1.0, 2.0]")
#undef KILN_DEFAULT_OF

constexpr int default_parameter(Fit fit) {
  const int code = static_cast<int>(fit) - static_cast<int>(Fit::default_of_parameter);
  return code < 0 ? 0 : code / 256 + 1;
}
constexpr int default_kind(Fit fit) {
  const int code = static_cast<int>(fit) - static_cast<int>(Fit::default_of_parameter);
  return code < 0 ? 0 : code % 256 & kBaseMask;
}

}  // namespace detail
}  // namespace kiln
