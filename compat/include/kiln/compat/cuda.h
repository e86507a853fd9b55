// SPDX-License-Identifier: Apache-2.0
// What do sources ask of c10::cuda and at::cuda? The current stream, guards, device properties, and
// checks of error codes.
#pragma once

#include <kiln/compat/tensor.h>

namespace c10 {
namespace cuda {
inline namespace kc {

class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };
  CUDAStream(cudaStream_t stream, DeviceIndex device, bool of_pool = false)
      : stream_(stream), device_(device), pool_(of_pool) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return Device(kCUDA, device_); }
  int64_t id() const { return reinterpret_cast<int64_t>(stream_); }
  void synchronize() const;
  bool query() const;
  bool operator==(const CUDAStream& o) const {
    return stream_ == o.stream_ && device_ == o.device_;
  }
  bool operator!=(const CUDAStream& o) const { return !(*this == o); }
  const CUDAStream& unwrap() const { return *this; }
  DeviceType device_type() const { return kCUDA; }
  int priority() const;

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
  [[maybe_unused]] bool pool_;
};

CUDAStream getCurrentCUDAStream(DeviceIndex device = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex device = -1);
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device);
// From torch's pool, through torch.cuda.Stream.
CUDAStream getStreamFromPool(bool high_priority = false, DeviceIndex device = -1);
CUDAStream getStreamFromPool(int priority, DeviceIndex device = -1);
void setCurrentCUDAStream(CUDAStream stream);

DeviceIndex current_device();
DeviceIndex device_count() noexcept;
void set_device(DeviceIndex device);
inline void set_device(int device) { set_device(static_cast<DeviceIndex>(device)); }
void device_synchronize();
inline int warp_size() { return 32; }

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(const std::optional<Device>& device);
  explicit OptionalCUDAGuard(const std::optional<DeviceIndex>& index);
  explicit OptionalCUDAGuard(Device device) { set_device(device); }
  explicit OptionalCUDAGuard(DeviceIndex index) { set_index(index); }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { reset(); }
  // A device that is not CUDA's is refused, as torch does, unless the engine takes CPU tensors.
  void set_device(Device device);
  void set_index(DeviceIndex index);
  void reset_device(Device device) { set_device(device); }
  void reset();
  std::optional<Device> original_device() const;
  std::optional<Device> current_device() const;

 private:
  int before_ = -1;
};

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) { guard_.set_index(index); }
  explicit CUDAGuard(int index) : CUDAGuard(static_cast<DeviceIndex>(index)) {}
  explicit CUDAGuard(int64_t index) : CUDAGuard(static_cast<DeviceIndex>(index)) {}
  explicit CUDAGuard(Device device) { guard_.set_device(device); }
  explicit CUDAGuard(const std::optional<Device>& device);
  CUDAGuard(const CUDAGuard&) = delete;
  void set_device(Device device) { guard_.set_device(device); }
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  void reset_device(Device device) { guard_.set_device(device); }
  Device original_device() const;
  Device current_device() const { return Device(kCUDA, kc::current_device()); }

 private:
  OptionalCUDAGuard guard_;
};

// Device and current stream, until the end of the scope.
class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(CUDAStream stream) { reset_stream(stream); }
  explicit OptionalCUDAStreamGuard(const std::optional<CUDAStream>& stream);
  OptionalCUDAStreamGuard(const OptionalCUDAStreamGuard&) = delete;
  ~OptionalCUDAStreamGuard() { reset(); }
  void reset_stream(CUDAStream stream);
  void reset();

 private:
  cudaStream_t before_ = nullptr;
  DeviceIndex device_ = -1;  // whose stream was set
  OptionalCUDAGuard guard_;
};
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream) : guard_(stream), now_(stream) {}
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  void reset_stream(CUDAStream stream) {
    guard_.reset_stream(stream);
    now_ = stream;
  }
  CUDAStream current_stream() const { return now_; }
  Device current_device() const { return now_.device(); }

 private:
  OptionalCUDAStreamGuard guard_;
  CUDAStream now_;
};

namespace impl {
[[noreturn]] void throw_cuda_error(int code);
[[noreturn]] void throw_cublas_error(int status, const char* call);
int maybe_set_device(DeviceIndex device);
}  // namespace impl
#ifdef KILN_COMPAT_CUDA_HEADERS
inline cudaError_t MaybeSetDevice(DeviceIndex device) {
  return static_cast<cudaError_t>(impl::maybe_set_device(device));
}
inline cudaError_t SetDevice(DeviceIndex device, bool = false) { return MaybeSetDevice(device); }
#endif
DeviceIndex ExchangeDevice(DeviceIndex device);  // gives the one before

}  // namespace kc
}  // namespace cuda

inline namespace kc {
// DeviceGuard knows CUDA alone here; a CPU device needs no guard.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) { reset_device(device); }
  DeviceGuard(const DeviceGuard&) = delete;
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  void reset_device(Device device) {
    if (device.is_cuda()) guard_.set_device(device);
  }

 private:
  cuda::OptionalCUDAGuard guard_;
};
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(const std::optional<Device>& device);
  explicit OptionalDeviceGuard(Device device) { reset_device(device); }
  void reset_device(Device device) {
    if (device.is_cuda()) guard_.set_device(device);
  }

 private:
  cuda::OptionalCUDAGuard guard_;
};
}  // namespace kc
}  // namespace c10

namespace at {
namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
using c10::cuda::set_device;
using c10::cuda::setCurrentCUDAStream;
using c10::cuda::warp_size;
inline namespace kc {
[[noreturn]] void no_such_device(int64_t device);
#ifdef KILN_COMPAT_CUDA_HEADERS
inline cudaDeviceProp* getDeviceProperties(int64_t device) {
  static cudaDeviceProp* known[64] = {};
  if (device < 0 || device >= c10::cuda::device_count() || device >= 64) no_such_device(device);
  if (!known[device]) {
    auto* made = new cudaDeviceProp;
    const cudaError_t code = cudaGetDeviceProperties(made, static_cast<int>(device));
    if (code != cudaSuccess) c10::cuda::impl::throw_cuda_error(static_cast<int>(code));
    known[device] = made;
  }
  return known[device];
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
#endif
inline bool is_available() { return device_count() > 0; }
inline int64_t getNumGPUs() { return device_count(); }
template <class T>
inline C10_HOST_DEVICE T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
// Whether all tensors are on the current device.
inline bool check_device(ArrayRef<Tensor> tensors) {
  for (const Tensor& one : tensors)
    if (one.get_device() != current_device()) return false;
  return true;
}
}  // namespace kc
}  // namespace cuda
inline namespace kc {
template <class T>
C10_HOST_DEVICE T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <class T>
C10_HOST_DEVICE T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}
inline bool hasCUDA() { return cuda::is_available(); }
}  // namespace kc
}  // namespace at

#define C10_CUDA_CHECK(call)                                            \
  do {                                                                  \
    const cudaError_t kiln_code = call;                                 \
    if (C10_UNLIKELY(kiln_code != cudaSuccess))                         \
      ::c10::cuda::impl::throw_cuda_error(static_cast<int>(kiln_code)); \
  } while (0)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define THCudaCheck(call) C10_CUDA_CHECK(call)  // of torches before 1.11
#define C10_CUDA_CHECK_WARN(call) static_cast<void>(call)
#define C10_CUDA_IGNORE_ERROR(call) static_cast<void>(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define TORCH_CUDABLAS_CHECK(call)                                              \
  do {                                                                          \
    const int kiln_status = static_cast<int>(call);                             \
    if (kiln_status) ::c10::cuda::impl::throw_cublas_error(kiln_status, #call); \
  } while (0)
// The source has the library's header, and links the library.
#define TORCH_CUDASPARSE_CHECK(call)                                                               \
  do {                                                                                             \
    const cusparseStatus_t kiln_status = call;                                                     \
    TORCH_CHECK(kiln_status == CUSPARSE_STATUS_SUCCESS,                                            \
                "CUDA error: ", cusparseGetErrorString(kiln_status), " when calling `" #call "`"); \
  } while (0)
#define TORCH_CUSOLVER_CHECK(call)                                                                \
  do {                                                                                            \
    const cusolverStatus_t kiln_status = call;                                                    \
    TORCH_CHECK(kiln_status == CUSOLVER_STATUS_SUCCESS,                                           \
                "cusolver error: ", static_cast<int>(kiln_status), ", when calling `" #call "`"); \
  } while (0)
#define AT_CUDA_NVRTC_CHECK(call)                                        \
  do {                                                                   \
    const nvrtcResult kiln_status = call;                                \
    TORCH_CHECK(kiln_status == NVRTC_SUCCESS,                            \
                "CUDA NVRTC error: ", nvrtcGetErrorString(kiln_status)); \
  } while (0)
#define AT_CUDA_DRIVER_CHECK(call)                                               \
  do {                                                                           \
    const CUresult kiln_status = call;                                           \
    const char* kiln_text = nullptr;                                             \
    if (kiln_status != CUDA_SUCCESS) cuGetErrorString(kiln_status, &kiln_text);  \
    TORCH_CHECK(kiln_status == CUDA_SUCCESS,                                     \
                "CUDA driver error: ", kiln_text ? kiln_text : "unknown error"); \
  } while (0)
#define C10_CUDA_DRIVER_CHECK(call) AT_CUDA_DRIVER_CHECK(call)
