// SPDX-License-Identifier: Apache-2.0
// How does a source check several tensors at once, with texts that name the argument? What
// ATen/TensorUtils.h has.
#pragma once

#include <kiln/compat/tensor_api.h>

namespace at {
inline namespace kc {

using CheckedFrom = const char*;

struct TensorArg {
  const Tensor& tensor;
  const char* name;
  int pos;  // 0: the result, or self
  TensorArg(const Tensor& t, const char* n, int p) : tensor(t), name(n), pos(p) {}
  TensorArg(Tensor&&, const char*, int) = delete;
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
using TensorGeometryArg = TensorArg;

void checkDim(CheckedFrom from, const Tensor& t, const char* name, int pos, int64_t dim);
void checkDim(CheckedFrom from, const TensorArg& t, int64_t dim);
void checkDimRange(CheckedFrom from, const TensorArg& t, int64_t begin,
                   int64_t end);  // end is not among them
void checkSameDim(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkContiguous(CheckedFrom from, const TensorArg& t);
void checkAllContiguous(CheckedFrom from, ArrayRef<TensorArg> list);
void checkSize(CheckedFrom from, const TensorArg& t, IntArrayRef sizes);
void checkSize(CheckedFrom from, const TensorArg& t, int64_t dim, int64_t size);
void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameSize(CheckedFrom from, ArrayRef<TensorArg> list);
void checkNumel(CheckedFrom from, const TensorArg& t, int64_t numel);
void checkSameNumel(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameNumel(CheckedFrom from, ArrayRef<TensorArg> list);
void checkScalarType(CheckedFrom from, const TensorArg& t, ScalarType type);
void checkScalarTypes(CheckedFrom from, const TensorArg& t, ArrayRef<ScalarType> types);
void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> list);
void checkSameGPU(CheckedFrom from, const TensorArg& a, const TensorArg& b);
void checkAllSameGPU(CheckedFrom from, ArrayRef<TensorArg> list);
void checkDefined(CheckedFrom from, const TensorArg& t);
void checkAllDefined(CheckedFrom from, ArrayRef<TensorArg> list);

}  // namespace kc
}  // namespace at
namespace torch {
using at::CheckedFrom;
using at::TensorArg;
}  // namespace torch
