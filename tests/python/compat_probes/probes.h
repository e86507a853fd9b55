// SPDX-License-Identifier: Apache-2.0
// What does a probe see, and how is its result told? The tensors that expressions name, fresh for
// each of them, and a text of any value that both kinds of headers give: type, value, strides.
#pragma once

#include <torch/extension.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace probes {

inline std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

template <class T>
std::string show(const T& value);

inline std::string show_tensor(const at::Tensor& t, bool with_values) {
  if (!t.defined()) return "undefined";
  std::string text = std::string("tensor ") + c10::toString(t.scalar_type()) + " [";
  for (int64_t d = 0; d < t.dim(); d++) text += (d ? "," : "") + std::to_string(t.size(d));
  text += "] by [";
  for (int64_t d = 0; d < t.dim(); d++) text += (d ? "," : "") + std::to_string(t.stride(d));
  text += "] at " + std::to_string(t.storage_offset()) + " on " + t.device().str();
  if (t.requires_grad()) text += t.is_leaf() ? " grad leaf" : " grad";
  if (!with_values || !t.device().is_cpu()) return text;
  at::Tensor plain = t.detach();
  if (plain.is_complex()) plain = at::view_as_real(plain.to(at::kComplexDouble));
  plain = plain.to(plain.scalar_type() == at::kLong ? at::kLong : at::kDouble).contiguous();
  text += ":";
  for (int64_t k = 0; k < plain.numel() && k < 64; k++)
    text += " " + (plain.scalar_type() == at::kLong
                       ? std::to_string(static_cast<const int64_t*>(plain.data_ptr())[k])
                       : number(static_cast<const double*>(plain.data_ptr())[k]));
  return text;
}

template <class T>
struct Show {
  static std::string of(const T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      return v ? "bool true" : "bool false";
    } else if constexpr (std::is_enum_v<T>) {
      return "enum " + std::to_string(static_cast<long long>(v));
    } else if constexpr (std::is_integral_v<T>) {
      const std::string kind = std::is_signed_v<T> ? "int" : "uint";
      return kind + std::to_string(8 * sizeof(T)) + " " + std::to_string(v);
    } else if constexpr (std::is_floating_point_v<T>) {
      return "real" + std::to_string(8 * sizeof(T)) + " " + number(static_cast<double>(v));
    } else if constexpr (std::is_base_of_v<at::Tensor, T>) {
      return show_tensor(v, true);
    } else {
      std::ostringstream stream;
      stream << v;
      return "text " + stream.str();
    }
  }
};
template <class T>
std::string list_of(const char* name, const T& list) {
  std::string text = std::string(name) + "{";
  bool first = true;
  for (const auto& one : list) {
    text += (first ? "" : ", ") + show(one);
    first = false;
  }
  return text + "}";
}
template <class T>
struct Show<std::optional<T>> {
  static std::string of(const std::optional<T>& v) { return v ? "some " + show(*v) : "none"; }
};
template <class T>
struct Show<std::vector<T>> {
  static std::string of(const std::vector<T>& v) { return list_of("vector", v); }
};
template <class T>
struct Show<c10::ArrayRef<T>> {
  static std::string of(c10::ArrayRef<T> v) { return list_of("ref", v); }
};
template <class A, class B>
struct Show<std::pair<A, B>> {
  static std::string of(const std::pair<A, B>& v) { return show(v.first) + " & " + show(v.second); }
};
template <class... T>
struct Show<std::tuple<T...>> {
  static std::string of(const std::tuple<T...>& v) {
    return std::apply([](const auto&... one) { return ((show(one) + "; ") + ...); }, v);
  }
};
template <class T>
struct Show<c10::complex<T>> {
  static std::string of(const c10::complex<T>& v) {
    return "complex " + show(v.real()) + " " + show(v.imag());
  }
};
template <>
struct Show<c10::Half> {
  static std::string of(c10::Half v) { return "half " + std::to_string(v.x); }
};
template <>
struct Show<c10::BFloat16> {
  static std::string of(c10::BFloat16 v) { return "bfloat16 " + std::to_string(v.x); }
};
template <>
struct Show<c10::Scalar> {
  static std::string of(const c10::Scalar& v) {
    const std::string type = c10::toString(v.type());
    if (v.isComplex()) return "scalar " + type + " " + show(v.toComplexDouble());
    if (v.isFloatingPoint()) return "scalar " + type + " " + number(v.toDouble());
    if (v.isBoolean()) return "scalar " + type + (v.toBool() ? " true" : " false");
    return "scalar " + type + " " + std::to_string(v.toLong());
  }
};
template <>
struct Show<std::string> {
  static std::string of(const std::string& v) { return "string " + v; }
};
template <class T>
std::string show(const T& value) {
  return Show<std::remove_cv_t<T>>::of(value);
}

template <class F>
std::string told(F&& f) {
  using R = decltype(f());
  if constexpr (std::is_void_v<R>) {
    f();
    return "void";
  } else {
    auto&& value = f();
    if constexpr (std::is_array_v<std::remove_reference_t<R>> || std::is_pointer_v<std::decay_t<R>>)
      return show(std::string(value));
    else
      return show(value);
  }
}

// What an expression may name.
struct Given {
  at::Tensor x = at::arange(12, at::kFloat).reshape({3, 4}) / 7;
  at::Tensor y = at::arange(12, at::kFloat).flip(0).reshape({3, 4}) * 0.1 - 0.3;
  at::Tensor v = at::arange(4, at::kFloat) - 1.5;
  at::Tensor w = at::arange(12, at::kDouble).reshape({3, 4}) / 3;
  at::Tensor i = (at::arange(12, at::kLong).reshape({3, 4}) * 7).remainder(5);
  at::Tensor j = at::arange(4, at::kInt) - 1;
  at::Tensor k = at::arange(3, at::kLong);
  at::Tensor u = at::arange(5, at::kByte);
  at::Tensor b = at::arange(12, at::kLong).reshape({3, 4}).remainder(2).to(at::kBool);
  at::Tensor z = at::view_as_complex(at::arange(8, at::kFloat).reshape({2, 2, 2}) - 2.5);
  at::Tensor h = (at::arange(3, at::kFloat) / 3).to(at::kHalf);
  at::Tensor e = at::zeros({0, 3});
  at::Tensor s = at::full({}, 0.1);
  at::Tensor n = x.t();
  at::Tensor m = at::arange(16, at::kFloat).reshape({4, 4}) / 9 - 0.7;
  at::Tensor img = at::arange(120, at::kFloat).reshape({2, 3, 4, 5}) / 11;
  at::Tensor cl = img.contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor vol = at::arange(48, at::kFloat).reshape({1, 2, 2, 3, 4});
  at::Tensor g = (at::arange(12, at::kFloat).reshape({3, 4}) / 5).requires_grad_(true);
  at::Tensor undefined;
  std::vector<int64_t> dims = {0, 1};
  std::optional<int64_t> maybe = 1, nothing;
  // Dtype, shape and strides of a tensor whose contents nobody wrote.
  static std::string frame(const at::Tensor& t) { return show_tensor(t, false); }
  template <class T>
  static std::string text(const T& value) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
  }
};

}  // namespace probes

#define PROBE(number, ...)                                                \
  std::string p##number() {                                               \
    return probes::told([&]() -> decltype(auto) { return __VA_ARGS__; }); \
  }
