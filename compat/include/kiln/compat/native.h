// SPDX-License-Identifier: Apache-2.0
// What do ATen/native/TensorProperties.h and CanUse32BitIndexMath.h give? Questions about a tensor
// that helpers for kernels ask, as those for sampling on grids, which torch's own headers have.
#pragma once

#include <kiln/compat/dispatcher.h>
#include <kiln/compat/tensor_info.h>
#if __has_include(<c10/util/irange.h>)
#include <c10/util/irange.h>  // those helpers rely on it
#endif

namespace at {
namespace native {
using at::cuda::detail::canUse32BitIndexMath;
inline bool cudnn_is_acceptable(const Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("aten::cudnn_is_acceptable", "")
      .typed<bool(const Tensor&)>()
      .call(x);
}
}  // namespace native
}  // namespace at
