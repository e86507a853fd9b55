// SPDX-License-Identifier: Apache-2.0
// How do torch's own factories differ from at::'s? A gradient that their options ask for is set,
// and torch::tensor takes nested lists and Python's dtypes. The end of kiln/compat/tensor.h.
#pragma once

#include <kiln/compat/tensor.h>

namespace torch {
// Factories whose options may ask for a gradient; those of at:: may not.
inline namespace kc {
Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
             const std::optional<MemoryFormat>& format = at::kiln_detail::none<MemoryFormat>());
Tensor empty_like(
    const Tensor& like, const TensorOptions& options = {},
    const std::optional<MemoryFormat>& format = at::kiln_detail::none<MemoryFormat>());
#include <kiln/compat/generated/factories.h>
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const TensorOptions& options = {});
inline Tensor from_blob(void* data, IntArrayRef sizes, std::nullptr_t,
                        const TensorOptions& options = {}) {
  return torch::from_blob(data, sizes, options);
}
template <class F, class = at::kiln_detail::IfDeleter<F>>
Tensor from_blob(void* data, IntArrayRef sizes, F deleter, const TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(at::from_blob(data, sizes, static_cast<F&&>(deleter), options),
                                    options);
}
template <class F, class = at::kiln_detail::IfDeleter<F>>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, F deleter,
                 const TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(
      at::from_blob(data, sizes, strides, static_cast<F&&>(deleter), options), options);
}
}  // namespace kc
// Unlike at::tensor: integers become int64, and reals the default dtype, as in Python.
template <class T>
at::Tensor tensor(at::ArrayRef<T> values, const at::TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(at::tensor(values, at::kiln_detail::as_python<T>(options)),
                                    options);
}
template <class T>
at::Tensor tensor(const std::vector<T>& values, const at::TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(at::tensor(values, at::kiln_detail::as_python<T>(options)),
                                    options);
}
template <class T>
at::Tensor tensor(std::initializer_list<T> values, const at::TensorOptions& options = {}) {
  return torch::tensor(at::ArrayRef<T>(values), options);
}
template <class T>
at::Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
                  const at::TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(
      at::kiln_detail::nested(rows, at::kiln_detail::as_python<T>(options)), options);
}
template <class T>
at::Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows,
                  const at::TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(
      at::kiln_detail::nested(rows, at::kiln_detail::as_python<T>(options)), options);
}
inline at::Tensor tensor(std::initializer_list<at::kiln_detail::Nothing>,
                         const at::TensorOptions& options = {}) {
  return at::kiln_detail::tensor_of(nullptr, 0, at::kFloat,
                                    at::kiln_detail::as_python<float>(options), false);
}
template <class T, class = decltype(at::CppTypeToScalarType<T>::value)>
at::Tensor tensor(T value, const at::TensorOptions& options = {}) {
  return at::kiln_detail::with_grad(
      at::kiln_detail::tensor_of(&value, 1, at::CppTypeToScalarType<T>::value,
                                 at::kiln_detail::as_python<T>(options), true),
      options);
}
}  // namespace torch
