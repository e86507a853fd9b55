// SPDX-License-Identifier: Apache-2.0
// How does an op look below autocast? A guard leaves dispatcher keys out for a while, and tensors
// are cast as torch would. Both ask Python's torch, which knows the thread's keys.
#pragma once

#include <kiln/compat/library.h>
#include <kiln/compat/tensor_api.h>

namespace c10 {
namespace impl {
inline namespace kc {
class DispatchKeyGuard {
 public:
  DispatchKeyGuard(const char* kind, const char* key);
  ~DispatchKeyGuard();
  DispatchKeyGuard(const DispatchKeyGuard&) = delete;

 private:
  void* guard_;
};
struct ExcludeDispatchKeyGuard : DispatchKeyGuard {
  explicit ExcludeDispatchKeyGuard(DispatchKey key)
      : DispatchKeyGuard("_ExcludeDispatchKeyGuard", kiln::compat::key_name(key)) {}
};
struct IncludeDispatchKeyGuard : DispatchKeyGuard {
  explicit IncludeDispatchKeyGuard(DispatchKey key)
      : DispatchKeyGuard("_IncludeDispatchKeyGuard", kiln::compat::key_name(key)) {}
};
}  // namespace kc
}  // namespace impl
}  // namespace c10

namespace at {
namespace autocast {
inline namespace kc {
bool is_autocast_enabled(DeviceType device);
ScalarType get_autocast_dtype(DeviceType device);
inline bool is_enabled() { return is_autocast_enabled(kCUDA); }
inline bool is_cpu_enabled() { return is_autocast_enabled(kCPU); }
inline ScalarType get_autocast_gpu_dtype() { return get_autocast_dtype(kCUDA); }
inline ScalarType get_autocast_cpu_dtype() { return get_autocast_dtype(kCPU); }
inline bool is_eligible(const Tensor& one, DeviceType device = kCUDA) {
  return one.defined() && one.device().type() == device && one.is_floating_point() &&
         one.scalar_type() != kDouble;
}
inline Tensor cached_cast(ScalarType type, const Tensor& one, DeviceType device = kCUDA) {
  return is_eligible(one, device) && one.scalar_type() != type ? one.to(type) : one;
}
inline std::optional<Tensor> cached_cast(ScalarType type, const std::optional<Tensor>& one,
                                         DeviceType device = kCUDA) {
  if (!one) return std::nullopt;
  return cached_cast(type, *one, device);
}
inline std::vector<Tensor> cached_cast(ScalarType type, const TensorList& list,
                                       DeviceType device = kCUDA) {
  std::vector<Tensor> made;
  for (const Tensor& one : list) made.push_back(cached_cast(type, one, device));
  return made;
}
}  // namespace kc
}  // namespace autocast
}  // namespace at
