// SPDX-License-Identifier: Apache-2.0
// How does a source refuse its arguments? TORCH_CHECK and its family, with torch's texts and
// exception types. Pieces are put together in the archive: no stream header is compiled here.
#pragma once

#include <kiln/compat/array_ref.h>

#include <exception>

namespace at {
inline namespace kc {
class Tensor;
class DeprecatedTypeProperties;
}  // namespace kc
}  // namespace at

namespace c10 {
inline namespace kc {
class Scalar;
class TensorOptions;

enum class ErrorKind {
  runtime,
  index,
  value,
  type,
  not_implemented,
  out_of_memory,
  linear_algebra,
  python
};

struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, const std::string& text) : kind_(kind), text_(text) {}
  explicit Error(const std::string& text) : Error(ErrorKind::runtime, text) {}
  Error(const SourceLocation&, const std::string& text) : Error(text) {}
  Error(const std::string& text, const std::string& backtrace) : Error(text + "\n" + backtrace) {}
  Error(const Error&) = default;
  ~Error() override;
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& msg() const { return text_; }
  const char* what_without_backtrace() const noexcept { return text_.c_str(); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
  std::string text_;
};
#define KILN_ERROR(Name, kind)                                               \
  class Name : public Error {                                                \
   public:                                                                   \
    explicit Name(const std::string& text) : Error(ErrorKind::kind, text) {} \
    Name(const SourceLocation&, const std::string& text) : Name(text) {}     \
  };
KILN_ERROR(IndexError, index)
KILN_ERROR(ValueError, value)
KILN_ERROR(TypeError, type)
KILN_ERROR(NotImplementedError, not_implemented)
KILN_ERROR(OutOfMemoryError, out_of_memory)
KILN_ERROR(LinAlgError, linear_algebra)
#undef KILN_ERROR

namespace kiln_detail {

template <class T>
struct StreamFor {
  using type = std::basic_ostringstream<char, std::char_traits<char>, std::allocator<char>>;
};

// What std::ostream would print, piece by piece.
class Message {
 public:
  Message& put(const char* text);
  Message& put(const std::string& text);
  Message& put_text(const char* text, size_t size);
  Message& put(char one);
  Message& put(signed char one) { return put(static_cast<char>(one)); }
  Message& put(unsigned char one) { return put(static_cast<char>(one)); }
  Message& put(bool value) { return put(static_cast<long long>(value)); }
  Message& put(int value) { return put(static_cast<long long>(value)); }
  Message& put(short value) { return put(static_cast<long long>(value)); }
  Message& put(unsigned short value) { return put(static_cast<long long>(value)); }
  Message& put(unsigned value) { return put(static_cast<long long>(value)); }
  Message& put(long value) { return put(static_cast<long long>(value)); }
  Message& put(unsigned long value) { return put(static_cast<unsigned long long>(value)); }
  Message& put(long long value);
  Message& put(unsigned long long value);
  Message& put(float value) { return put(static_cast<double>(value)); }
  Message& put(double value);
  Message& put(const void* value);
  Message& put(ScalarType type) { return put(toString(type)); }
  Message& put(caffe2::TypeMeta type) { return put(type.name()); }
  Message& put(DeviceType type) { return put(DeviceTypeName(type, true)); }
  Message& put(const Device& device) { return put(device.str()); }
  Message& put(Layout layout);
  Message& put(MemoryFormat format);
  Message& put(const at::Tensor& tensor);
  Message& put(const Scalar& scalar);
  Message& put(const TensorOptions& options);
  Message& put(const at::DeprecatedTypeProperties& type);
  template <class T>
  Message& put(const complex<T>& value) {
    return put('(').put(value.real()).put(',').put(value.imag()).put(')');
  }
  Message& put(std::string_view text_) { return put_text(text_.data(), text_.size()); }
  Message& put(std::nullptr_t) { return put("nullptr"); }
  Message& put(Half value) { return put(static_cast<float>(value)); }
  Message& put(BFloat16 value) { return put(static_cast<float>(value)); }
  Message& put(std::nullopt_t) { return put("nullopt"); }
  template <class T>
  Message& put(ArrayRef<T> list) {
    put('[');
    for (size_t i = 0; i < list.size(); i++) {
      if (i) put(", ");
      put(list[i]);
    }
    return put(']');
  }
  // Unlike the borrowed list: without brackets and commas.
  template <class T>
  Message& put(const std::vector<T>& list) {
    bool first = true;
    for (const auto& one : list) {
      if (!first) put(' ');
      put(static_cast<const T&>(one));
      first = false;
    }
    return *this;
  }
  template <class T>
  Message& put(const std::optional<T>& value) {
    return value ? put(*value) : put("nullopt");
  }
  // What the source itself can print; those who write an operator<< get <sstream> (leaks.def).
  template <class T,
            class = std::enable_if_t<std::is_class_v<T> || std::is_enum_v<T> || std::is_union_v<T>>>
  Message& put(const T& value) {
    if constexpr (std::is_enum_v<T> && std::is_convertible_v<T, long long>) {
      return put(static_cast<long long>(value));
    } else {
      typename StreamFor<T>::type stream;
      stream << value;
      return put(stream.str());
    }
  }
  std::string text;
};

template <class... A>
__attribute__((noinline, cold)) std::string join(const A&... pieces) {
  Message message;
  ((void)message.put(pieces), ...);
  return static_cast<std::string&&>(message.text);
}
inline std::string join() { return std::string(); }

struct Place {
  const char* function;
  const char* file;
  uint32_t line;
};
[[noreturn]] void fail(Place place, ErrorKind kind, const std::string& text);
[[noreturn]] void fail_without_text(Place place, const char* condition);
// The text; where the condition asks for a CUDA tensor and there is no GPU, also what to do.
std::string with_device_hint(const char* condition, std::string text);
[[noreturn]] void fail_internally(Place place, const char* condition, const std::string& text);
[[noreturn]] void fail_plainly(const std::string& text);  // std::runtime_error
void warn(Place place, const std::string& text);

template <class... A>
[[noreturn]] __attribute__((noinline, cold)) void check_failed(Place place, ErrorKind kind,
                                                               const char* condition,
                                                               const A&... pieces) {
  if constexpr (sizeof...(A) == 0)
    fail_without_text(place, condition);
  else
    fail(place, kind, with_device_hint(condition, join(pieces...)));
}

}  // namespace kiln_detail

template <class... A>
std::string str(const A&... pieces) {
  return kiln_detail::join(pieces...);
}

}  // namespace kc
}  // namespace c10

// A stream of the caller's: deferred until he includes one.
namespace c10 {
inline namespace kc {
template <class S, class T>
auto operator<<(S& stream, const ArrayRef<T>& value) -> decltype(stream.operator<<(1))& {
  stream << kiln_detail::join(value).c_str();
  return stream;
}
}  // namespace kc
}  // namespace c10
namespace std {
template <class S, class T>
auto operator<<(S& stream, const vector<T>& value) -> decltype(stream.operator<<(1))& {
  stream << c10::kiln_detail::join(value).c_str();
  return stream;
}
}  // namespace std
namespace c10 {
inline namespace kc {
// Of these types exactly: a text converts to a Device, a pointer to a Scalar.
template <class T>
struct IsStreamed : std::false_type {};
#define KILN_STREAMED(T) \
  template <>            \
  struct IsStreamed<T> : std::true_type {};
KILN_STREAMED(ScalarType)
KILN_STREAMED(Device)
KILN_STREAMED(DeviceType)
KILN_STREAMED(Layout)
KILN_STREAMED(MemoryFormat)
KILN_STREAMED(Half)
KILN_STREAMED(BFloat16)
KILN_STREAMED(Scalar)
KILN_STREAMED(TensorOptions)
#undef KILN_STREAMED
template <class S, class T, class = std::enable_if_t<IsStreamed<T>::value>>
auto operator<<(S& stream, const T& value) -> decltype(stream.operator<<(1))& {
  stream << kiln_detail::join(value).c_str();
  return stream;
}
template <class S, class T>
auto operator<<(S& stream, const complex<T>& value) -> decltype(stream.operator<<(1))& {
  stream << '(' << value.real() << ',' << value.imag() << ')';
  return stream;
}
}  // namespace kc
}  // namespace c10
namespace caffe2 {
inline namespace kc {
using c10::kiln_detail::join;
template <class S>
auto operator<<(S& stream, const TypeMeta& value) -> decltype(stream.operator<<(1))& {
  stream << value.name();
  return stream;
}
}  // namespace kc
}  // namespace caffe2

namespace c10 {
inline namespace kc {
namespace kiln_detail {
struct Comparison {
  std::string text;  // of one that failed
  explicit operator bool() const { return !text.empty(); }
};
template <class F, class A, class B>
Comparison compared(F holds, const A& a, const B& b, const char* text) {
  if (C10_LIKELY(holds(a, b))) return {};
  return {join(text, a, " vs. ", b, "). ")};
}
class Failure {
 public:
  Failure(Place place, const std::string& text) : place_(place) { message_.text = text; }
  template <class T>
  Failure& operator<<(const T& piece) {
    message_.put(piece);
    return *this;
  }
  ~Failure() noexcept(false) { fail(place_, ErrorKind::runtime, message_.text); }

 private:
  Place place_;
  Message message_;
};
}  // namespace kiln_detail
}  // namespace kc
}  // namespace c10

#define KILN_HERE \
  ::c10::kiln_detail::Place { __func__, __FILE__, static_cast<uint32_t>(__LINE__) }
// No do-while: torch's is a plain if, and sources leave out the semicolon behind it.
#define KILN_TORCH_CHECK(kind, condition, ...)                               \
  if (C10_UNLIKELY(!(condition))) {                                          \
    ::c10::kiln_detail::check_failed(KILN_HERE, ::c10::ErrorKind::kind,      \
                                     #condition __VA_OPT__(, ) __VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) KILN_TORCH_CHECK(runtime, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) KILN_TORCH_CHECK(index, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) KILN_TORCH_CHECK(value, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) KILN_TORCH_CHECK(type, condition, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) \
  KILN_TORCH_CHECK(linear_algebra, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  KILN_TORCH_CHECK(not_implemented, condition, ##__VA_ARGS__)
#define TORCH_CHECK_WITH(kind, condition, ...)                                                \
  do {                                                                                        \
    if (C10_UNLIKELY(!(condition))) throw ::c10::kind(::c10::kiln_detail::join(__VA_ARGS__)); \
  } while (0)
#define TORCH_INTERNAL_ASSERT(condition, ...)                                   \
  if (C10_UNLIKELY(!(condition))) {                                             \
    ::c10::kiln_detail::fail_internally(KILN_HERE, #condition,                  \
                                        ::c10::kiln_detail::join(__VA_ARGS__)); \
  }
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) \
  do {                                        \
  } while (0)
#define AT_ERROR(...)                                            \
  ::c10::kiln_detail::fail(KILN_HERE, ::c10::ErrorKind::runtime, \
                           ::c10::kiln_detail::join(__VA_ARGS__))
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_INTERNAL_ASSERT(condition, ##__VA_ARGS__)
#define TORCH_WARN(...) ::c10::kiln_detail::warn(KILN_HERE, ::c10::kiln_detail::join(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                               \
  do {                                                     \
    [[maybe_unused]] static const bool kiln_warned = [&] { \
      TORCH_WARN(__VA_ARGS__);                             \
      return true;                                         \
    }();                                                   \
  } while (0)
#define AT_WARN(...) TORCH_WARN(__VA_ARGS__)
#define C10_THROW_ERROR(kind, text) throw ::c10::kind(text)
// Of torch/headeronly: a standard exception, with its place in front.
#define STD_TORCH_CHECK(condition, ...)                                                        \
  if (C10_UNLIKELY(!(condition))) {                                                            \
    ::c10::kiln_detail::fail_plainly(::c10::kiln_detail::join(                                 \
        __func__, ", ", __FILE__, ":", static_cast<uint32_t>(__LINE__), ", ", ##__VA_ARGS__)); \
  }
// A text may follow: TORCH_CHECK_EQ(a, b) << "text". It is thrown at the end of the expression.
#define KILN_TORCH_COMPARE(a, b, op)                                                              \
  while (const ::c10::kiln_detail::Comparison kiln_compared =                                     \
             ::c10::kiln_detail::compared([](const auto& x, const auto& y) { return x op y; }, a, \
                                          b, "Check failed: " #a " " #op " " #b " ("))            \
  ::c10::kiln_detail::Failure(KILN_HERE, kiln_compared.text)
#define TORCH_CHECK_EQ(a, b) KILN_TORCH_COMPARE(a, b, ==)
#define TORCH_CHECK_NE(a, b) KILN_TORCH_COMPARE(a, b, !=)
#define TORCH_CHECK_LE(a, b) KILN_TORCH_COMPARE(a, b, <=)
#define TORCH_CHECK_LT(a, b) KILN_TORCH_COMPARE(a, b, <)
#define TORCH_CHECK_GE(a, b) KILN_TORCH_COMPARE(a, b, >=)
#define TORCH_CHECK_GT(a, b) KILN_TORCH_COMPARE(a, b, >)
#define TORCH_DCHECK_EQ(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, ==)
#define TORCH_DCHECK_NE(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, !=)
#define TORCH_DCHECK_LE(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, <=)
#define TORCH_DCHECK_LT(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, <)
#define TORCH_DCHECK_GE(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, >=)
#define TORCH_DCHECK_GT(a, b) KILN_TORCH_DEBUG_COMPARE(a, b, >)
#ifdef NDEBUG  // compiled, and not run
#define KILN_TORCH_DEBUG_COMPARE(a, b, op) \
  while (false) KILN_TORCH_COMPARE(a, b, op)
#else
#define KILN_TORCH_DEBUG_COMPARE(a, b, op) KILN_TORCH_COMPARE(a, b, op)
#endif
// Of torches before 1.5 (AT_CHECK) and 1.11.
#define AT_CHECK(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_CHECK_ARG(condition, number, ...) \
  TORCH_CHECK(condition, "invalid argument ", number, ": ", ##__VA_ARGS__)
#define TORCH_CHECK_NOTNULL(value) ::c10::kiln_detail::not_null(KILN_HERE, #value, value)
#define TORCH_CHECK_IF_NOT_ON_CUDA(condition, ...) \
  if (!(condition)) {                              \
  }
#define TORCH_WARN_DEPRECATION(...) TORCH_WARN(__VA_ARGS__)
#define TORCH_RETHROW(e, ...) throw
#define TORCH_FORCE_INTERNAL_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
namespace c10 {
inline namespace kc {
namespace kiln_detail {
template <class T>
T&& not_null(Place place, const char* text, T&& value) {
  if (value == nullptr)
    fail(place, ErrorKind::runtime, join("Check failed: '", text, "' must be non NULL. "));
  return static_cast<T&&>(value);
}
}  // namespace kiln_detail
}  // namespace kc
}  // namespace c10
