// SPDX-License-Identifier: Apache-2.0
// What is an op called, and is the name free? Decided while compiling; registry.cpp reads the same
// name when the library is loaded, and compares those of all files.
#pragma once

#include <kiln/spec.h>

namespace kiln {
namespace detail {

// The name of an op as a type: it is the key by which the compiler sees that a name is taken.
template <char... C>
struct OpName {};

// "name.overload" of a whole schema, else the last word of the function as it is written.
struct NameInText {
  const char* begin;
  int size;
  constexpr NameInText(const char* spec, const char* function) : begin(function), size(0) {
    const char* q = spec ? spec : "";
    while (*q == ' ' || *q == '\n' || *q == '\t') q++;
    const char* first = q;
    while (is_word_char(*q)) q++;
    const bool tensor = q - first == 6 && first[0] == 'T' && first[5] == 'r';
    if (q > first && !tensor && (*q == '(' || *q == '.')) {
      begin = first;
      while (is_word_char(first[size]) || first[size] == '.') size++;
      return;
    }
    for (q = function; *q; q++)
      if (*q == ':') begin = q + 1;
    while (*begin == ' ') begin++;
    while (is_word_char(begin[size])) size++;
  }
  // torch.ops.<library> has attributes of its own, which hide an op of such a name.
  constexpr bool is_kept() const {
    int plain = 0;
    while (plain < size && begin[plain] != '.') plain++;
    const char* last = begin + plain;
    return text_equal(begin, last, "name") ||
           (plain > 4 && begin[0] == '_' && begin[1] == '_' && last[-1] == '_' && last[-2] == '_');
  }
};
template <class Names, int... I>
OpName<Names::name.begin[I]...> op_name(Index<I...>);

// Two ops of one name would define one function twice. A static_assert cannot see the other op.
template <class Name, int Id>
struct OpNameIsTaken {
  friend void an_op_of_this_name_exists_already(Name) {}
  static constexpr bool value = true;
};

}  // namespace detail
}  // namespace kiln
