// SPDX-License-Identifier: Apache-2.0
// How does one op serve several dtypes, or several compile-time sizes? dispatch<float, half>(dtype,
// f) calls f with a tag whose ::type is the C++ type; dispatch_value<64, 128>(n, f) with a tag
// whose ::value is the constant.
#pragma once

#include <kiln/check.h>
#include <kiln/types.h>

namespace kiln {

template <class T>
struct Type {
  using type = T;
};
template <int64_t N>
struct Value {
  static constexpr int64_t value = N;
  constexpr operator int64_t() const { return N; }
};

namespace detail {
[[noreturn]] void no_dtype(Dtype seen, const Dtype* known, size_t count);
[[noreturn]] void no_value(int64_t seen, const int64_t* known, size_t count);
}  // namespace detail

template <class... Ts, class F>
void dispatch(Dtype dtype, F&& f) {
  // One branch is taken: the fold stops at the first type whose dtype fits.
  const bool found = ((dtype == dtype_of<Ts> && (f(Type<Ts>{}), true)) || ...);
  if (!found) {
    static constexpr Dtype known[] = {dtype_of<Ts>...};
    detail::no_dtype(dtype, known, sizeof...(Ts));
  }
}

template <int64_t... Ns, class F>
void dispatch_value(int64_t value, F&& f) {
  const bool found = ((value == Ns && (f(Value<Ns>{}), true)) || ...);
  if (!found) {
    static constexpr int64_t known[] = {Ns...};
    detail::no_value(value, known, sizeof...(Ns));
  }
}

}  // namespace kiln
