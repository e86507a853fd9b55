// SPDX-License-Identifier: Apache-2.0
// Which wrong addresses must `memory` find? Each kernel with a mistake has a twin without it.
// `expect RULE #NAME` stands in the line of the mistake (rules.md).
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kCount = 100, kThreads = 128;

__global__ void read_past_end(const float* x, float* y) {
  const int i = threadIdx.x;
  y[i] = x[i];  // expect out-of-bounds #read-past-end
}
__global__ void read_past_end_good(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = x[i];
}

__global__ void write_past_end(float* y, int n) {
  const int i = threadIdx.x;
  if (i <= n) y[i] = 1;  // expect out-of-bounds #write-past-end
}
__global__ void write_past_end_good(float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = 1;
}

__global__ void read_before_begin(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = x[i - 1];  // expect out-of-bounds #read-before-begin
}
__global__ void read_before_begin_good(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = i > 0 ? x[i - 1] : 0;
}

__global__ void atomic_past_end(int* bins, int n) {
  atomicAdd(&bins[threadIdx.x % (n + 1)], 1);  // expect out-of-bounds #atomic-past-end
}
__global__ void atomic_past_end_good(int* bins, int n) { atomicAdd(&bins[threadIdx.x % n], 1); }

__global__ void null_pointer(const float* x, float* y) {
  y[threadIdx.x] = x ? x[0] : *x;  // expect out-of-bounds #null-pointer
}
__global__ void null_pointer_good(const float* x, float* y) { y[threadIdx.x] = x ? x[0] : 0; }

__global__ void misaligned_vector(const float* x, float4* y) {
  y[threadIdx.x] = *reinterpret_cast<const float4*>(x + 1);  // expect misaligned #misaligned-vector
}
__global__ void misaligned_vector_good(const float* x, float4* y) {
  y[threadIdx.x] = *reinterpret_cast<const float4*>(x + 4);
}

__global__ void misaligned_shared(double* y, int offset) {
  __shared__ __align__(8) char bytes[512];
  bytes[threadIdx.x] = 0;
  __syncthreads();
  // expect-next misaligned #misaligned-shared
  y[threadIdx.x] = *reinterpret_cast<volatile double*>(bytes + offset);
}
__global__ void misaligned_shared_good(double* y, int offset) {
  __shared__ __align__(8) char bytes[512];
  bytes[threadIdx.x] = 0;
  __syncthreads();
  y[threadIdx.x] = *reinterpret_cast<volatile double*>(bytes + offset / 8 * 8);
}

__global__ void shared_past_end(float* y, int n) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x + n] = 1;  // expect out-of-bounds #shared-past-end
  __syncthreads();
  y[threadIdx.x] = tile[(threadIdx.x + 1) % kThreads];
}
__global__ void shared_past_end_good(float* y, int n) {
  __shared__ float tile[kThreads];
  tile[(threadIdx.x + n) % kThreads] = 1;
  __syncthreads();
  y[threadIdx.x] = tile[(threadIdx.x + 1) % kThreads];
}

__global__ void dynamic_not_requested(float* y) {
  extern __shared__ float room[];
  room[threadIdx.x] = 1;  // expect out-of-bounds #dynamic-not-requested
  if (threadIdx.x == 0) y[0] = 1;
}
__global__ void dynamic_not_requested_good(float* y) {
  extern __shared__ float room[];
  room[threadIdx.x] = 1;
  if (threadIdx.x == 0) y[0] = room[0];
}

// The bytes are there, and are another array's.
__global__ void shared_into_neighbour(float* y, int n) {
  __shared__ float first[32], tile[32], last[32];
  first[threadIdx.x] = last[threadIdx.x] = tile[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x + n];  // expect out-of-bounds #shared-into-neighbour
  y[threadIdx.x] +=
      tile[static_cast<int>(threadIdx.x) - n];  // expect out-of-bounds #shared-before-begin
  y[threadIdx.x] += first[threadIdx.x] + last[threadIdx.x];
}
__global__ void shared_into_neighbour_good(float* y, int n) {
  __shared__ float first[32], tile[32], last[32];
  first[threadIdx.x] = last[threadIdx.x] = tile[threadIdx.x] = 1;
  __syncthreads();
  const float* other = n > 1 ? first : last;  // either of two
  const float* behind = tile - n;             // no element of it is read before the first
  for (int i = 0; i < 32; ++i) y[threadIdx.x] += other[i] + behind[i + n];
  y[threadIdx.x] += tile[(threadIdx.x + n) % 32] + first[threadIdx.x ^ 1] + last[31];
}

// The address of one array is made of another's: by turns, and by the distance between them.
__global__ void shared_by_turns_good(float* y, int n) {
  __shared__ float first[32], last[32];
  first[threadIdx.x] = last[threadIdx.x] = 1;
  __syncthreads();
  const auto a = static_cast<unsigned>(__cvta_generic_to_shared(first + threadIdx.x));
  const auto b = static_cast<unsigned>(__cvta_generic_to_shared(last + threadIdx.x));
  unsigned at = a;
  for (int i = 0; i < n; ++i, at ^= a ^ b) {
    float one, other;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(one) : "r"(at));
    asm volatile("{.reg .b32 t; sub.u32 t, %2, %1; add.u32 t, %1, t; ld.shared.f32 %0, [t];}"
                 : "=f"(other)
                 : "r"(a), "r"(b));
    y[threadIdx.x] += one + other;
  }
}

__global__ void shared_into_dynamic(float* y, int n) {
  __shared__ float tile[32];
  extern __shared__ float more[];
  tile[threadIdx.x] = more[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&tile[n], 1.f);  // expect out-of-bounds #shared-into-dynamic
  if (threadIdx.x == 1) y[1] = more[-n];           // expect out-of-bounds #dynamic-before-begin
  y[threadIdx.x] = tile[threadIdx.x] + more[threadIdx.x];
}
__global__ void shared_into_dynamic_good(float* y, int n) {
  __shared__ float tile[33];
  extern __shared__ float more[];
  tile[threadIdx.x] = more[threadIdx.x + n] = 1;
  __syncthreads();
  const float* middle = more + n;
  if (threadIdx.x == 0) tile[n] = 1;
  if (threadIdx.x == 1) y[1] = middle[-n + static_cast<int>(threadIdx.x) - 1 + n];
}

__global__ void local_past_end(float* y, int at) {
  float own[8];
  for (int i = 0; i < 8; ++i) own[(i + at) % 8] = static_cast<float>(i);
  y[threadIdx.x] = own[at + 4096];  // expect out-of-bounds #local-past-end
}
__global__ void local_past_end_good(float* y, int at) {
  float own[8];
  for (int i = 0; i < 8; ++i) own[(i + at) % 8] = static_cast<float>(i);
  y[threadIdx.x] = own[(at + 4096) % 8];
}

__global__ void use_after_free(const float* x, float* y) {
  y[threadIdx.x] = x[0];  // expect use-after-free #use-after-free
}
__global__ void use_after_free_async(const float* x, float* y) {
  y[threadIdx.x] = x[0];  // expect use-after-free #use-after-free-async
}
__global__ void before_the_free(const float* x, float* y) { y[threadIdx.x] = x[0]; }

__global__ void device_heap_past_end(float* y) {
  float* own = static_cast<float*>(malloc(4 * sizeof(float)));
  own[threadIdx.x] = 1;  // expect out-of-bounds #device-heap-past-end
  if (threadIdx.x == 0) y[0] = 1;
  free(own);
}
__global__ void device_heap_good(float* y) {
  float* own = static_cast<float*>(malloc(4 * sizeof(float)));
  own[threadIdx.x % 4] = 1;
  if (threadIdx.x == 0) y[0] = own[0];
  free(own);
}

__global__ void device_double_free() {
  void* own = malloc(16);
  free(own);
  free(own);  // expect double-free #device-double-free
}

__global__ void device_use_after_free(float* y) {
  float* own = static_cast<float*>(malloc(16));
  own[0] = 1;
  free(own);
  y[threadIdx.x] = *static_cast<volatile float*>(own);  // expect use-after-free #device-use-after
}

__device__ int g_table[16];
__constant__ int g_factors[16];

__global__ void variable_past_end(int* y, int at) {
  y[0] = g_table[at];  // expect out-of-bounds #variable-past-end
}
__global__ void variable_past_end_good(int* y, int at) { y[0] = g_table[at % 16]; }

__global__ void constant_past_end(int* y, int at) {
  y[0] = g_factors[at];  // expect out-of-bounds #constant-past-end
}
__global__ void constant_past_end_good(int* y, int at) { y[0] = g_factors[at % 16]; }

__global__ void vector_over_end(const float4* x, float4* y) {
  y[0] = x[25];  // expect out-of-bounds #vector-over-end
}
__global__ void vector_over_end_good(const float4* x, float4* y) { y[0] = x[24]; }

__device__ __noinline__ float element(const float* x, int i) {
  return x[i];  // expect out-of-bounds #in-called-function
}
__global__ void in_called_function(const float* x, float* y, int i) { y[0] = element(x, i); }

__device__ float inlined_element(const float* x, int i) {
  return x[i];  // expect out-of-bounds #in-inlined-function
}
__global__ void in_inlined_function(const float* x, float* y, int i) {
  y[0] = inlined_element(x, i);
}
__global__ void in_function_good(const float* x, float* y, int i) { y[0] = x[i] + 1; }

__global__ void goes_on(const int* index, float* y) {
  const int i = index[threadIdx.x + kCount];  // expect out-of-bounds #first-of-two
  y[kCount + (i & 1)] = 1;                    // expect out-of-bounds #second-of-two
}

__global__ void host_memory(const float* x, float* y) {
  y[0] = x[threadIdx.x];  // expect out-of-bounds #host-memory
}

__global__ void row_too_long(float* image, size_t pitch, int height) {
  auto* row = reinterpret_cast<float*>(reinterpret_cast<char*>(image) + threadIdx.x * pitch);
  if (threadIdx.x <= height) row[0] = 1;  // expect out-of-bounds #row-too-many
}
__global__ void rows_good(float* image, size_t pitch, int height) {
  auto* row = reinterpret_cast<float*>(reinterpret_cast<char*>(image) + threadIdx.x * pitch);
  if (threadIdx.x < height) row[0] = 1;
}

__global__ void wild_pointer(const long* offsets, float* y) {
  y[offsets[0]] = 1;  // expect out-of-bounds #wild-pointer
}

template <class T>
T* made(size_t count) {
  T* out = nullptr;
  cudaMalloc(&out, count * sizeof(T));
  cudaMemset(out, 0, count * sizeof(T));
  return out;
}

void globals() {
  float *x = made<float>(kCount), *y = made<float>(kThreads);
  float* small = made<float>(kCount);
  read_past_end<<<1, kThreads>>>(x, y);
  read_past_end_good<<<1, kThreads>>>(x, y, kCount);
  write_past_end<<<1, kThreads>>>(small, kCount);
  write_past_end_good<<<1, kThreads>>>(small, kCount);
  read_before_begin<<<1, kThreads>>>(x, y, kCount);
  read_before_begin_good<<<1, kThreads>>>(x, y, kCount);
  int* bins = made<int>(10);
  atomic_past_end<<<1, kThreads>>>(bins, 10);
  atomic_past_end_good<<<1, kThreads>>>(bins, 10);
  null_pointer<<<1, 1>>>(nullptr, y);
  null_pointer_good<<<1, 1>>>(nullptr, y);
  auto* y4 = made<float4>(kThreads);
  misaligned_vector<<<1, 1>>>(x, y4);
  misaligned_vector_good<<<1, 1>>>(x, y4);
  vector_over_end<<<1, 1>>>(reinterpret_cast<const float4*>(x), y4);
  vector_over_end_good<<<1, 1>>>(reinterpret_cast<const float4*>(x), y4);
  in_called_function<<<1, 1>>>(x, y, kCount);
  in_inlined_function<<<1, 1>>>(x, y, kCount);
  in_function_good<<<1, 1>>>(x, y, kCount - 1);
  goes_on<<<1, 1>>>(reinterpret_cast<const int*>(x), small);
  float* mine = static_cast<float*>(std::malloc(4096));
  host_memory<<<1, 1>>>(mine, y);
  std::free(mine);
  long* offsets = made<long>(1);
  const long far = 1l << 40;
  cudaMemcpy(offsets, &far, sizeof far, cudaMemcpyHostToDevice);
  wild_pointer<<<1, 1>>>(offsets, y);
  float* image = nullptr;
  size_t pitch = 0;
  cudaMallocPitch(&image, &pitch, 40, 8);
  row_too_long<<<1, 32>>>(image, pitch, 8);
  rows_good<<<1, 32>>>(image, pitch, 8);
}

void other_spaces() {
  float* y = made<float>(kThreads);
  auto* wide = made<double>(32);
  misaligned_shared<<<1, 32>>>(wide, 4);
  misaligned_shared_good<<<1, 32>>>(wide, 4);
  shared_past_end<<<1, kThreads>>>(y, 1);
  shared_past_end_good<<<1, kThreads>>>(y, 1);
  dynamic_not_requested<<<1, 32>>>(y);
  dynamic_not_requested_good<<<1, 32, 128>>>(y);
  shared_into_neighbour<<<1, 32>>>(y, 1);
  shared_into_neighbour_good<<<1, 32>>>(y, 1);
  shared_by_turns_good<<<1, 32>>>(y, 4);
  shared_into_dynamic<<<1, 32, 128>>>(y, 32);
  shared_into_dynamic_good<<<1, 32, 256>>>(y, 32);
  local_past_end<<<1, 32>>>(y, 3);
  local_past_end_good<<<1, 32>>>(y, 3);
  int* out = made<int>(1);
  variable_past_end<<<1, 1>>>(out, 16);
  variable_past_end_good<<<1, 1>>>(out, 16);
  constant_past_end<<<1, 1>>>(out, 16);
  constant_past_end_good<<<1, 1>>>(out, 16);
}

void lifetimes() {
  float *x = made<float>(kCount), *y = made<float>(kThreads);
  before_the_free<<<1, 32>>>(x, y);
  cudaFree(x);
  float* again = made<float>(kCount);  // must not hide the use of the freed one
  use_after_free<<<1, 32>>>(x, y);
  before_the_free<<<1, 32>>>(again, y);
  float* pooled = nullptr;
  cudaMallocAsync(&pooled, 64, nullptr);
  cudaMemsetAsync(pooled, 0, 64, nullptr);
  before_the_free<<<1, 32>>>(pooled, y);
  cudaFreeAsync(pooled, nullptr);
  use_after_free_async<<<1, 32>>>(pooled, y);
  device_heap_past_end<<<1, 8>>>(y);
  device_heap_good<<<1, 8>>>(y);
  device_double_free<<<1, 1>>>();
  device_use_after_free<<<1, 1>>>(y);
}

// Calls of the host have no line: expect-host RULE COUNT.
void host_calls() {
  float* x = made<float>(kCount);
  cudaFree(x);
  cudaFree(x);  // expect-host double-free 1
  float* y = made<float>(kCount);
  cudaFree(y + 1);  // expect-host invalid-free 1
  float host[2 * kCount] = {};
  cudaMemcpy(y, host, sizeof host, cudaMemcpyHostToDevice);  // expect-host copy-out-of-bounds 5
  cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemset(y, 0, kCount * sizeof(float) + 1);
  cudaMemcpyToSymbol(g_factors, host, sizeof g_factors + 4);
  cudaMemcpyFromSymbol(host, g_table, sizeof g_table, 4);
  cudaMemcpyToSymbol(g_factors, host, sizeof g_factors);
  cudaMemcpyFromSymbol(host, g_table, sizeof g_table - 4, 4);
  cudaMemcpy(y, host, kCount * sizeof(float), cudaMemcpyHostToDevice);
  cudaFree(y);
}

}  // namespace

int main() {
  globals();
  other_spaces();
  lifetimes();
  host_calls();
  const cudaError_t code = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(code));
  return 0;
}
