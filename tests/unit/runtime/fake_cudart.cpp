// SPDX-License-Identifier: Apache-2.0
// A libcudart 13 that runs nothing and tells what it was asked: the way to a real GPU is tested
// against it.
#include "fake_cudart.h"

#include <string.h>

namespace {
CudartLog g_log;
struct Dim {
  unsigned x, y, z;
};
int note(const void* kernel, Dim grid, Dim block, void** arguments, size_t shared) {
  g_log.kernel = kernel;
  const unsigned g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
  memcpy(g_log.grid, g, sizeof g);
  memcpy(g_log.block, b, sizeof b);
  g_log.shared = shared;
  g_log.argument = *static_cast<int*>(arguments[0]);
  return g_log.next_error;
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
CudartLog* fake_cudart_log() { return &g_log; }

int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return 0;
}
void** __cudaRegisterFatBinary(void* wrapper) {
  g_log.images++;
  return reinterpret_cast<void**>(wrapper);
}
void __cudaRegisterFatBinaryEnd(void**) { g_log.ends++; }
void __cudaRegisterFunction(void**, const char*, char*, const char* name, int, void*, void*, void*,
                            void*, int*) {
  g_log.functions++;
  strncpy(g_log.function, name, sizeof g_log.function - 1);
}
int __cudaGetKernel(const void** kernel, const void* host) {
  g_log.lookups++;
  *kernel = static_cast<const char*>(host) + 1;  // a handle is no address of the host's
  return 0;
}
int __cudaLaunchKernel(const void* kernel, Dim grid, Dim block, void** arguments, size_t shared,
                       void*) {
  g_log.launches++;
  return note(kernel, grid, block, arguments, shared);
}
int cudaLaunchKernel(const void* host, Dim grid, Dim block, void** arguments, size_t shared,
                     void*) {
  g_log.launches_by_host++;
  return note(host, grid, block, arguments, shared);
}
int cudaMalloc(void** data, size_t bytes) {
  g_log.malloc_bytes = bytes;
  *data = &g_log;
  return 0;
}
int cudaFree(void*) { return 0; }
int cudaDeviceGetDefaultMemPool(void** pool, int) {
  *pool = &g_log;
  return 0;
}
int cudaMemPoolSetAttribute(void*, int, void*) { return 0; }
int cudaMallocAsync(void** data, size_t bytes, void* stream) {
  g_log.malloc_bytes = bytes;
  g_log.malloc_stream = stream;
  *data = &g_log;
  return 0;
}
int cudaFreeAsync(void*, void* stream) {
  g_log.frees++;
  g_log.free_stream = stream;
  return 0;
}
int cudaEventCreateWithFlags(void** event, unsigned) {
  g_log.events++;
  *event = &g_log.events;
  return 0;
}
int cudaEventRecord(void*, void* stream) {
  g_log.event_stream = stream;
  return 0;
}
int cudaStreamWaitEvent(void* stream, void*, unsigned) {
  g_log.waiting_stream = stream;
  return 0;
}
int cudaEventDestroy(void*) {
  g_log.events--;
  return 0;
}
int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cudaSetDevice(int) { return 0; }
int cudaFuncSetAttribute(const void*, int, int value) {
  g_log.attribute_value = value;
  return value > 200 * 1024 ? 1 : 0;
}
int cudaGetLastError() {
  g_log.last_error_reads++;
  return 0;
}
const char* cudaGetErrorName(int) { return "cudaErrorFake"; }
const char* cudaGetErrorString(int) { return "as the test wished"; }
}
#pragma GCC visibility pop
