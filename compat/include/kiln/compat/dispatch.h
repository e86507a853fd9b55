// SPDX-License-Identifier: Apache-2.0
// How does a source choose a template by dtype? AT_DISPATCH_*, in torch's two forms: lists of
// types, and cases of its own.
#pragma once

#include <kiln/compat/check.h>

namespace at {
inline namespace kc {
namespace kiln_detail {
inline ScalarType dispatched_type(ScalarType type) { return type; }
inline ScalarType dispatched_type(caffe2::TypeMeta type) { return type.toScalarType(); }
[[noreturn]] void not_dispatched(const char* name, ScalarType type);
}  // namespace kiln_detail

// acc_type: what sums of a type are kept in on the GPU.
template <class T, bool is_cuda>
struct AccumulateType {
  using type = T;
};
#define KILN_ACCUMULATE(T, gpu, cpu) \
  template <>                        \
  struct AccumulateType<T, true> {   \
    using type = gpu;                \
  };                                 \
  template <>                        \
  struct AccumulateType<T, false> {  \
    using type = cpu;                \
  };
KILN_ACCUMULATE(c10::Half, float, float)
KILN_ACCUMULATE(c10::BFloat16, float, float)
KILN_ACCUMULATE(float, float, double)
KILN_ACCUMULATE(int8_t, int64_t, int64_t)
KILN_ACCUMULATE(uint8_t, int64_t, int64_t)
KILN_ACCUMULATE(int16_t, int64_t, int64_t)
KILN_ACCUMULATE(int32_t, int64_t, int64_t)
#undef KILN_ACCUMULATE
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;
template <class T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<c10::Half> {
  using type = float;
};
template <>
struct OpMathType<c10::BFloat16> {
  using type = float;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;
}  // namespace kc
}  // namespace at

#define AT_PRIVATE_CASE_TYPE_USING_HINT(type, hint, ...)                   \
  case type: {                                                             \
    using hint [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<type>; \
    return __VA_ARGS__();                                                  \
  }
#define AT_PRIVATE_CASE_TYPE(name, type, cpp, ...) \
  case type: {                                     \
    using scalar_t [[maybe_unused]] = cpp;         \
    return __VA_ARGS__();                          \
  }
#define AT_DISPATCH_CASE(type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(type, name, ...)                                    \
  [&] {                                                                        \
    const auto& the_type = type;                                               \
    const ::at::ScalarType _st = ::at::kiln_detail::dispatched_type(the_type); \
    switch (_st) {                                                             \
      __VA_ARGS__                                                              \
      default:                                                                 \
        ::at::kiln_detail::not_dispatched(name, _st);                          \
    }                                                                          \
  }()

#define KILN_CASES_FLOATING(...) \
  AT_DISPATCH_CASE(::at::kDouble, __VA_ARGS__) AT_DISPATCH_CASE(::at::kFloat, __VA_ARGS__)
#define KILN_CASES_INTEGRAL(...)             \
  AT_DISPATCH_CASE(::at::kByte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::kChar, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::kInt, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::at::kLong, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::kShort, __VA_ARGS__)
#define KILN_CASES_COMPLEX(...)                       \
  AT_DISPATCH_CASE(::at::kComplexDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::kComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) KILN_CASES_FLOATING(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  KILN_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(::at::kHalf, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(t, ...) \
  KILN_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(t, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(t, u, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(t, __VA_ARGS__) AT_DISPATCH_CASE(u, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::at::kHalf, __VA_ARGS__) AT_DISPATCH_CASE(::at::kBFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) KILN_CASES_INTEGRAL(__VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(t, ...) \
  KILN_CASES_INTEGRAL(__VA_ARGS__) AT_DISPATCH_CASE(t, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...) KILN_CASES_COMPLEX(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  KILN_CASES_INTEGRAL(__VA_ARGS__) KILN_CASES_FLOATING(__VA_ARGS__)
#define KILN_CASES_FLOATING_AND_COMPLEX(...) \
  KILN_CASES_FLOATING(__VA_ARGS__) KILN_CASES_COMPLEX(__VA_ARGS__)
#define KILN_CASES_ALL_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) KILN_CASES_COMPLEX(__VA_ARGS__)

// For each set: alone, and with one to six further types in front.
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, KILN_CASES_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, KILN_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, KILN_CASES_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__))

#define KILN_MORE1(a, ...) AT_DISPATCH_CASE(a, __VA_ARGS__)
#define KILN_MORE2(a, b, ...) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)
#define KILN_MORE3(a, b, c, ...) KILN_MORE2(a, b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)
#define KILN_MORE4(a, b, c, d, ...) \
  KILN_MORE3(a, b, c, __VA_ARGS__) AT_DISPATCH_CASE(d, __VA_ARGS__)
#define KILN_MORE5(a, b, c, d, e, ...) \
  KILN_MORE4(a, b, c, d, __VA_ARGS__) AT_DISPATCH_CASE(e, __VA_ARGS__)
#define KILN_MORE6(a, b, c, d, e, f, ...) \
  KILN_MORE5(a, b, c, d, e, __VA_ARGS__) AT_DISPATCH_CASE(f, __VA_ARGS__)
#define KILN_MORE7(a, b, c, d, e, f, g, ...) \
  KILN_MORE6(a, b, c, d, e, f, __VA_ARGS__) AT_DISPATCH_CASE(g, __VA_ARGS__)
#define KILN_MORE8(a, b, c, d, e, f, g, h, ...) \
  KILN_MORE7(a, b, c, d, e, f, g, __VA_ARGS__) AT_DISPATCH_CASE(h, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(a, b, c, ...) \
  KILN_CASES_FLOATING(__VA_ARGS__) KILN_MORE3(a, b, c, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND4(a, b, c, d, ...) \
  KILN_CASES_FLOATING(__VA_ARGS__) KILN_MORE4(a, b, c, d, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND5(a, b, c, d, e, ...) \
  KILN_CASES_FLOATING(__VA_ARGS__) KILN_MORE5(a, b, c, d, e, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND(a, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) KILN_MORE1(a, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(a, b, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) KILN_MORE2(a, b, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(a, b, c, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) KILN_MORE3(a, b, c, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES_AND(a, ...) \
  KILN_CASES_COMPLEX(__VA_ARGS__) KILN_MORE1(a, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(a, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE1(a, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(a, b, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE2(a, b, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(a, b, c, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE3(a, b, c, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(a, b, c, d, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE4(a, b, c, d, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND5(a, b, c, d, e, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE5(a, b, c, d, e, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND6(a, b, c, d, e, f, ...) \
  KILN_CASES_FLOATING_AND_COMPLEX(__VA_ARGS__) KILN_MORE6(a, b, c, d, e, f, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(a, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE1(a, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(a, b, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE2(a, b, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(a, b, c, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE3(a, b, c, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(a, b, c, d, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE4(a, b, c, d, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND5(a, b, c, d, e, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE5(a, b, c, d, e, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND6(a, b, c, d, e, f, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE6(a, b, c, d, e, f, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND7(a, b, c, d, e, f, g, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE7(a, b, c, d, e, f, g, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND8(a, b, c, d, e, f, g, h, ...) \
  KILN_CASES_ALL_AND_COMPLEX(__VA_ARGS__) KILN_MORE8(a, b, c, d, e, f, g, h, __VA_ARGS__)
#define KILN_AND1(cases, a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE1(a, __VA_ARGS__))
#define KILN_AND2(cases, a, b, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE2(a, b, __VA_ARGS__))
#define KILN_AND3(cases, a, b, c, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE3(a, b, c, __VA_ARGS__))
#define KILN_AND4(cases, a, b, c, d, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE4(a, b, c, d, __VA_ARGS__))
#define KILN_AND5(cases, a, b, c, d, e, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE5(a, b, c, d, e, __VA_ARGS__))
#define KILN_AND6(cases, a, b, c, d, e, f, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE6(a, b, c, d, e, f, __VA_ARGS__))
#define KILN_AND7(cases, a, b, c, d, e, f, g, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE7(a, b, c, d, e, f, g, __VA_ARGS__))
#define KILN_AND8(cases, a, b, c, d, e, f, g, h, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, cases(__VA_ARGS__) KILN_MORE8(a, b, c, d, e, f, g, h, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(...) KILN_AND1(KILN_CASES_FLOATING, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) KILN_AND2(KILN_CASES_FLOATING, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) KILN_AND3(KILN_CASES_FLOATING, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(...) KILN_AND4(KILN_CASES_FLOATING, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND5(...) KILN_AND5(KILN_CASES_FLOATING, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(...) KILN_AND1(KILN_CASES_INTEGRAL, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(...) KILN_AND1(KILN_CASES_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) KILN_AND1(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) KILN_AND2(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) KILN_AND3(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND4(...) KILN_AND4(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(...) \
  KILN_AND1(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(...) \
  KILN_AND2(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(...) \
  KILN_AND3(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(...) \
  KILN_AND4(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND5(...) \
  KILN_AND5(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND6(...) \
  KILN_AND6(KILN_CASES_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(...) \
  KILN_AND1(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(...) \
  KILN_AND2(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(...) \
  KILN_AND3(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(...) \
  KILN_AND4(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND5(...) \
  KILN_AND5(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND6(...) \
  KILN_AND6(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND7(...) \
  KILN_AND7(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND8(...) \
  KILN_AND8(KILN_CASES_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_ALL_TYPES_AND(::at::kHalf, type, name, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(type, name, ...)                                       \
  AT_DISPATCH_SWITCH(type, name,                                                       \
                     AT_PRIVATE_CASE_TYPE_USING_HINT(::at::kInt, index_t, __VA_ARGS__) \
                         AT_PRIVATE_CASE_TYPE_USING_HINT(::at::kLong, index_t, __VA_ARGS__))
