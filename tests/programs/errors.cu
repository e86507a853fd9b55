// SPDX-License-Identifier: Apache-2.0
// Where does a program meet its mistakes? Wrong calls at once, faults of kernels at the next call
// that waits; the process stays alive.
#include <cuda.h>

#include "expect.h"

__global__ void store(int* p, int value) { p[threadIdx.x] = value; }
// A terabyte: nearer than that a GPU has its window of shared memory, and another error for a store
// to it.
__global__ void store_far(int* p) { p[(1ll << 38) + threadIdx.x] = 1; }
__global__ void store_crooked(char* p) { *reinterpret_cast<int*>(p + 1) = 1; }
__global__ void stop() { asm volatile("trap;"); }
// An innermost coordinate of 4 bytes: rows of a tile start at multiples of 16.
__global__ void store_tile_between(const __grid_constant__ CUtensorMap map) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) int tile[64];
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
      "cp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;" ::"l"(&map),
      "r"(1), "r"(0), "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile)))
      : "memory");
#endif
}
__global__ void wants_much() {
  extern __shared__ int shared[];
  shared[threadIdx.x] = 1;
}
__device__ int variable;

using Fault = void (*)(int*);
void out_of_bounds(int* p) { store_far<<<1, 32>>>(p); }
void null_pointer(int*) { store<<<1, 32>>>(nullptr, 1); }
void wild_pointer(int*) { store<<<1, 32>>>(reinterpret_cast<int*>(0x1234560), 1); }
void crooked(int* p) { store_crooked<<<1, 1>>>(reinterpret_cast<char*>(p)); }
void trap(int*) { stop<<<1, 1>>>(); }
void tile_between(int* p) {
  CUtensorMap map;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                             cudaEnableDefault, &found));
  const cuuint64_t sizes[] = {16, 16}, strides[] = {64};
  const cuuint32_t box[] = {8, 8}, steps[] = {1, 1};
  EXPECT(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
             &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, p, sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  store_tile_between<<<1, 1>>>(map);
}

void faults_are_told_by_the_next_call_that_waits(Fault fault, cudaError_t wanted) {
  int *p = nullptr, *q = nullptr;
  EXPECT_OK(cudaMalloc(&p, 4096));
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemset(p, 0, 4096));
  fault(p);
  EXPECT_OK(cudaGetLastError());      // the launch itself was right
  store<<<1, 32, 0, stream>>>(p, 5);  // behind the fault
  EXPECT_OK(cudaMemsetAsync(p, 1, 4, stream));
  EXPECT_CODE(wanted, cudaDeviceSynchronize());
  EXPECT_CODE(wanted, cudaGetLastError());
  EXPECT_OK(cudaGetLastError());
  EXPECT_CODE(wanted, cudaMalloc(&q, 16));  // the context is lost
  EXPECT_CODE(wanted, cudaStreamSynchronize(stream));
  EXPECT_OK(cudaDeviceReset());
  EXPECT_CODE(wanted,
              cudaGetLastError());  // a reset forgets the context, not what the last call said
  EXPECT_OK(cudaGetLastError());
  if (!on_the_engine()) return;  // a GPU may want a new process
  EXPECT_OK(cudaMalloc(&p, 4096));
  store<<<1, 32>>>(p, 7);
  int seen = 0;
  EXPECT_OK(cudaMemcpy(&seen, p, 4, cudaMemcpyDeviceToHost));
  EXPECT(seen == 7);
  EXPECT_OK(cudaFree(p));
}

void wrong_launches_are_told_at_once() {
  int* p = nullptr;
  EXPECT_OK(cudaMalloc(&p, 4096));
  store<<<0, 32>>>(p, 1);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  store<<<dim3(1, 70000), 32>>>(p, 1);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  store<<<1, 1025>>>(p, 1);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  wants_much<<<1, 32, 49 * 1024>>>();
  EXPECT_CODE(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_OK(
      cudaFuncSetAttribute(wants_much, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  wants_much<<<1, 32, 100 * 1024>>>();
  EXPECT_OK(cudaGetLastError());
  EXPECT_CODE(
      cudaErrorInvalidValue,
      cudaFuncSetAttribute(wants_much, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  cudaGetLastError();
  EXPECT_EITHER(
      cudaErrorInvalidDeviceFunction, cudaErrorInvalidResourceHandle,
      cudaLaunchKernel(reinterpret_cast<void*>(&finish), dim3(1), dim3(1), nullptr, 0, nullptr));
  cudaGetLastError();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(p));
}

void wrong_arguments_are_told_at_once() {
  int* p = nullptr;
  int host[2048] = {};  // as much as the copies name
  EXPECT_OK(cudaMalloc(&p, 4096));
  EXPECT_CODE(cudaErrorInvalidValue,
              cudaMemcpy(&host, reinterpret_cast<void*>(0x1234), 4, cudaMemcpyDeviceToHost));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(p, &host, 8192, cudaMemcpyHostToDevice));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(p, nullptr, 4, cudaMemcpyHostToDevice));
  EXPECT_CODE(cudaErrorInvalidMemcpyDirection,
              cudaMemcpy(p, &host, 4, static_cast<cudaMemcpyKind>(9)));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemset(p, 0, 4097));
  EXPECT_CODE(cudaErrorInvalidPitchValue,
              cudaMemcpy2D(p, 8, p + 512, 64, 32, 4, cudaMemcpyDeviceToDevice));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(&host));
  EXPECT_CODE(cudaErrorMemoryAllocation, cudaMalloc(&p, size_t{1} << 50));
  EXPECT_CODE(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(host, &host, 4));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpyToSymbol(variable, &host, 8));
  EXPECT_OK(cudaMemcpyToSymbol(variable, &host, 4));
  EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(99));
  EXPECT_CODE(cudaErrorInvalidDevice, cudaGetLastError());
}

// A GPU's runtime reads through such a handle.
void handles_that_are_none_are_told() {
  int *p = nullptr, host = 0;
  EXPECT_OK(cudaMalloc(&p, 4096));
  EXPECT_CODE(cudaErrorInvalidResourceHandle,
              cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&host)));
  EXPECT_CODE(cudaErrorInvalidResourceHandle,
              cudaEventRecord(reinterpret_cast<cudaEvent_t>(&host)));
  EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaGetLastError());
  cudaIpcMemHandle_t handle;
  EXPECT_CODE(cudaErrorNotSupported, cudaIpcGetMemHandle(&handle, p));
  cudaGetLastError();
}

// The engine has no istypep. A launch by <<<>>> has no result: the call that waits reports it.
__global__ void not_supported(int* p) {
  asm volatile("{ .reg .pred q; istypep.texref q, %0; }" ::"l"(p) : "memory");
  *p = 1;
}

void launches_that_cannot_begin_are_told_by_calls_that_wait() {
  int *p = nullptr, seen = 0;
  EXPECT_OK(cudaMalloc(&p, 4096));
  EXPECT_OK(cudaMemset(p, 0, 4096));
  not_supported<<<1, 1>>>(p);
  EXPECT_CODE(cudaErrorNotSupported, cudaDeviceSynchronize());
  EXPECT_CODE(cudaErrorNotSupported, cudaMemcpy(&seen, p, 4, cudaMemcpyDeviceToHost));
  EXPECT_CODE(cudaErrorNotSupported, cudaPeekAtLastError());
  EXPECT_CODE(cudaErrorNotSupported, cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());  // the program has seen it, and may do without
  store<<<1, 32>>>(p, 7);
  EXPECT_OK(cudaMemcpy(&seen, p, 4, cudaMemcpyDeviceToHost));
  EXPECT(seen == 7);
  not_supported<<<1, 1>>>(p);
  EXPECT_CODE(cudaErrorNotSupported, cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(p));
}

int main() {
  struct {
    Fault fault;
    cudaError_t wanted;
  } const faults[] = {
      {out_of_bounds, cudaErrorIllegalAddress}, {null_pointer, cudaErrorIllegalAddress},
      {wild_pointer, cudaErrorIllegalAddress},  {crooked, cudaErrorMisalignedAddress},
      {trap, cudaErrorLaunchFailure},           {tile_between, cudaErrorIllegalInstruction}};
  for (const auto& one : faults) {
    in_a_child([&] { faults_are_told_by_the_next_call_that_waits(one.fault, one.wanted); });
  }
  wrong_launches_are_told_at_once();
  wrong_arguments_are_told_at_once();
  if (on_the_engine()) {
    handles_that_are_none_are_told();
    launches_that_cannot_begin_are_told_by_calls_that_wait();
    for (const auto& one : faults)
      faults_are_told_by_the_next_call_that_waits(one.fault, one.wanted);
  }
  return finish();
}
