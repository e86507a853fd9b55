// SPDX-License-Identifier: Apache-2.0
// Does every word of a fake rule mean something? Decided while compiling, so that `kiln build`
// reports a misspelt rule at its line. kiln.load parses the whole grammar
// (docs/reference/fake-rules.md); here only words and brackets are looked at, which costs no time.
#pragma once

#include <kiln/types.h>

namespace kiln {
namespace detail {

// Their names are the message: a compiler prints which function it could not call in a constant
// expression, and the build turns the underscores into blanks.
void the_fake_rule_is_empty();
void the_fake_rule_has_a_bracket_without_its_partner();
// Its number is printed too, and the build finds the word in the source line: a compiler shows no
// text of a constant expression.
template <int Word>
void the_fake_rule_has_an_unknown_word();

template <int Word = 1>
constexpr void unknown_word(int word) {
  if constexpr (Word < 24)
    word == Word ? the_fake_rule_has_an_unknown_word<Word>() : unknown_word<Word + 1>(word);
  else
    the_fake_rule_has_an_unknown_word<0>();
}

// The words of the grammar. tests/python/test_op_mistakes.py compares them with the parser's.
inline constexpr const char* kRuleWords[] = {
    "none", "like",  "broadcast", "promote", "float_of", "min",   "max",    "ceil_div",
    "len",  "shape", "dtype",     "device",  "ndim",     "numel", "f16",    "bf16",
    "f32",  "f64",   "i8",        "i16",     "i32",      "i64",   "u8",     "u16",
    "u32",  "u64",   "bool",      "c32",     "c64",      "c128",  "f8e5m2", "f8e4m3"};

class RuleWords {
 public:
  // `names`: the text given to KILN_OP, or null where the names are made up: arg0, arg1, ...
  constexpr RuleWords(const char* rule, const char* names) : p_(rule), names_(names) {}

  constexpr void check() {
    if (!*p_) the_fake_rule_is_empty();
    int round = 0, square = 0, word = 0;
    while (*p_) {
      round += *p_ == '(' ? 1 : *p_ == ')' ? -1 : 0;
      square += *p_ == '[' ? 1 : *p_ == ']' ? -1 : 0;
      if (round < 0 || square < 0) the_fake_rule_has_a_bracket_without_its_partner();
      if (!is_word(*p_)) {
        p_++;
        continue;
      }
      const char* first = p_;
      while (is_word(*p_)) p_++;
      word++;
      if (!(*first >= '0' && *first <= '9') && !is_known(first, p_)) unknown_word(word);
    }
    if (round || square) the_fake_rule_has_a_bracket_without_its_partner();
  }

 private:
  static constexpr bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  }
  static constexpr bool begins(const char* text, const char* first, const char* last) {
    for (; first != last; first++, text++)
      if (*text != *first) return false;
    return !is_word(*text);
  }
  constexpr bool is_known(const char* first, const char* last) const {
    for (const char* word : kRuleWords)
      if (begins(word, first, last)) return true;
    if (!names_ || !*names_) return first[0] == 'a' && first[1] == 'r' && first[2] == 'g';
    for (const char* at = names_; *at; at++)
      if ((at == names_ || !is_word(at[-1])) && begins(at, first, last)) return true;
    return false;
  }

  const char* p_;
  const char* names_;
};

// What .fake(...) takes. `Names::text` is the text given to KILN_OP.
template <class Names>
struct FakeRule {
  const char* text;
#ifdef __cpp_consteval
  consteval FakeRule(const char* rule) : text(rule) { RuleWords(rule, Names::text).check(); }
#else
  constexpr FakeRule(const char* rule) : text(rule) {}
#endif
};

}  // namespace detail
}  // namespace kiln
