// SPDX-License-Identifier: Apache-2.0
// Which fundamental types does PTX have, and how wide is each?
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::ptx {

// X(name, bytes, class): class is b (untyped), u, s, f, p (predicate) or x (packed pair).
// clang-format off
#define KILN_PTX_TYPES(X) \
  X(b8, 1, b)             \
  X(b16, 2, b)            \
  X(b32, 4, b)            \
  X(b64, 8, b)            \
  X(b128, 16, b)          \
  X(u8, 1, u)             \
  X(u16, 2, u)            \
  X(u32, 4, u)            \
  X(u64, 8, u)            \
  X(s8, 1, s)             \
  X(s16, 2, s)            \
  X(s32, 4, s)            \
  X(s64, 8, s)            \
  X(f16, 2, f)            \
  X(bf16, 2, f)           \
  X(tf32, 4, f)           \
  X(f32, 4, f)            \
  X(f64, 8, f)            \
  X(f16x2, 4, x)          \
  X(bf16x2, 4, x)         \
  X(e4m3x2, 2, x)         \
  X(e5m2x2, 2, x)         \
  X(e2m3x2, 2, x)         \
  X(e3m2x2, 2, x)         \
  X(e2m1x2, 1, x)         \
  X(ue8m0x2, 2, x)        \
  X(u16x2, 4, x)          \
  X(s16x2, 4, x)          \
  X(f32x2, 8, x)          \
  X(e4m3, 1, f)           \
  X(e5m2, 1, f)           \
  X(pred, 1, p)
// clang-format on

enum class Type : uint8_t {
#define KILN_PTX_TYPE(name, bytes, class) name,
  KILN_PTX_TYPES(KILN_PTX_TYPE)
#undef KILN_PTX_TYPE
};

std::optional<Type> type_named(std::string_view name);
std::string_view name_of(Type type);
uint32_t bytes_of(Type type);
char class_of(Type type);
inline bool is_signed(Type type) { return class_of(type) == 's'; }

using TypeSet = uint64_t;
inline TypeSet set_of(Type type) { return TypeSet{1} << static_cast<unsigned>(type); }
// "u32 s32 f32": the set of the types named; a name that is not a type is ignored.
TypeSet parse_type_set(std::string_view names);

}  // namespace kiln::ptx
