// SPDX-License-Identifier: Apache-2.0
// What does ATen/ATen.h bring? Tensors, ops, dispatch macros.
#pragma once

#include <kiln/compat/dispatch.h>
#include <kiln/compat/tensor.h>

namespace at {
inline namespace kc {
// In the calling thread: sources that need more speed on the host are rare compared with kernels.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t /* grain */, const F& f) {
  if (begin < end) f(begin, end);
}
inline int get_num_threads() { return 1; }
inline int get_thread_num() { return 0; }
inline bool in_parallel_region() { return false; }
namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;
}
}  // namespace kc
}  // namespace at
