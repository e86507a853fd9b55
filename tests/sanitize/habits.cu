// SPDX-License-Identifier: Apache-2.0
// Are mistakes found where code is written as applications write it? Scopes and fences, shared
// memory that is carved up, functions that are inlined, calls of the host, each with a twin
// (rules.md).
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 64;

// ---- Fences

// What other threads wrote comes behind the only fence.
__global__ void fence_too_early(int* part, int* flag, int* sum) {
  if (blockIdx.x == 0) {
    part[threadIdx.x] = 1;  // expect global-race #fence-too-early
    if (threadIdx.x == 0) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    for (int i = 0; i < kThreads; ++i) *sum += part[i];  // expect global-race #fence-too-early
  }
}
template <bool kAll>
__global__ void fence_good(int* part, int* flag, int* sum) {
  if (blockIdx.x == 0) {
    part[threadIdx.x] = 1;
    if (kAll) __threadfence();
    __syncthreads();
    if (!kAll && threadIdx.x == 0) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    for (int i = 0; i < kThreads; ++i) *sum += part[i];
  }
}

// The example of the CUDA programming guide: the last block sets the counter back.
__global__ void guide_good(volatile int* part, unsigned* count, int* sum) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = 1;
    __threadfence();
    last = atomicInc(count, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    for (int i = 0; i < static_cast<int>(gridDim.x); ++i) *sum += part[i];
    *count = 0;
  }
}

// Only one of release and acquire; scopes of one block between two.
__global__ void release_alone(int* data, int* flag, int* out) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> at(*flag);
  if (blockIdx.x == 0) {
    *data = 1;  // expect global-race #release-alone
    at.store(1, cuda::memory_order_release);
  } else {
    while (at.load(cuda::memory_order_relaxed) == 0) {
    }
    *out = *data;  // expect global-race #release-alone
  }
}
__global__ void one_side_in_scope(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 1;  // expect global-race #scope-of-one-side
    cuda::atomic_ref<int, cuda::thread_scope_block> at(*flag);
    at.store(1, cuda::memory_order_release);  // expect global-race #flag-of-one-side
  } else {
    cuda::atomic_ref<int, cuda::thread_scope_device> at(*flag);
    while (at.load(cuda::memory_order_acquire) == 0) {  // expect global-race #flag-of-one-side
    }
    *out = *data;  // expect global-race #scope-of-one-side
  }
}
__global__ void message_good(int* data, int* flag, int* out) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> at(*flag);
  if (blockIdx.x == 0) {
    *data = 1;
    at.store(1, cuda::memory_order_release);
  } else {
    while (at.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *data;
  }
}

// The last of three readers does not say that it is done.
template <int kSignals>
__global__ void two_of_three(int* data, int* count, int* out) {
  if (blockIdx.x < 3) {
    out[blockIdx.x] = *data;  // expect global-race #two-of-three
    __threadfence();
    if (blockIdx.x < kSignals) atomicAdd(count, 1);
  } else {
    while (atomicAdd(count, 0) < kSignals) {
    }
    __threadfence();
    *data = 9;  // expect global-race #two-of-three
  }
}
__global__ void all_of_three_good(int* data, int* count, int* out) {
  if (blockIdx.x < 3) {
    out[blockIdx.x] = *data;
    __threadfence();
    atomicAdd(count, 1);
  } else {
    while (atomicAdd(count, 0) < 3) {
    }
    __threadfence();
    *data = 9;
  }
}

// A warp that has ended takes no part in a barrier that counts threads.
__global__ void ended_reader(int* data, int* out) {
  const unsigned warp = threadIdx.x / 32;
  if (warp < 3) out[threadIdx.x] = data[threadIdx.x % 32];  // expect global-race #ended-reader
  if (warp == 2) return;
  asm volatile("bar.sync 1, 96;" ::: "memory");
  if (warp == 3) data[threadIdx.x % 32] = 9;  // expect global-race #ended-reader
}
__global__ void ended_reader_good(int* data, int* out) {
  const unsigned warp = threadIdx.x / 32;
  if (warp < 3) out[threadIdx.x] = data[threadIdx.x % 32];
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (warp == 3) data[threadIdx.x % 32] = 9;
}

// ---- Calls of all lanes, or of all threads

// Half of the warp goes past it, to what all of them do.
__global__ void vote_of_half(unsigned* y) {
  unsigned vote = 0;
  if (threadIdx.x < 16)
    vote = __ballot_sync(~0u, y[threadIdx.x] == 0);  // expect missing-member #went-past
  y[threadIdx.x] = vote;
}
// The others have left before it. Their store and the one behind the vote become one instruction.
__global__ void vote_of_the_rest_good(unsigned* y) {
  if (threadIdx.x >= 16) {
    y[threadIdx.x] = 0;
    return;
  }
  const unsigned vote = __ballot_sync(~0u, y[threadIdx.x] == 0);
  y[threadIdx.x] = vote;
}
__global__ void sync_of_half(int* y) {
  __shared__ int tile[16];
  if (threadIdx.x < 16) {
    tile[threadIdx.x] = y[threadIdx.x];
    __syncwarp();  // expect missing-member #sync-of-half
    y[threadIdx.x] = tile[15 - threadIdx.x];
  }
  y[threadIdx.x + 32] = 1;
}
__global__ void sync_of_half_good(int* y) {
  __shared__ int tile[16];
  if (threadIdx.x < 16) {
    tile[threadIdx.x] = y[threadIdx.x];
    __syncwarp(0xffffu);
    y[threadIdx.x] = tile[15 - threadIdx.x];
  }
  y[threadIdx.x + 32] = 1;
}
// Who has ended need not take part, whatever it did on its way out.
__global__ void vote_of_rest_good(unsigned* y, unsigned* left, int count) {
  if (static_cast<int>(threadIdx.x) >= count) {
    atomicAdd(left, 1u);
    return;
  }
  y[threadIdx.x] = __ballot_sync(~0u, y[threadIdx.x] == 0);
}
__global__ void group_of_half(int* y) {
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x >= 20) return;
  y[threadIdx.x] = 1;
  block.sync();  // expect barrier-after-exit #group-of-half
}
__global__ void group_good(int* y) {
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x < 20) y[threadIdx.x] = 1;
  block.sync();
}

// ---- Bytes

__global__ void carved(int* y, int count, int offset) {
  extern __shared__ char raw[];
  int* keys = reinterpret_cast<int*>(raw);
  auto* values = reinterpret_cast<short*>(raw + offset);
  keys[threadIdx.x] = count;                              // expect shared-race #carved
  values[threadIdx.x] = static_cast<short>(threadIdx.x);  // expect shared-race #carved
  __syncthreads();
  y[threadIdx.x] = keys[threadIdx.x] + values[threadIdx.x];
}
__global__ void carved_good(int* y, int count, int offset) {
  extern __shared__ char raw[];
  int* keys = reinterpret_cast<int*>(raw);
  auto* values = reinterpret_cast<short*>(raw + offset);
  keys[threadIdx.x] = count;
  values[threadIdx.x] = static_cast<short>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = keys[threadIdx.x] + values[threadIdx.x];
}

struct Fields {
  unsigned low : 4, high : 4;
};
__global__ void bit_fields(Fields* fields) {
  if (threadIdx.x == 0) fields->low = 3;    // expect global-race #bit-fields
  if (threadIdx.x == 40) fields->high = 5;  // expect global-race #bit-fields
}

// Atomics of two sizes are not atomic towards each other.
__global__ void two_sizes(unsigned long long* y) {
  if (threadIdx.x == 0) atomicAdd(y, 1ull);  // expect global-race #two-sizes
  auto* low = reinterpret_cast<unsigned*>(y);
  if (threadIdx.x == 33) atomicAdd(low, 1u);  // expect global-race #two-sizes
}

// ---- Lines

// The line is that of the function which calls the atomic, not that of its caller.
__device__ void add(double* to, double value) {
  auto* bits = reinterpret_cast<unsigned long long*>(to);
  unsigned long long old = *bits, assumed;  // expect global-race #inlined-twice
  do {
    assumed = old;
    const auto sum = __double_as_longlong(value + __longlong_as_double(assumed));
    old = atomicCAS(bits, assumed, sum);  // expect global-race #inlined-twice
  } while (assumed != old);
}
__global__ void sum_by_swaps(double* to) { add(to, 1.0); }

// nvcc gives the loop of memcpy() no line.
__global__ void copies(char* to, const char* from) {
  memcpy(to, from, 80);  // expect out-of-bounds #copies
}
__global__ void copies_good(char* to, const char* from) { memcpy(to, from, 64); }

// One load for all lanes: its value must be this block's, also while accesses are watched.
__global__ void one_load_good(float* y) {
  __shared__ half2 tile[kThreads];
  const auto mine = static_cast<float>(blockIdx.x + 1);
  tile[threadIdx.x] = __float2half2_rn(mine);
  __syncthreads();
  const float first = __low2float(tile[0]);
  if (first != mine) __trap();
  y[blockIdx.x * kThreads + threadIdx.x] = first;
}

// ---- The host

__global__ void counts_good(int* y) { atomicAdd(y, 1); }
__global__ void writes(int* y) {
  y[threadIdx.x] = 1;  // expect stream-race #not-waited
}
__global__ void reads(const int* x, int* y) {
  *y = x[threadIdx.x];  // expect stream-race #not-waited
}

template <class T>
T* made(size_t count) {
  T* memory = nullptr;
  cudaMalloc(&memory, count * sizeof(T));
  cudaMemset(memory, 0, count * sizeof(T));
  return memory;
}

void device() {
  int *x = made<int>(256), *y = made<int>(256);
  int* next = x + 128;
  const auto flag = [&] { return next++; };
  fence_too_early<<<2, kThreads>>>(x, flag(), y);
  fence_good<true><<<2, kThreads>>>(x, flag(), y);
  fence_good<false><<<2, kThreads>>>(x, flag(), y);
  guide_good<<<4, kThreads>>>(x, reinterpret_cast<unsigned*>(flag()), y);
  release_alone<<<2, 1>>>(x, flag(), y);
  one_side_in_scope<<<2, 1>>>(x, flag(), y);
  message_good<<<2, 1>>>(x, flag(), y);
  two_of_three<2><<<4, 1>>>(x, flag(), y);
  all_of_three_good<<<4, 1>>>(x, flag(), y);
  ended_reader<<<1, 128>>>(x, y);
  ended_reader_good<<<1, 128>>>(x, y);
  vote_of_half<<<1, 32>>>(made<unsigned>(32));
  vote_of_the_rest_good<<<1, 32>>>(made<unsigned>(32));
  vote_of_rest_good<<<1, 32>>>(made<unsigned>(32), made<unsigned>(1), 20);
  sync_of_half<<<1, 32>>>(y);
  sync_of_half_good<<<1, 32>>>(y);
  group_of_half<<<1, kThreads>>>(y);
  group_good<<<1, kThreads>>>(y);
  carved<<<1, kThreads, 6 * kThreads>>>(y, 1, 2 * kThreads);
  carved_good<<<1, kThreads, 6 * kThreads>>>(y, 1, 4 * kThreads);
  bit_fields<<<1, kThreads>>>(made<Fields>(1));
  two_sizes<<<1, kThreads>>>(made<unsigned long long>(1));
  sum_by_swaps<<<2, 2>>>(made<double>(1));
  char *to = made<char>(64), *from = made<char>(64);
  copies<<<1, 1>>>(to, from);
  copies_good<<<1, 1>>>(to, from);
  one_load_good<<<4, kThreads>>>(made<float>(4 * kThreads));
  cudaDeviceSynchronize();
}

void host() {
  cudaStream_t first{}, second{};
  cudaStreamCreate(&first);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  int *x = made<int>(kThreads), *y = made<int>(kThreads);
  cudaDeviceSynchronize();
  counts_good<<<1, kThreads, 0, first>>>(x);
  counts_good<<<1, kThreads, 0, second>>>(x);
  cudaDeviceSynchronize();
  writes<<<1, kThreads>>>(x);  // the second stream does not wait for the default one
  reads<<<1, 1, 0, second>>>(x, y);
  cudaDeviceSynchronize();
  int* pinned = nullptr;
  cudaMallocHost(&pinned, kThreads * sizeof(int));
  cudaFree(pinned);  // expect-host invalid-free 2
  cudaFreeHost(x);
  cudaFreeHost(pinned);
}

}  // namespace

int main() {
  device();
  host();
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
