// SPDX-License-Identifier: Apache-2.0
// How does an op refuse its arguments? KILN_CHECK(condition, "text ", value, ...): the pieces are
// formatted in the runtime archive, so that no stream and no string header is compiled here.
#pragma once

#include <kiln/types.h>

namespace kiln {
class Tensor;

namespace detail {

struct Piece {
  enum Kind { text, integer, real, boolean, sizes, dtype, device, tensor } kind;
  union {
    const void* p;
    long long i;
    double f;
  };
  size_t count;  // of text and sizes
  Piece(Kind k, const void* v, size_t n = 0) : kind(k), p(v), count(n) {}
  Piece(Kind k, long long v) : kind(k), i(v), count(0) {}
  Piece(Kind k, double v) : kind(k), f(v), count(0) {}
};

inline Piece piece(Str v) { return {Piece::text, v.data(), v.size()}; }
inline Piece piece(const char* v) { return piece(Str(v)); }
inline Piece piece(bool v) { return {Piece::boolean, static_cast<long long>(v)}; }
inline Piece piece(int v) { return {Piece::integer, static_cast<long long>(v)}; }
inline Piece piece(unsigned v) { return {Piece::integer, static_cast<long long>(v)}; }
inline Piece piece(long v) { return {Piece::integer, static_cast<long long>(v)}; }
inline Piece piece(unsigned long v) { return {Piece::integer, static_cast<long long>(v)}; }
inline Piece piece(long long v) { return {Piece::integer, v}; }
inline Piece piece(unsigned long long v) { return {Piece::integer, static_cast<long long>(v)}; }
inline Piece piece(double v) { return {Piece::real, v}; }
inline Piece piece(Dtype v) { return {Piece::dtype, static_cast<long long>(v)}; }
inline Piece piece(Device v) {
  return {Piece::device, (static_cast<long long>(v.type) << 32) | static_cast<uint32_t>(v.index)};
}
inline Piece piece(Span<const int64_t> v) { return {Piece::sizes, v.data(), v.size()}; }
inline Piece piece(const Sizes& v) { return piece(Span<const int64_t>(v)); }
inline Piece piece(const Tensor& v) { return {Piece::tensor, &v}; }

// Throws the exception that torch turns into a RuntimeError: "OP: pieces" and where the check
// stands.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const Piece* pieces, size_t count);

template <class... A>
[[noreturn]] __attribute__((noinline, cold)) void check_failed_with(const char* file, int line,
                                                                    const char* condition,
                                                                    const A&... values) {
  const Piece pieces[] = {piece(values)..., piece("")};
  check_failed(file, line, condition, pieces, sizeof...(A));
}

}  // namespace detail
}  // namespace kiln

#define KILN_CHECK(condition, ...)                                                      \
  do {                                                                                  \
    if (__builtin_expect(!(condition), 0))                                              \
      ::kiln::detail::check_failed_with(__FILE__, __LINE__, #condition, ##__VA_ARGS__); \
  } while (0)
