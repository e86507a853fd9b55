// SPDX-License-Identifier: Apache-2.0
// What is at::cuda::CUDAEvent? An event of the CUDA runtime that is made when it is first recorded.
#pragma once

#include <kiln/compat/cuda.h>

#ifdef KILN_COMPAT_CUDA_HEADERS
namespace at {
namespace cuda {
inline namespace kc {
class CUDAEvent {
 public:
  CUDAEvent() = default;
  explicit CUDAEvent(unsigned flags) : flags_(flags) {}
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent(CUDAEvent&& o) noexcept
      : flags_(o.flags_), event_(o.event_), device_(o.device_), recorded_(o.recorded_) {
    o.event_ = nullptr;
  }
  CUDAEvent& operator=(CUDAEvent&& o) noexcept {
    std::swap(flags_, o.flags_);
    std::swap(event_, o.event_);
    std::swap(device_, o.device_);
    std::swap(recorded_, o.recorded_);
    return *this;
  }
  ~CUDAEvent() {
    if (event_) static_cast<void>(cudaEventDestroy(event_));
  }
  operator cudaEvent_t() const { return event_; }
  cudaEvent_t event() const { return event_; }
  bool isCreated() const { return event_ != nullptr; }
  DeviceIndex device_index() const { return device_; }
  void record() { record(getCurrentCUDAStream()); }
  void recordOnce(const CUDAStream& stream) {
    if (!recorded_) record(stream);
  }
  void record(const CUDAStream& stream) {
    CUDAGuard guard(stream.device_index());
    if (!event_) {
      check(cudaEventCreateWithFlags(&event_, flags_));
      device_ = stream.device_index();
    }
    check(cudaEventRecord(event_, stream.stream()));
    recorded_ = true;
  }
  void block(const CUDAStream& stream) {
    if (event_) check(cudaStreamWaitEvent(stream.stream(), event_, 0));
  }
  bool query() const {
    if (!event_) return true;
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check(code);
    return true;
  }
  void synchronize() const {
    if (event_) check(cudaEventSynchronize(event_));
  }
  float elapsed_time(const CUDAEvent& later) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event_, later.event_));
    return milliseconds;
  }

 private:
  static void check(cudaError_t code) {
    if (code != cudaSuccess) c10::cuda::impl::throw_cuda_error(static_cast<int>(code));
  }
  unsigned flags_ = cudaEventDisableTiming;
  cudaEvent_t event_ = nullptr;
  DeviceIndex device_ = -1;
  bool recorded_ = false;
};
}  // namespace kc
}  // namespace cuda
}  // namespace at
#endif
