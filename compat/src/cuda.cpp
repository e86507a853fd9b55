// SPDX-License-Identifier: Apache-2.0
// Who answers at::cuda's questions? torch for the current stream, the CUDA runtime (or the engine
// in its place) for the rest.
#include <kiln/compat/cuda.h>

#include "call.h"
#include "convert.h"
#include "front.h"
#include "torch.h"

// The front of the runtime defines these (runtime/src/cudart.def); CUDA's headers are not needed to
// build the archive.
using Code = int;
extern "C" {
Code cudaGetDevice(int*);
Code cudaSetDevice(int);
Code cudaGetDeviceCount(int*);
Code cudaDeviceSynchronize(void);
Code cudaStreamSynchronize(cudaStream_t);
Code cudaStreamQuery(cudaStream_t);
Code cudaStreamGetPriority(cudaStream_t, int*);
Code cudaGetLastError(void);
const char* cudaGetErrorString(Code);
const char* cudaGetErrorName(Code);
}

namespace c10 {
namespace cuda {
inline namespace kc {

namespace {

bool on_gpu() {
  const kiln::detail::Call* call = kiln::detail::current_call();
  return (call ? call->backend : kiln::detail::default_backend()) == kiln::detail::Backend::real;
}

void require(Code code) {
  if (code) impl::throw_cuda_error(code);
}

}  // namespace

CUDAStream getCurrentCUDAStream(DeviceIndex device) {
  if (!on_gpu()) return {nullptr, 0};
  if (device < 0) device = current_device();
  kiln::detail::torch_require();
  return {static_cast<cudaStream_t>(kiln::detail::torch_current_stream(device)), device};
}
CUDAStream getDefaultCUDAStream(DeviceIndex device) {
  return {nullptr, device < 0 && on_gpu() ? current_device() : device};
}
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) {
  return {stream, device};
}
// torch.cuda.Stream takes it from the pool. The Python object goes, the stream is the pool's.
CUDAStream getStreamFromPool(int priority, DeviceIndex device) {
  if (!on_gpu()) return {nullptr, 0};
  if (device < 0) device = current_device();
  using namespace kiln::compat;
  WithGil gil;
  Ref arguments = checked(PyTuple_New(2));
  PyTuple_SetItem(arguments.get(), 0, checked(PyLong_FromLongLong(device)).take());
  PyTuple_SetItem(arguments.get(), 1, checked(PyLong_FromLongLong(priority)).take());
  Ref stream =
      checked(PyObject_CallObject(torch_attribute("torch.cuda", "Stream").get(), arguments.get()));
  Ref handle = checked(PyObject_GetAttrString(stream.get(), "cuda_stream"));
  return {reinterpret_cast<cudaStream_t>(PyLong_AsUnsignedLongLong(handle.get())), device, true};
}
CUDAStream getStreamFromPool(bool high_priority, DeviceIndex device) {
  return getStreamFromPool(high_priority ? -1 : 0, device);
}

void setCurrentCUDAStream(CUDAStream stream) {
  if (!on_gpu()) return;
  using namespace kiln::compat;
  WithGil gil;
  Ref arguments = checked(PyTuple_New(2));
  PyTuple_SetItem(
      arguments.get(), 0,
      checked(PyLong_FromUnsignedLongLong(reinterpret_cast<uint64_t>(stream.stream()))).take());
  PyTuple_SetItem(arguments.get(), 1, checked(PyLong_FromLongLong(stream.device_index())).take());
  const bool is_default = stream.stream() == nullptr;
  Ref made;
  if (is_default) {
    Ref device = checked(PyTuple_New(1));
    PyTuple_SetItem(device.get(), 0, checked(PyLong_FromLongLong(stream.device_index())).take());
    made = checked(
        PyObject_CallObject(torch_attribute("torch.cuda", "default_stream").get(), device.get()));
  } else {
    made = checked(PyObject_CallObject(torch_attribute("torch.cuda", "ExternalStream").get(),
                                       arguments.get()));
  }
  Ref one = checked(PyTuple_New(1));
  PyTuple_SetItem(one.get(), 0, made.take());
  checked(PyObject_CallObject(torch_attribute("torch.cuda", "set_stream").get(), one.get()));
}

OptionalCUDAStreamGuard::OptionalCUDAStreamGuard(const std::optional<CUDAStream>& stream) {
  if (stream) reset_stream(*stream);
}
void OptionalCUDAStreamGuard::reset_stream(CUDAStream stream) {
  if (!on_gpu()) return;
  reset();
  guard_.set_index(stream.device_index());
  before_ = getCurrentCUDAStream(stream.device_index()).stream();
  device_ = stream.device_index();
  setCurrentCUDAStream(stream);
}
void OptionalCUDAStreamGuard::reset() {
  if (device_ < 0) return;
  setCurrentCUDAStream(CUDAStream(before_, device_));
  device_ = -1;
  guard_.reset();
}

int CUDAStream::priority() const {
  int priority = 0;
  require(cudaStreamGetPriority(stream_, &priority));
  return priority;
}
void CUDAStream::synchronize() const { require(cudaStreamSynchronize(stream_)); }
bool CUDAStream::query() const {
  constexpr Code kNotReady = 600;
  const Code code = cudaStreamQuery(stream_);
  if (code == kNotReady) return false;
  require(code);
  return true;
}

DeviceIndex current_device() {
  int device = 0;
  require(cudaGetDevice(&device));
  return static_cast<DeviceIndex>(device);
}
DeviceIndex device_count() noexcept {
  int count = 0;
  return cudaGetDeviceCount(&count) == 0 ? static_cast<DeviceIndex>(count) : DeviceIndex(0);
}
void set_device(DeviceIndex device) { require(cudaSetDevice(device)); }
void device_synchronize() { require(cudaDeviceSynchronize()); }

OptionalCUDAGuard::OptionalCUDAGuard(const std::optional<Device>& device) {
  if (device) set_device(*device);
}
OptionalCUDAGuard::OptionalCUDAGuard(const std::optional<DeviceIndex>& index) {
  if (index) set_index(*index);
}

void OptionalCUDAGuard::set_device(Device device) {
  if (device.is_cuda())
    set_index(device.index() < 0 ? kc::current_device() : device.index());
  else if (kiln::detail::default_backend() == kiln::detail::Backend::real)
    throw Error(str("CUDAGuardImpl initialized with non-CUDA DeviceType: ", device));
}
void OptionalCUDAGuard::set_index(DeviceIndex index) {
  if (!on_gpu()) return;
  const int now = kc::current_device();
  if (before_ < 0) before_ = now;
  if (now != index) kc::set_device(index);
}
void OptionalCUDAGuard::reset() {
  if (before_ >= 0 && on_gpu()) cudaSetDevice(before_);
  before_ = -1;
}
std::optional<Device> OptionalCUDAGuard::original_device() const {
  if (before_ < 0) return std::nullopt;
  return Device(kCUDA, static_cast<DeviceIndex>(before_));
}
std::optional<Device> OptionalCUDAGuard::current_device() const {
  if (before_ < 0) return std::nullopt;
  return Device(kCUDA, kc::current_device());
}
Device CUDAGuard::original_device() const {
  return guard_.original_device().value_or(current_device());
}
CUDAGuard::CUDAGuard(const std::optional<Device>& device) : guard_(device) {}

DeviceIndex ExchangeDevice(DeviceIndex device) {
  const DeviceIndex before = current_device();
  require(impl::maybe_set_device(device));
  return before;
}

namespace impl {
int maybe_set_device(DeviceIndex device) { return on_gpu() ? cudaSetDevice(device) : 0; }
void throw_cublas_error(int status, const char* call) {
  const char* name = "<unknown>";
  switch (status) {
    case 1:
      name = "CUBLAS_STATUS_NOT_INITIALIZED";
      break;
    case 3:
      name = "CUBLAS_STATUS_ALLOC_FAILED";
      break;
    case 7:
      name = "CUBLAS_STATUS_INVALID_VALUE";
      break;
    case 8:
      name = "CUBLAS_STATUS_ARCH_MISMATCH";
      break;
    case 11:
      name = "CUBLAS_STATUS_MAPPING_ERROR";
      break;
    case 13:
      name = "CUBLAS_STATUS_EXECUTION_FAILED";
      break;
    case 14:
      name = "CUBLAS_STATUS_INTERNAL_ERROR";
      break;
    case 15:
      name = "CUBLAS_STATUS_NOT_SUPPORTED";
      break;
    case 16:
      name = "CUBLAS_STATUS_LICENSE_ERROR";
      break;
    default:
      break;
  }
  throw Error(str("CUDA error: ", name, " when calling `", call, "`"));
}
void throw_cuda_error(int code) {
  cudaGetLastError();  // else the next call of anybody reports this one's error
  throw Error(str(
      "CUDA error: ", cudaGetErrorString(code), "\nSearch for `", cudaGetErrorName(code),
      "' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more "
      "information.\n"
      "CUDA kernel errors might be asynchronously reported at some other API call, so the "
      "stacktrace below "
      "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with "
      "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"));
}
}  // namespace impl

}  // namespace kc
}  // namespace cuda
inline namespace kc {
OptionalDeviceGuard::OptionalDeviceGuard(const std::optional<Device>& device) {
  if (device) reset_device(*device);
}
}  // namespace kc
}  // namespace c10

namespace at {
namespace cuda {
inline namespace kc {
void no_such_device(int64_t device) {
  throw Error(c10::str("device >= 0 && device < num_gpus INTERNAL ASSERT FAILED. device=", device,
                       ", num_gpus=", static_cast<int>(device_count())));
}
}  // namespace kc
}  // namespace cuda
}  // namespace at
