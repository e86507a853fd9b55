// SPDX-License-Identifier: Apache-2.0
// The add kernel as a function of TVM-FFI; load_inline adds the includes and the export.
#include "kernel.cuh"

void add(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView out) {
  TVM_FFI_ICHECK(a.numel() == b.numel()) << "shapes differ";
  DLDevice device = a.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  long long count = a.numel();
  add_kernel<<<(count + 255) / 256, 256, 0, stream>>>(static_cast<const float*>(a.data_ptr()),
                                                      static_cast<const float*>(b.data_ptr()),
                                                      static_cast<float*>(out.data_ptr()), count);
}
