// SPDX-License-Identifier: Apache-2.0
// Does a program get the right result or an error, whatever it is denied? limits.py runs it under
// limits of memory, threads and files. Exit status: 0 all results are right; 3 a call failed, and
// says which; 4 every call succeeded and a result is wrong.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int kBlocks = 12, kThreads = 128, kRoom = 16384;  // 64 KB of local memory per thread

// The sum of 0 .. kRoom - 1 times the number of the thread, by way of an array that no register
// holds.
__global__ void sum_of_much(unsigned long long* out, int step) {
  unsigned room[kRoom];
  const unsigned self = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < kRoom; i += 64) room[(i * step) % kRoom] = i + self;
  __syncthreads();  // the warps of a block have their memory at the same time
  unsigned long long sum = 0;
  for (int i = 0; i < kRoom; i += 64) sum += room[(i * step) % kRoom];
  atomicAdd(out, sum);
}

__global__ void reverse(int* values) {
  extern __shared__ int tile[];
  const int base = blockIdx.x * blockDim.x;
  tile[threadIdx.x] = values[base + threadIdx.x];
  __syncthreads();
  values[base + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void own_list(int* out) {
  int* mine = static_cast<int*>(malloc(256));
  if (!mine) return;  // the device's heap may be used up: no error
  for (int i = 0; i < 64; ++i) mine[i] = i;
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += mine[i];
  free(mine);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// One line at the end of the process, also where two threads fail.
[[noreturn]] void refuse(const char* what, cudaError_t code) {
  std::fprintf(stderr, "refused: %s: %s\n", what, cudaGetErrorName(code));
  std::_Exit(3);
}
void check(const char* what, cudaError_t code) {
  if (code != cudaSuccess) refuse(what, code);
}
#define CHECK(...) check(#__VA_ARGS__, __VA_ARGS__)

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(4);
}

// Checks as a careless program does: only the calls that wait.
void local_memory() {
  unsigned long long *out = nullptr, seen = 0, wanted = 0;
  CHECK(cudaMalloc(&out, sizeof *out));
  CHECK(cudaMemset(out, 0, sizeof *out));
  sum_of_much<<<kBlocks, kThreads>>>(out, 1);
  CHECK(cudaMemcpy(&seen, out, sizeof seen, cudaMemcpyDeviceToHost));
  for (unsigned long long self = 0; self < kBlocks * kThreads; ++self) {
    for (unsigned i = 0; i < kRoom; i += 64) wanted += i + self;
  }
  if (seen != wanted) wrong("sum_of_much");
  CHECK(cudaFree(out));
}

void shared_memory(cudaStream_t stream) {
  constexpr int kCount = 256 * 64;
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* device = nullptr;
  CHECK(cudaMalloc(&device, kCount * sizeof(int)));
  CHECK(cudaMemcpyAsync(device, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 3; ++i) reverse<<<kCount / 256, 256, 40 * 1024, stream>>>(device);
  CHECK(cudaMemcpyAsync(host.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) {
    if (host[i] != i / 256 * 256 + 255 - i % 256) wrong("reverse");
  }
  CHECK(cudaFree(device));
}

void device_heap() {
  int *out = nullptr, host[512] = {};
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemset(out, 0, sizeof host));
  own_list<<<8, 64>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) {
    if (value != 0 && value != 2016) wrong("own_list");
  }
  CHECK(cudaFree(out));
}

void captured() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *device = nullptr, host[256];
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemset(device, 0, sizeof host));
  for (int i = 0; i < 256; ++i) host[i] = i;
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  reverse<<<1, 256, 1024, stream>>>(device);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  if (host[0] != 255 || host[255] != 0) wrong("a graph");
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
}

int main() {
  local_memory();
  device_heap();
  captured();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  std::thread other;
  try {  // two launches at once, where the system allows it
    other = std::thread([] { local_memory(); });
  } catch (const std::exception&) {
    local_memory();
  }
  shared_memory(stream);
  if (other.joinable()) other.join();
  CHECK(cudaStreamDestroy(stream));
  std::puts("right");
  return 0;
}
