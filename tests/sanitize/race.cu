// SPDX-License-Identifier: Apache-2.0
// Which unordered accesses must `race` find? Each kernel with a mistake has a twin without it.
// `expect RULE #NAME` stands in the line, or in the two lines, of the race (rules.md).
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 128, kBlocks = 8;

// ---- Shared memory

__global__ void missing_barrier(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #missing-barrier
  y[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];  // expect shared-race #missing-barrier
}
__global__ void missing_barrier_good(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}

// Each thread reads what the one before it wrote: right by value where threads run in order.
__global__ void neighbour(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);            // expect shared-race #neighbour
  if (threadIdx.x > 0) y[threadIdx.x] = tile[threadIdx.x - 1];  // expect shared-race #neighbour
}
__global__ void neighbour_good(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x > 0) y[threadIdx.x] = tile[threadIdx.x - 1];
}

__global__ void tree_without_barriers(const int* x, int* y) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = kThreads / 2; half; half /= 2)
    if (threadIdx.x < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];  // expect shared-race #tree
  if (threadIdx.x == 0) y[0] = sums[0];
}
__global__ void tree_good(const int* x, int* y) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = kThreads / 2; half; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = sums[0];
}

__global__ void reuse_of_a_slot(int* y) {
  __shared__ int slot;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) slot = round;  // expect shared-race #reuse
    __syncthreads();
    y[threadIdx.x + round * kThreads] = slot;  // expect shared-race #reuse
  }
}
__global__ void reuse_good(int* y) {
  __shared__ int slot;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) slot = round;
    __syncthreads();
    y[threadIdx.x + round * kThreads] = slot;
    __syncthreads();
  }
}

__global__ void two_writers(int* y) {
  __shared__ int winner;
  if (threadIdx.x % 64 == 0) winner = static_cast<int>(threadIdx.x);  // expect shared-race #writers
  __syncthreads();
  if (threadIdx.x == 0) y[0] = winner;
}
__global__ void two_writers_good(int* y) {
  __shared__ int winner;
  if (threadIdx.x == 64) winner = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) y[0] = winner;
}

__global__ void one_value(int* y) {
  __shared__ int found;
  if (threadIdx.x % 2 == 0) found = y[1];  // expect same-value-race #one-value
  __syncthreads();
  if (threadIdx.x == 0) y[0] = found;
}

__global__ void zeroed_twice(int* y) {
  __shared__ int bins[16];
  bins[threadIdx.x % 16] = 0;  // expect same-value-race #zeroed-twice
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x % 16];
}
__global__ void numbered_twice(int* y) {
  __shared__ int bins[16];
  bins[threadIdx.x % 16] = static_cast<int>(threadIdx.x);  // expect shared-race #numbered-twice
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x % 16];
}

__global__ void within_a_warp(int* y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #within-a-warp
  y[threadIdx.x] = tile[31 - threadIdx.x];            // expect shared-race #within-a-warp
}
__global__ void within_a_warp_good(int* y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  y[threadIdx.x] = tile[31 - threadIdx.x];
}

// A shuffle waits for the lanes, and orders no memory.
__global__ void shuffle_is_no_barrier(int* y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #shuffle
  const int other = __shfl_xor_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
  y[threadIdx.x] = tile[other];  // expect shared-race #shuffle
}

__global__ void syncwarp_of_a_part(int* y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #part-of-a-warp
  __syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);
  y[threadIdx.x] = tile[31 - threadIdx.x];  // expect shared-race #part-of-a-warp
}
__global__ void syncwarp_of_a_part_good(int* y) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);
  y[threadIdx.x] = tile[threadIdx.x ^ 15];
}

__global__ void syncwarp_for_the_block(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #syncwarp-for-block
  __syncwarp();
  y[threadIdx.x] = tile[(threadIdx.x + 32) % kThreads];  // expect shared-race #syncwarp-for-block
}

__global__ void other_named_barrier(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #other-barrier
  asm volatile("bar.sync %0, 64;" ::"r"(static_cast<int>(threadIdx.x / 64) + 1) : "memory");
  y[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];  // expect shared-race #other-barrier
}
__global__ void named_barrier_good(int* y) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  asm volatile("bar.sync %0, 64;" ::"r"(static_cast<int>(threadIdx.x / 64) + 1) : "memory");
  y[threadIdx.x] = tile[threadIdx.x ^ 63];
}

__global__ void plain_beside_atomic(int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);    // expect shared-race #plain-beside-atomic
  y[threadIdx.x] = count;  // expect shared-race #plain-beside-atomic
}
__global__ void atomics_good(int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  y[threadIdx.x] = count;
}

__global__ void unset_counter(int* y) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;  // expect shared-race #unset-counter
  atomicAdd(&count, 1);             // expect shared-race #unset-counter
  __syncthreads();
  if (threadIdx.x == 0) y[0] = count;
}

// Bytes beside each other are no common byte.
__global__ void bytes_good(char* y) {
  __shared__ char bytes[kThreads];
  bytes[threadIdx.x] = static_cast<char>(threadIdx.x);
  y[threadIdx.x] = bytes[threadIdx.x];
}
__global__ void word_over_bytes(char* y) {
  __shared__ __align__(4) char bytes[kThreads];
  bytes[threadIdx.x] = 1;  // expect shared-race #word-over-bytes
  if (threadIdx.x < 4)
    y[threadIdx.x] = static_cast<char>(reinterpret_cast<volatile int*>(
        bytes)[threadIdx.x]);  // expect shared-race #word-over-bytes
}

__global__ void two_buffers(const int* x, int* y, int rounds) {
  __shared__ int buffer[2][kThreads];
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    buffer[0][threadIdx.x] = x[threadIdx.x] + i;  // expect shared-race #one-buffer
    __syncthreads();
    sum += buffer[0][kThreads - 1 - threadIdx.x];  // expect shared-race #one-buffer
  }
  y[threadIdx.x] = sum;
}
__global__ void two_buffers_good(const int* x, int* y, int rounds) {
  __shared__ int buffer[2][kThreads];
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    buffer[i % 2][threadIdx.x] = x[threadIdx.x] + i;
    __syncthreads();
    sum += buffer[i % 2][kThreads - 1 - threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

__global__ void arrive_without_wait(int* y) {
  __shared__ int tile[kThreads];
  if (threadIdx.x < 64) {
    tile[threadIdx.x] = 1;  // expect shared-race #arrive-without-wait
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    y[threadIdx.x] = tile[threadIdx.x - 64];  // expect shared-race #arrive-without-wait
    asm volatile("bar.sync 1, 128;" ::: "memory");
  }
}

// ---- Global memory

__global__ void sum_without_atomics(const int* x, int* sum) {
  *sum += x[blockIdx.x * blockDim.x + threadIdx.x];  // expect global-race #sum
}
__global__ void sum_good(const int* x, int* sum) {
  atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

__global__ void chain_of_blocks(int* y) {
  if (threadIdx.x) return;
  const int before = blockIdx.x ? y[blockIdx.x - 1] : 0;  // expect global-race #chain
  y[blockIdx.x] = before + 1;                             // expect global-race #chain
}
__global__ void chain_good(const int* x, int* y) {
  if (threadIdx.x) return;
  y[blockIdx.x] = blockIdx.x ? x[blockIdx.x - 1] + 1 : 1;
}

__global__ void flag_without_fence(int* data, volatile int* flag, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    data[0] = 1;  // expect global-race #flag
    *flag = 1;
  } else if (blockIdx.x == 1) {
    while (*flag == 0) {
    }
    y[0] = data[0];  // expect global-race #flag
  }
}
__global__ void flag_good(int* data, int* flag, int* y) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    data[0] = 1;
    ready.store(1, cuda::memory_order_release);
  } else if (blockIdx.x == 1) {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    y[0] = data[0];
  }
}

// A release at the scope of the block says nothing to another block.
__global__ void scope_too_small(int* data, int* flag, int* y) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_block> ready(*flag);
  if (blockIdx.x == 0) {
    data[0] = 1;                                 // expect global-race #scope-data
    ready.store(1, cuda::memory_order_release);  // expect global-race #scope-flag
  } else if (blockIdx.x == 1) {
    while (ready.load(cuda::memory_order_acquire) == 0) {  // expect global-race #scope-flag
    }
    y[0] = data[0];  // expect global-race #scope-data
  }
}

__global__ void last_block_without_fence(const int* x, int* partial, unsigned* done, int* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x];  // expect global-race #last-block
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x)
    atomicAdd(y, partial[threadIdx.x]);  // expect global-race #last-block
}
__global__ void last_block_good(const int* x, int* partial, unsigned* done, int* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) atomicAdd(y, partial[threadIdx.x]);
}

__global__ void histogram(const int* x, int* bins) {
  bins[x[blockIdx.x * blockDim.x + threadIdx.x] & 7] += 1;  // expect global-race #histogram
}
__global__ void histogram_good(const int* x, int* bins) {
  atomicAdd(&bins[x[blockIdx.x * blockDim.x + threadIdx.x] & 7], 1);
}

__global__ void block_atomics(int* sum) {
  if (threadIdx.x == 0) atomicAdd_block(sum, 1);  // expect global-race #block-atomics
}
__global__ void block_atomics_good(int* sums) { atomicAdd_block(&sums[blockIdx.x], 1); }

__global__ void strides_overlap(int* y) {
  const unsigned first = blockIdx.x * (blockDim.x - 1);
  y[first + threadIdx.x] = static_cast<int>(blockIdx.x);  // expect global-race #overlap
}
__global__ void strides_good(int* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(blockIdx.x);
}

__global__ void peek_before_max(const int* x, int* most) {
  const int own = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (own > *most)         // expect global-race #peek
    atomicMax(most, own);  // expect global-race #peek
}
__global__ void max_good(const int* x, int* most) {
  atomicMax(most, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

__global__ void lock_without_fence(int* lock, int* count) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *count += 1;  // expect global-race #lock
  atomicExch(lock, 0);
}
__global__ void lock_good(int* lock, int* count) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *count += 1;
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void ticket_lock_good(unsigned* next, unsigned* serving, int* count) {
  if (threadIdx.x) return;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> tail(*next), head(*serving);
  const unsigned own = tail.fetch_add(1, cuda::memory_order_relaxed);
  while (head.load(cuda::memory_order_acquire) != own) {
  }
  *count += 1;
  head.store(own + 1, cuda::memory_order_release);
}

__global__ void grid_without_sync(int* x, int* y) {
  x[blockIdx.x] = 1;                                // expect global-race #grid
  y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];  // expect global-race #grid
}
__global__ void grid_sync_good(int* x, int* y) {
  x[blockIdx.x] = 1;
  cg::this_grid().sync();
  y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
}

__global__ void blocks_after_barrier(int* x, int* y) {
  if (threadIdx.x == 0) x[blockIdx.x] = 1;  // expect global-race #barrier-of-block
  __syncthreads();
  if (threadIdx.x == 1)
    y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];  // expect global-race #barrier-of-block
}

__device__ int g_total;
__global__ void variable(int* y) {
  if (threadIdx.x == 0) g_total = static_cast<int>(blockIdx.x);  // expect global-race #variable
  y[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

template <class T>
T* made(size_t count) {
  T* out = nullptr;
  cudaMalloc(&out, count * sizeof(T));
  cudaMemset(out, 0, count * sizeof(T));
  return out;
}

int* numbers() {
  int host[1024];
  for (int i = 0; i < 1024; ++i) host[i] = i;
  int* out = made<int>(1024);
  cudaMemcpy(out, host, sizeof host, cudaMemcpyHostToDevice);
  return out;
}

void shared() {
  int *x = numbers(), *y = made<int>(1024);
  auto* bytes = made<char>(kThreads);
  missing_barrier<<<1, kThreads>>>(y);
  missing_barrier_good<<<1, kThreads>>>(y);
  neighbour<<<1, kThreads>>>(y);
  neighbour_good<<<1, kThreads>>>(y);
  tree_without_barriers<<<1, kThreads>>>(x, y);
  tree_good<<<1, kThreads>>>(x, y);
  reuse_of_a_slot<<<1, kThreads>>>(y);
  reuse_good<<<1, kThreads>>>(y);
  two_writers<<<1, kThreads>>>(y);
  two_writers_good<<<1, kThreads>>>(y);
  one_value<<<1, kThreads>>>(y);
  zeroed_twice<<<1, kThreads>>>(y);
  numbered_twice<<<1, kThreads>>>(y);
  within_a_warp<<<1, 32>>>(y);
  within_a_warp_good<<<1, 32>>>(y);
  shuffle_is_no_barrier<<<1, 32>>>(y);
  syncwarp_of_a_part<<<1, 32>>>(y);
  syncwarp_of_a_part_good<<<1, 32>>>(y);
  syncwarp_for_the_block<<<1, kThreads>>>(y);
  other_named_barrier<<<1, kThreads>>>(y);
  named_barrier_good<<<1, kThreads>>>(y);
  plain_beside_atomic<<<1, kThreads>>>(y);
  atomics_good<<<1, kThreads>>>(y);
  unset_counter<<<1, kThreads>>>(y);
  bytes_good<<<1, kThreads>>>(bytes);
  word_over_bytes<<<1, kThreads>>>(bytes);
  two_buffers<<<1, kThreads>>>(x, y, 4);
  two_buffers_good<<<1, kThreads>>>(x, y, 4);
  arrive_without_wait<<<1, kThreads>>>(y);
}

void global() {
  int *x = numbers(), *y = made<int>(2048), *words = made<int>(64);
  auto* done = made<unsigned>(8);
  sum_without_atomics<<<kBlocks, kThreads>>>(x, words);
  sum_good<<<kBlocks, kThreads>>>(x, words);
  chain_of_blocks<<<kBlocks, kThreads>>>(y);
  chain_good<<<kBlocks, kThreads>>>(x, y);
  flag_without_fence<<<kBlocks, kThreads>>>(y, words + 1, y + 1);
  flag_good<<<kBlocks, kThreads>>>(y, words + 2, y + 1);
  scope_too_small<<<kBlocks, kThreads>>>(y, words + 3, y + 1);
  last_block_without_fence<<<kBlocks, kThreads>>>(x, words + 16, done, y);
  last_block_good<<<kBlocks, kThreads>>>(x, words + 16, done + 1, y);
  histogram<<<kBlocks, kThreads>>>(x, words + 8);
  histogram_good<<<kBlocks, kThreads>>>(x, words + 8);
  block_atomics<<<kBlocks, kThreads>>>(words);
  block_atomics_good<<<kBlocks, kThreads>>>(words + 32);
  strides_overlap<<<kBlocks, kThreads>>>(y);
  strides_good<<<kBlocks, kThreads>>>(y);
  peek_before_max<<<kBlocks, kThreads>>>(x, words + 7);
  max_good<<<kBlocks, kThreads>>>(x, words + 7);
  lock_without_fence<<<kBlocks, kThreads>>>(words + 4, words + 5);
  lock_good<<<kBlocks, kThreads>>>(words + 4, words + 5);
  ticket_lock_good<<<kBlocks, kThreads>>>(done + 2, done + 3, words + 6);
  grid_without_sync<<<kBlocks, 1>>>(x, y);
  int *a = x, *b = y;
  void* arguments[] = {&a, &b};
  cudaLaunchCooperativeKernel(grid_sync_good, kBlocks, 1, arguments);
  blocks_after_barrier<<<kBlocks, kThreads>>>(x, y);
  variable<<<kBlocks, kThreads>>>(y);
}

}  // namespace

int main() {
  shared();
  global();
  const cudaError_t code = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(code));
  return 0;
}
