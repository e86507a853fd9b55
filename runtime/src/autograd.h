// SPDX-License-Identifier: Apache-2.0
// What happens when a gradient is asked of an op that has no backward? It is raised when backward()
// gets there; torch alone would warn and give none. A call that needs no gradient pays for one
// question per tensor.
#pragma once

#include "call.h"

namespace kiln::detail {

// c10::TensorImpl::requires_grad() const. The C shim has no such question.
using RequiresGradient = bool(const void* tensor_impl);
RequiresGradient* find_requires_gradient();  // null: this torch does not export it

// c10::TensorImpl::_fw_grad(level, tensor) const: the tangent of forward mode, an at::Tensor.
using ForwardGradient = const void* const*(const void* tensor_impl, uint64_t level, const void*);
ForwardGradient* find_forward_gradient();  // null: as above

// A handle of the shim is an at::Tensor*, which holds nothing but a pointer to its TensorImpl.
inline const void* tensor_of_torch(const void* handle) {
  return *static_cast<void* const*>(handle);
}

// What an undefined at::Tensor points to.
const void* undefined_tensor_of_torch();

bool torch_records_gradients();  // torch.is_grad_enabled()

// Both are for calls in which an argument requires a gradient and torch records. An op with a
// backward is not called so: its autograd function switches recording off.

// Throws when the op writes to an argument: no error could be raised later, since such an op has no
// result to mark.
void refuse_to_write(const OpRecord* op);
// For calls in which an argument has a tangent: an op has no derivative of forward mode, and torch
// would take it for 0.
[[noreturn]] void refuse_tangents(const OpRecord* op);
// Marks the results that the op has made: backward() through them raises an error that names the
// op.
void refuse_gradients(const OpRecord* op, const Slot* arguments, const Slot* results);

}  // namespace kiln::detail
