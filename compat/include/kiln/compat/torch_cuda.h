// SPDX-License-Identifier: Apache-2.0
// What does torch/cuda.h offer? Whether there are GPUs and how many, seeds, and waiting for a GPU.
#pragma once

#include <kiln/compat/tensor_api.h>

namespace at {
namespace cuda {}
}  // namespace at

namespace torch {
inline namespace kc {
void manual_seed(uint64_t seed);

namespace cuda {
// Where torch/cuda.h is not included, torch::cuda is at::cuda.
using namespace at::cuda;
size_t device_count();
inline bool is_available() { return device_count() > 0; }
bool cudnn_is_available();
void manual_seed(uint64_t seed);
void manual_seed_all(uint64_t seed);
void synchronize(int64_t device_index = -1);
}  // namespace cuda
}  // namespace kc
}  // namespace torch
