// SPDX-License-Identifier: Apache-2.0
// Which functions of the driver, NVML and cuBLAS does the timing core use? Found at run time:
// nothing of CUDA is linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace kiln::measure {

using CuDevice = int;
using CuContext = void*;
using CuStream = void*;
using CuEvent = void*;
using CuPointer = unsigned long long;

// libcuda.so.1. All are there in every driver that CUDA 12 and 13 run on; `wait_value` may be
// missing.
struct CudaDriver {
  int (*init)(unsigned);
  int (*driver_version)(int*);
  int (*device_get)(CuDevice*, int);
  int (*device_count)(int*);
  int (*device_name)(char*, int, CuDevice);
  int (*device_attribute)(int*, int, CuDevice);
  int (*device_memory)(size_t*, CuDevice);
  int (*device_pci)(char*, int, CuDevice);
  int (*primary_retain)(CuContext*, CuDevice);
  int (*primary_release)(CuDevice);
  int (*context_set)(CuContext);
  int (*context_get)(CuContext*);
  int (*context_synchronize)();
  int (*reset_persisting)();
  int (*context_limit)(size_t*, int);
  int (*event_create)(CuEvent*, unsigned);
  int (*event_destroy)(CuEvent);
  int (*event_record)(CuEvent, CuStream);
  int (*event_query)(CuEvent);
  int (*event_elapsed)(float*, CuEvent, CuEvent);
  int (*stream_create)(CuStream*, unsigned);
  int (*stream_destroy)(CuStream);
  int (*stream_query)(CuStream);
  int (*begin_capture)(CuStream, int);
  int (*end_capture)(CuStream, void**);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, CuStream);
  int (*graph_exec_destroy)(void*);
  int (*graph_destroy)(void*);
  int (*memory_allocate)(CuPointer*, size_t);
  int (*memory_free)(CuPointer);
  int (*memory_free_total)(size_t*, size_t*);
  int (*memory_set)(CuPointer, unsigned char, size_t, CuStream);
  int (*host_allocate)(void**, size_t, unsigned);
  int (*host_free)(void*);
  int (*host_device_pointer)(CuPointer*, void*, unsigned);
  int (*module_load)(void**, const void*);
  int (*module_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                CuStream, void**, void**);
  int (*error_name)(int, const char**);
  int (*error_string)(int, const char**);
  int (*wait_value)(CuStream, CuPointer, uint32_t, unsigned);  // may be null
};

// Environment fault when there is no driver; the table lives as long as the process.
Result<const CudaDriver*> cuda_driver();

// "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
std::string cuda_error_text(const CudaDriver& driver, int code);

// libnvidia-ml.so.1, for one GPU. A part that is missing answers with zeros.
class Nvml {
 public:
  // `pci` as cuDeviceGetPCIBusId writes it.
  static Result<Nvml> open(const std::string& pci);
  unsigned sm_mhz() const;
  unsigned most_sm_mhz() const;
  uint64_t reasons() const;
  double watts() const;
  double celsius() const;
  struct Process {
    unsigned pid;
    unsigned long long used_bytes;
  };
  // Those that compute on this GPU, this process included. False: NVML does not tell.
  bool processes(Process* into, unsigned& count) const;
  std::string driver() const;

 private:
  void* device_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*most_clock_)(void*, int, unsigned*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*processes_)(void*, unsigned*, void*) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
};

// libcublas: D = A B of bf16 matrices n x n with f32 sums, enqueued on `stream`.
class Blas {
 public:
  static Result<Blas> open(CuStream stream);
  int multiply(int n, CuPointer a, CuPointer b, CuPointer c) const;

 private:
  void* handle_ = nullptr;
  int (*gemm_)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int,
               int, const void*, void*, int, int, int, int) = nullptr;
};

}  // namespace kiln::measure
