// SPDX-License-Identifier: Apache-2.0
#include "host/dtype.h"

#include <kiln/abi.h>

namespace kiln::host {
namespace {

// numpy has no bf16, fp8 or complex-half: their bytes travel as void (V1, V2, V4), as ml_dtypes
// stores them. fp8 has no tolerance in torch; one unit in the last place of the mantissa is taken.
constexpr DType kDTypes[] = {
    {KILN_U8, "u8", "uint8", "u1", Kind::Unsigned, 1, 1, 0, 0, 0},
    {KILN_I8, "i8", "int8", "i1", Kind::Signed, 1, 1, 0, 0, 0},
    {KILN_I16, "i16", "int16", "i2", Kind::Signed, 2, 2, 0, 0, 0},
    {KILN_I32, "i32", "int32", "i4", Kind::Signed, 4, 4, 0, 0, 0},
    {KILN_I64, "i64", "int64", "i8", Kind::Signed, 8, 8, 0, 0, 0},
    {KILN_U16, "u16", "uint16", "u2", Kind::Unsigned, 2, 2, 0, 0, 0},
    {KILN_U32, "u32", "uint32", "u4", Kind::Unsigned, 4, 4, 0, 0, 0},
    {KILN_U64, "u64", "uint64", "u8", Kind::Unsigned, 8, 8, 0, 0, 0},
    {KILN_F16, "f16", "float16", "f2", Kind::Float, 2, 2, 11, 4, 8e-3},
    {KILN_BF16, "bf16", "bfloat16", "V2", Kind::Float, 2, 2, 8, 4, 3e-2},
    {KILN_F32, "f32", "float32", "f4", Kind::Float, 4, 4, 24, 6, 1e-5},
    {KILN_F64, "f64", "float64", "f8", Kind::Float, 8, 8, 53, 8, 1e-12},
    {KILN_BOOL8, "bool", "bool", "b1", Kind::Bool, 1, 1, 0, 0, 0},
    {KILN_C32, "c32", "complex32", "V4", Kind::Complex, 4, 2, 11, 4, 8e-3},
    {KILN_C64, "c64", "complex64", "c8", Kind::Complex, 8, 4, 24, 6, 1e-5},
    {KILN_C128, "c128", "complex128", "c16", Kind::Complex, 16, 8, 53, 8, 1e-12},
    {KILN_F8E4M3, "f8e4m3", "float8_e4m3fn", "V1", Kind::Float, 1, 1, 4, 3, 0.125},
    {KILN_F8E5M2, "f8e5m2", "float8_e5m2", "V1", Kind::Float, 1, 1, 3, 3, 0.25},
};

struct Alias {
  std::string_view name, meaning;
};
constexpr Alias kAliases[] = {
    {"half", "f16"},        {"float", "f32"}, {"double", "f64"},   {"short", "i16"},
    {"int", "i32"},         {"long", "i64"},  {"cfloat", "c64"},   {"chalf", "c32"},
    {"byte", "u8"},         {"char", "i8"},   {"cdouble", "c128"}, {"b8", "bool"},
    {"f8e4m3fn", "f8e4m3"},
};

}  // namespace

std::span<const DType> dtypes() { return kDTypes; }

const DType* find_dtype(int32_t code) {
  for (const DType& type : kDTypes)
    if (type.code == code) return &type;
  return nullptr;
}

const DType* find_dtype(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const Alias& alias : kAliases)
    if (alias.name == name) name = alias.meaning;
  for (const DType& type : kDTypes)
    if (name == type.name || name == type.torch_name) return &type;
  return nullptr;
}

std::string dtype_name(int32_t code) {
  const DType* type = find_dtype(code);
  return type ? type->name : "dtype " + std::to_string(code);
}

std::string dtype_names() {
  std::string names;
  for (const DType& type : kDTypes) names += (names.empty() ? "" : " ") + std::string(type.name);
  return names;
}

bool is_integral(Kind kind) {
  return kind == Kind::Bool || kind == Kind::Unsigned || kind == Kind::Signed;
}

}  // namespace kiln::host
