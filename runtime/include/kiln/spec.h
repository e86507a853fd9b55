// SPDX-License-Identifier: Apache-2.0
// Does the text given to KILN_OP fit the function? Decided while compiling, by one constexpr pass
// over the text.
//
//   spec    := params | name ['.' overload] '(' params ')' ['->' results]
//   params  := [param {',' param}]          param := '*' | [type] name ['=' default]
//   type    := 'Tensor' ['(' letter '!' ')'] | 'int' | 'SymInt' | 'float' | 'bool' | 'str' |
//   'ScalarType' | 'Device',
//              then '[]' for a list, then '?' for an optional
//   results := type | '(' [type {',' type}] ')'
#pragma once

#include <kiln/default_text.h>
#include <kiln/types.h>

namespace kiln {
namespace detail {

template <int... I>
struct Index {};
#ifdef __clang__
template <class T, T... I>
using IndexOf = Index<I...>;
template <int N>
using IndexUpTo = __make_integer_seq<IndexOf, int, N>;
#else
template <int N>
using IndexUpTo = Index<__integer_pack(N)...>;
#endif

class SpecReader {
 public:
  constexpr explicit SpecReader(const char* text) : p_(text) {}

  constexpr Fit check(const uint8_t* kinds, int count, const uint8_t* result_kinds,
                      int result_count) {
    const bool whole = is_whole();
    if (whole) {
      while (*p_ != '(') p_++;
      p_++;
    }
    params_ = p_;
    int seen = 0;
    skip();
    while (*p_ && *p_ != ')') {
      if (*p_ == '*') {
        p_++;
      } else {
        const Fit fit = check_parameter(seen, seen < count ? kinds[seen] : -1);
        if (fit != Fit::fits) return fit;
        seen++;
      }
      skip();
      if (*p_ == ',') {
        p_++;
        skip();
      } else if (*p_ && *p_ != ')') {
        return Fit::syntax;
      }
    }
    if (seen < count) return Fit::too_few_names;
    if (seen > count) return Fit::too_many_names;
    if (!whole) return *p_ ? Fit::syntax : Fit::fits;
    if (*p_ != ')') return Fit::syntax;
    p_++;
    skip();
    if (!*p_) return Fit::fits;
    return check_results(result_kinds, result_count);
  }

 private:
  static constexpr bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  // "name(" or "name.overload(" begins a whole schema; "Tensor(a!) x" does not.
  constexpr bool is_whole() const {
    const char* q = p_;
    while (*q == ' ') q++;
    const char* begin = q;
    while (is_word_char(*q)) q++;
    if (q == begin || text_equal(begin, q, "Tensor")) return false;
    return *q == '(' || *q == '.';
  }
  constexpr void skip() {
    while (*p_ == ' ' || *p_ == '\n' || *p_ == '\t') p_++;
  }
  constexpr void word() {
    while (is_word_char(*p_)) p_++;
  }

  // After a word that may be a type: its marks (a!), [], ?. `type` becomes the kind, or -1 when the
  // word is not a type.
  constexpr void skip_type_marks(const char* first, int& type) {
    const char* last = p_;
    marked_ = false;
    bool written = false, list = false, optional = false;
    if (*p_ == '(') {
      while (*p_ && *p_ != ')') written |= *p_++ == '!';
      if (*p_) p_++;
      marked_ = true;
    } else if (*p_ == '!') {
      written = marked_ = true;
      p_++;
    }
    if (*p_ == '[') {
      while (*p_ && *p_ != ']') p_++;
      if (*p_) p_++;
      list = marked_ = true;
    }
    if (*p_ == '?') {
      p_++;
      optional = marked_ = true;
    }
    int base = -1;
    if (text_equal(first, last, "Tensor"))
      base = list ? kTensorList : kTensor;
    else if (text_equal(first, last, "int") || text_equal(first, last, "SymInt"))
      base = list ? kIntList : kInt;
    else if (text_equal(first, last, "float"))
      base = list ? kFloatList : kFloat;
    else if (text_equal(first, last, "bool"))
      base = kBool;
    else if (text_equal(first, last, "str"))
      base = kStr;
    else if (text_equal(first, last, "ScalarType"))
      base = kDtype;
    else if (text_equal(first, last, "Device"))
      base = kDevice;
    type = base < 0 ? -1 : base | (written ? kMutable : 0) | (optional ? kOptional : 0);
  }
  static constexpr bool same(int type, uint8_t kind) { return type == kind; }

  // `kind`: of the function's parameter; -1 where it has none so far.
  constexpr Fit check_parameter(int number, int kind) {
    if (!is_letter(*p_)) return Fit::syntax;
    const char* first = p_;
    word();
    const char* last = p_;
    int type = 0;
    skip_type_marks(first, type);
    skip();
    if (is_letter(*p_)) {
      if (type <= 0) return Fit::unknown_type;
      first = p_;
      word();
      last = p_;
      if (kind >= 0 && !same(type, static_cast<uint8_t>(kind)))
        return static_cast<Fit>(static_cast<int>(Fit::type_of_parameter) + number);
    } else if (marked_) {
      return Fit::syntax;
    }
    if (stands_before(first, last)) return Fit::repeated_name;
    skip();
    if (*p_ != '=') return Fit::fits;
    p_++;
    skip();
    const char* value = p_;
    skip_default();
    const char* end = p_;
    while (end > value && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t')) end--;
    if (kind < 0 || is_default(value, end, kind)) return Fit::fits;
    return static_cast<Fit>(static_cast<int>(Fit::default_of_parameter) + 256 * number + kind);
  }

  // Is the word the name of an earlier parameter? Names are what a ',', '=', ')' or blank follows
  // and no other word does.
  constexpr bool stands_before(const char* first, const char* last) const {
    int depth = 0;
    for (const char* q = params_; q < first; q++) {
      depth += *q == '[' || *q == '(' ? 1 : *q == ']' || *q == ')' ? -1 : 0;
      if (depth || !is_letter(*q) || (q > params_ && is_word_char(q[-1]))) continue;
      const char* end = q;
      while (is_word_char(*end)) end++;
      const char* next = end;
      while (*next == ' ') next++;
      const bool value = q > params_ && (q[-1] == '=' || q[-1] == '\'' || q[-1] == '"');
      if (!value && (*next == ',' || *next == '=') && end - q == last - first) {
        bool equal_so_far = true;
        for (int i = 0; i < last - first; i++) equal_so_far &= q[i] == first[i];
        if (equal_so_far) return true;
      }
    }
    return false;
  }

  constexpr void skip_default() {
    int depth = 0;
    char quote = 0;
    for (; *p_; p_++) {
      if (quote) {
        if (*p_ == quote) quote = 0;
      } else if (*p_ == '\'' || *p_ == '"') {
        quote = *p_;
      } else if (*p_ == '[' || *p_ == '(') {
        depth++;
      } else if ((*p_ == ']' || *p_ == ')') && depth > 0) {
        depth--;
      } else if (depth == 0 && (*p_ == ',' || *p_ == ')')) {
        return;
      }
    }
  }

  constexpr Fit check_results(const uint8_t* kinds, int count) {
    if (p_[0] != '-' || p_[1] != '>') return Fit::syntax;
    p_ += 2;
    skip();
    const bool several = *p_ == '(';
    if (several) p_++;
    int seen = 0;
    skip();
    while (is_letter(*p_)) {
      const char* first = p_;
      word();
      int type = 0;
      skip_type_marks(first, type);
      if (type < 0) return Fit::unknown_type;
      if (seen >= count) return Fit::result_count;
      if (!same(type, kinds[seen])) return Fit::result_type;
      seen++;
      skip();
      if (is_letter(*p_)) word();  // a name for the result
      skip();
      if (*p_ == ',') p_++;
      skip();
    }
    if (several && *p_ == ')') p_++;
    skip();
    if (*p_) return Fit::syntax;
    return seen == count ? Fit::fits : Fit::result_count;
  }

  const char* p_;
  const char* params_ = nullptr;
  bool marked_ = false;
};

template <class F>
constexpr Fit spec_fit(const char* spec) {
  if (spec == nullptr || *spec == 0) return Fit::fits;  // names are made up: arg0, arg1, ...
  return SpecReader(spec).check(F::parameter_kinds, F::parameter_count, F::result_kinds,
                                F::result_count);
}

// Its arguments in the compiler's message say which parameter (counted from 1) has another type in
// C++ than in the text.
template <int Parameter, bool Fits>
struct TypeOfParameterFits {
  static_assert(
      Fits,
      "KILN_OP: the schema and the function give this parameter different types. Write the "
      "type that fits: Tensor, int, float (C++ double), bool, str; Tensor(a!) is Tensor&");
  static constexpr bool value = Fits;
};

}  // namespace detail
}  // namespace kiln

#define KILN_SPEC_FITS(function, spec, name)                                                       \
  static constexpr ::kiln::detail::Fit name =                                                      \
      ::kiln::detail::spec_fit<::kiln::detail::Signature<decltype(&function)>>(spec);              \
  static_assert(name != ::kiln::detail::Fit::too_few_names,                                        \
                "KILN_OP(" #function                                                               \
                "): the text names fewer parameters than the function has. Name each, in order");  \
  static_assert(name != ::kiln::detail::Fit::too_many_names,                                       \
                "KILN_OP(" #function                                                               \
                "): the text names more parameters than the function has. Name each once");        \
  static_assert(name != ::kiln::detail::Fit::syntax,                                               \
                "KILN_OP(" #function                                                               \
                "): cannot read the text. Write \"a, b=1, *, c\" "                                 \
                "or a PyTorch schema \"name(Tensor a, int b=1) -> Tensor\"");                      \
  static_assert(                                                                                   \
      name != ::kiln::detail::Fit::unknown_type,                                                   \
      "KILN_OP(" #function                                                                         \
      "): unknown type in the schema. Use Tensor, int, SymInt, float, bool, str, ScalarType, "     \
      "Device, their lists (int[]) and optionals (int?)");                                         \
  static_assert(                                                                                   \
      name != ::kiln::detail::Fit::result_count,                                                   \
      "KILN_OP(" #function                                                                         \
      "): the schema and the function have different numbers of results. Change one of them");     \
  static_assert(                                                                                   \
      name != ::kiln::detail::Fit::result_type,                                                    \
      "KILN_OP(" #function                                                                         \
      "): a result in the schema has a different type from the function's. Change one of them");   \
  static_assert(name != ::kiln::detail::Fit::repeated_name,                                        \
                "KILN_OP(" #function                                                               \
                "): the text gives two parameters the same name. Give each its own");              \
  static_assert(::kiln::detail::DefaultFits<::kiln::detail::default_parameter(name),               \
                                            ::kiln::detail::default_kind(name)>::value,            \
                "KILN_OP(" #function "): a default does not fit its parameter");                   \
  static_assert(                                                                                   \
      ::kiln::detail::TypeOfParameterFits<static_cast<int>(name) - 99,                             \
                                          (name < ::kiln::detail::Fit::type_of_parameter ||        \
                                           name >=                                                 \
                                               ::kiln::detail::Fit::default_of_parameter)>::value, \
      "KILN_OP(" #function "): a type in the schema differs from the C++ parameter's");
