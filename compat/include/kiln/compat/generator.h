// SPDX-License-Identifier: Apache-2.0
// Where do kernels get random numbers from? From torch's generator of the device: its seed, and an
// offset that advances by what a launch uses, so that torch.manual_seed repeats the numbers.
#pragma once

#include <kiln/compat/cuda.h>
#include <kiln/compat/value.h>

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace at {
inline namespace kc {

// What a launch passes to its kernel. Pointers are of graph capture, which is an error here.
struct PhiloxCudaState {
  PhiloxCudaState() = default;
  PhiloxCudaState(uint64_t seed, uint64_t offset) {
    seed_.val = seed;
    offset_.val = offset;
  }
  union Payload {
    uint64_t val;
    int64_t* ptr;
  };
  Payload seed_{};
  Payload offset_{};
  uint64_t offset_intragraph_ = 0;
  bool captured_ = false;
};

struct GeneratorState;  // of the archive

// torch's CUDAGeneratorImpl and Generator in one: a counted reference to the Python object.
class CUDAGeneratorImpl {
 public:
  uint64_t current_seed() const;
  void set_current_seed(uint64_t seed);
  uint64_t seed();
  uint64_t philox_offset_per_thread() const;
  void set_philox_offset_per_thread(uint64_t offset);
  uint64_t get_offset() const { return philox_offset_per_thread(); }
  void set_offset(uint64_t offset) { set_philox_offset_per_thread(offset); }
  Device device() const;
  // The state for a launch whose threads draw up to `increment` numbers each; a multiple of four is
  // reserved, as torch does.
  PhiloxCudaState philox_cuda_state(uint64_t increment);
  std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t increment);
  std::mutex mutex_;

 private:
  friend class Generator;
  friend struct GeneratorState;
  GeneratorState* state_ = nullptr;
};

class Generator {
 public:
  Generator() = default;
  explicit Generator(std::shared_ptr<CUDAGeneratorImpl> impl)
      : impl_(static_cast<std::shared_ptr<CUDAGeneratorImpl>&&>(impl)) {}
  bool defined() const { return impl_ != nullptr; }
  std::mutex& mutex() const { return impl_->mutex_; }
  uint64_t current_seed() const { return impl_->current_seed(); }
  void set_current_seed(uint64_t seed) { impl_->set_current_seed(seed); }
  uint64_t seed() { return impl_->seed(); }
  uint64_t get_offset() const { return impl_->get_offset(); }
  void set_offset(uint64_t offset) { impl_->set_offset(offset); }
  Device device() const { return impl_->device(); }
  template <class T>
  T* get() const {
    static_assert(std::is_same_v<T, CUDAGeneratorImpl>, "kiln compat: generators of CUDA only");
    return impl_.get();
  }
  CUDAGeneratorImpl* unsafeGetGeneratorImpl() const { return impl_.get(); }

 private:
  std::shared_ptr<CUDAGeneratorImpl> impl_;
};

template <class T>
T* get_generator_or_default(const std::optional<Generator>& given, const Generator& otherwise) {
  return given && given->defined() ? given->template get<T>() : otherwise.get<T>();
}
template <class T>
T* check_generator(const std::optional<Generator>& given) {
  TORCH_CHECK(given && given->defined(), "Expected Generator but received nullopt");
  return given->template get<T>();
}

namespace kiln_detail {
Generator generator_of(void* python_object);  // a torch.Generator
}

}  // namespace kc

namespace cuda {
inline namespace kc {
namespace detail {
const Generator& getDefaultCUDAGenerator(DeviceIndex device = -1);
Generator createCUDAGenerator(DeviceIndex device = -1);
}  // namespace detail
namespace philox {
#ifdef __CUDACC__
__host__ __device__ __forceinline__ std::tuple<uint64_t, uint64_t> unpack(
    at::PhiloxCudaState state) {
  return std::make_tuple(state.seed_.val, state.offset_.val);
}
#endif
}  // namespace philox
}  // namespace kc
}  // namespace cuda
}  // namespace at
namespace torch {
using at::Generator;
}

#ifndef __CUDA_ARCH__
namespace kiln {
namespace compat {
template <>
struct Caster<at::Generator> {
  KILN_TYPE(object, false, 0, 0, nullptr);
  static at::Generator take(Value& v) { return at::kiln_detail::generator_of(v.object); }
};
}  // namespace compat
}  // namespace kiln
#endif
