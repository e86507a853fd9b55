// SPDX-License-Identifier: Apache-2.0
// Which small helpers around tensors do sources use?
#include <kiln/compat/utilities.h>

namespace at {
inline namespace kc {

std::vector<int64_t> infer_size(IntArrayRef a, IntArrayRef b) {
  const size_t ndim = a.size() > b.size() ? a.size() : b.size();
  std::vector<int64_t> sizes(ndim);
  for (size_t i = 0; i < ndim; i++) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x,
                ") must match the size of tensor b (", y, ") at non-singleton dimension ",
                ndim - 1 - i);
    sizes[ndim - 1 - i] = x == 1 ? y : x;
  }
  return sizes;
}

}  // namespace kc
}  // namespace at
