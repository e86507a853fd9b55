// SPDX-License-Identifier: Apache-2.0
// Is a race found where an order comes late, or reaches some of many threads that did the same?
// What stands for many accesses of one source line may be known to who comes, and the others not.
// Each has a twin without the mistake (rules.md).
// options --arch 9.0
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cuda/atomic>

namespace {

namespace cg = cooperative_groups;

constexpr int kWarps = 4, kThreads = 32 * kWarps;

__device__ int warp_of() { return static_cast<int>(threadIdx.x) / 32; }
// Another lane of each warp: so that their accesses are not kept as one.
__device__ bool leads() { return static_cast<int>(threadIdx.x) % 32 == warp_of(); }

// ---- Of a block's warps

// All have read before the first order by a flag comes, and then it has the first `kSignals` warps
// alone.
template <int kSignals>
__device__ void signal(int* count) {
  __syncwarp();
  __threadfence_block();
  if (leads() && warp_of() < kSignals) atomicAdd(count, 1);
}
__device__ void wait_for(int* count, int signals) {
  while (atomicAdd(count, 0) < signals) {
  }
  __threadfence_block();
}

__global__ void late_flag(int* data, int* count, int* out) {
  if (leads()) out[warp_of()] = *data;  // expect global-race #late-flag
  signal<kWarps - 1>(count);
  if (threadIdx.x == 0) {
    wait_for(count, kWarps - 1);
    *data = 1;  // expect global-race #late-flag
  }
}
__global__ void late_flag_good(int* data, int* count, int* out) {
  if (leads()) out[warp_of()] = *data;
  signal<kWarps>(count);
  if (threadIdx.x == 0) {
    wait_for(count, kWarps);
    *data = 1;
  }
}

// The same in shared memory, a whole line of which all warps read.
__global__ void late_flag_shared(int* out) {
  __shared__ int line[32], count;
  line[threadIdx.x % 32] = 0;  // expect same-value-race #all-set-it
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  out[threadIdx.x] = line[threadIdx.x % 32];  // expect shared-race #late-flag-shared
  signal<kWarps - 1>(&count);
  if (warp_of() == 0) {
    wait_for(&count, kWarps - 1);
    line[threadIdx.x] = 2;  // expect shared-race #late-flag-shared
  }
}
__global__ void late_flag_shared_good(int* out) {
  __shared__ int line[32], count;
  if (threadIdx.x < 32) line[threadIdx.x] = 0;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  out[threadIdx.x] = line[threadIdx.x % 32];
  signal<kWarps>(&count);
  if (warp_of() == 0) {
    wait_for(&count, kWarps);
    line[threadIdx.x] = 2;
  }
}

// The fence is in a function that the kernel calls by its address alone.
__device__ void fenced(int* count) {
  __threadfence_block();
  atomicAdd(count, 1);
  __threadfence_block();
}
__device__ void unfenced(int* count) { atomicAdd(count, 0); }
__device__ void (*volatile chosen[])(int*) = {fenced, unfenced};

__global__ void fence_by_pointer(int* data, int* count, int* out) {
  if (leads()) out[warp_of()] = *data;  // expect global-race #fence-by-pointer
  __syncwarp();
  // The first is behind the second: not behind the others.
  const int turn = warp_of() == 1 ? 0 : 1;
  if (leads()) chosen[turn](count);
  if (threadIdx.x == 0) {
    while (atomicAdd(count, 0) < 1) {
    }
    chosen[0](count);
    *data = 3;  // expect global-race #fence-by-pointer
  }
}
__global__ void fence_by_pointer_good(int* data, int* count, int* out) {
  if (leads()) out[warp_of()] = *data;
  __syncwarp();
  if (leads()) chosen[0](count);
  if (threadIdx.x == 0) {
    while (atomicAdd(count, 0) < kWarps) {
    }
    chosen[0](count);
    *data = 3;
  }
}

// A named barrier of two warps, long after all four have read.
__device__ void meet_two() { asm volatile("bar.sync 3, 64;" ::: "memory"); }
__global__ void late_named_barrier(int* data, int* out) {
  out[threadIdx.x] = data[threadIdx.x % 32];  // expect global-race #late-named-barrier
  if (warp_of() < 2) meet_two();
  if (warp_of() == 0) data[threadIdx.x] = 4;  // expect global-race #late-named-barrier
}
__global__ void late_named_barrier_good(int* data, int* out) {
  if (warp_of() < 2) out[threadIdx.x] = data[threadIdx.x % 32];
  if (warp_of() < 2) meet_two();
  if (warp_of() == 0) data[threadIdx.x] = 4;
}

// Of lanes: a sync of half a warp comes when all lanes of all warps have read.
__global__ void late_half(int* data, int* out) {
  out[threadIdx.x] = *data;  // expect global-race #late-half
  const unsigned half = 0xffffu;
  if (threadIdx.x < 16) __syncwarp(half);
  if (threadIdx.x == 0) *data = 5;  // expect global-race #late-half
}
__global__ void late_half_good(int* data, int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = *data;
    __syncwarp(0xffffu);
  }
  if (threadIdx.x == 0) *data = 5;
}

// ---- Of blocks and clusters

// Waits until all have come, which orders nothing: neither has a fence.
__device__ void come(int* count) {
  atomicAdd(count, 1);
  if (blockIdx.x != 0) return;
  while (atomicAdd(count, 0) < static_cast<int>(gridDim.x)) {
  }
}

// The cluster's barrier orders two of the four blocks that read: the others are of another one.
__global__ void __cluster_dims__(2) other_cluster(int* data, int* count, int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = *data;  // expect global-race #other-cluster
  cg::this_cluster().sync();
  if (threadIdx.x != 0) return;
  come(count);
  if (blockIdx.x == 0) *data = 6;  // expect global-race #other-cluster
}
__global__ void __cluster_dims__(2) other_cluster_good(int* data, int* count, int* out) {
  int* own = data + blockIdx.x / 2;
  if (threadIdx.x == 0) out[blockIdx.x] = *own;
  cg::this_cluster().sync();
  if (threadIdx.x != 0) return;
  come(count);
  if (blockIdx.x == 0) *own = 6;
}

// All add in the scope of the GPU, and one in that of its cluster: it has the two blocks of its own
// there, not the others.
__global__ void __cluster_dims__(2) scope_of_cluster(int* data, int* count) {
  if (threadIdx.x != 0) return;
  atomicAdd(data, 1);  // expect global-race #scope-of-cluster
  come(count);
  // expect-next global-race #scope-of-cluster
  if (blockIdx.x == 0) asm volatile("red.relaxed.cluster.global.add.u32 [%0], 1;" ::"l"(data));
}
__global__ void __cluster_dims__(2) scope_of_cluster_good(int* data, int* count) {
  if (threadIdx.x != 0) return;
  int* own = data + blockIdx.x / 2;
  atomicAdd(own, 1);
  come(count);
  if (blockIdx.x == 0) asm volatile("red.relaxed.cluster.global.add.u32 [%0], 1;" ::"l"(own));
}

// Five blocks read; the writer has waited for four of them.
__global__ void four_of_five(int* data, int* count, int* out, unsigned signals) {
  if (blockIdx.x < 5) {
    out[blockIdx.x] = *data;  // expect global-race #four-of-five
    cuda::atomic_ref<int, cuda::thread_scope_device> signalled(*count);
    if (blockIdx.x < signals) signalled.fetch_add(1, cuda::memory_order_release);
  } else {
    cuda::atomic_ref<int, cuda::thread_scope_device> signalled(*count);
    while (signalled.load(cuda::memory_order_acquire) < static_cast<int>(signals)) {
    }
    *data = 7;  // expect global-race #four-of-five
  }
}
__global__ void five_of_five_good(int* data, int* count, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> signalled(*count);
  if (blockIdx.x < 5) {
    out[blockIdx.x] = *data;
    signalled.fetch_add(1, cuda::memory_order_release);
  } else {
    while (signalled.load(cuda::memory_order_acquire) < 5) {
    }
    *data = 7;
  }
}

// ---- Sizes and strengths

// Three warps read words, the fourth writes a byte of one of them.
__global__ void byte_of_word(unsigned* words, unsigned* out) {
  if (warp_of() < 3)
    out[threadIdx.x] = words[threadIdx.x % 32];  // expect global-race #byte-of-word
  if (threadIdx.x == 96)
    reinterpret_cast<uint8_t*>(words)[4 * 31 + 3] = 1;  // expect global-race #byte-of-word
}
// Three warps read pairs of words, the fourth writes the second word of a pair.
__global__ void word_of_pair(uint2* pairs, unsigned* out) {
  if (warp_of() < 3) {
    const uint2 pair = pairs[threadIdx.x % 32];  // expect global-race #word-of-pair
    out[threadIdx.x] = pair.x + pair.y;
  }
  if (threadIdx.x == 96) pairs[30].y = 1;  // expect global-race #word-of-pair
}
// Three warps read bytes that the fourth has not.
__global__ void bytes_good(uint8_t* bytes, unsigned* out) {
  if (warp_of() < 3) out[threadIdx.x] = bytes[4 * (threadIdx.x % 32)];
  if (warp_of() == 3) bytes[4 * (threadIdx.x % 32) + 1] = 1;
}
// All have read plainly what one then changes by an atomic.
__global__ void atomic_after_reads(int* data, int* out) {
  out[threadIdx.x] = data[0];                 // expect global-race #atomic-after-reads
  if (threadIdx.x == 64) atomicAdd(data, 1);  // expect global-race #atomic-after-reads
}
// All add, and the third of four reads plainly.
__global__ void read_after_atomics(int* data, int* out) {
  atomicAdd(data, 1);                       // expect global-race #read-after-atomics
  if (threadIdx.x == 64) out[0] = data[0];  // expect global-race #read-after-atomics
}
__global__ void atomics_good(int* data, int* out) {
  atomicAdd(data, 1);
  __syncthreads();
  if (threadIdx.x == 64) out[0] = data[0];
}
// Atomics of two sizes on a common word, of the third warp.
__global__ void two_atomics(unsigned long long* data) {
  auto* words = reinterpret_cast<unsigned*>(data);
  if (warp_of() < 2) atomicAdd(words + 1, 1u);   // expect global-race #two-atomics
  if (threadIdx.x == 64) atomicAdd(data, 1ull);  // expect global-race #two-atomics
}

// ---- Loads of one line, one behind the other

// The loop is unrolled, and its barrier is between its loads: the last one is behind no barrier.
__global__ void load_behind_barrier(int* data, int* out) {
  __shared__ int line[4];
  if (threadIdx.x < 4) line[threadIdx.x] = data[threadIdx.x];
  int sum = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum += line[i];  // expect shared-race #load-behind-barrier
    if (i == 2) __syncthreads();
  }
  if (threadIdx.x == 70) line[3] = 8;  // expect shared-race #load-behind-barrier
  out[threadIdx.x] = sum;
}
__global__ void loads_before_barrier_good(int* data, int* out) {
  __shared__ int line[4];
  if (threadIdx.x < 4) line[threadIdx.x] = data[threadIdx.x];
  int sum = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum += line[i];
    if (i == 2) __syncthreads();
  }
  if (threadIdx.x == 70) line[2] = 8;
  out[threadIdx.x] = sum;
}

// The release is between the loads: who acquires it is behind the first two alone.
__device__ void release(int* flag) {
  asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ void acquire(int* flag) {
  int seen = 0;
  while (!seen)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
}
template <int kWritten>
__device__ void loads_around_release(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum += data[i];  // expect global-race #load-behind-release
      if (i == 1) release(flag);
    }
    out[0] = sum;
  } else {
    acquire(flag);
    data[kWritten] = 9;  // expect global-race #load-behind-release
  }
}
__global__ void load_behind_release(int* data, int* flag, int* out) {
  loads_around_release<2>(data, flag, out);
}
template <int kWritten>
__device__ void loads_good(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum += data[i];
      if (i == 1) release(flag);
    }
    out[0] = sum;
  } else {
    acquire(flag);
    data[kWritten] = 9;
  }
}
__global__ void load_before_release_good(int* data, int* flag, int* out) {
  loads_good<1>(data, flag, out);
}

// Loads of many lines by all warps, and the fourth writes in the last of them.
__global__ void last_line(const int* data, int* written, int* out) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i)
    sum += data[32 * i + threadIdx.x % 32];  // expect global-race #last-line
  out[threadIdx.x] = sum;
  if (threadIdx.x == 97) written[32 * 15 + 4] = 1;  // expect global-race #last-line
}
__global__ void last_line_good(const int* data, int* written, int* out) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += data[32 * i + threadIdx.x % 32];
  out[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 97) written[32 * 15 + 4] = 1;
}

// A gather of words by all warps, and a write of one of them by the fourth.
__global__ void gathered(const int* data, const int* at, int* written, int* out) {
  out[threadIdx.x] = data[at[threadIdx.x % 32]];  // expect global-race #gathered
  if (threadIdx.x == 100) written[at[5]] = 1;     // expect global-race #gathered
}
__global__ void gathered_good(const int* data, const int* at, int* written, int* out) {
  out[threadIdx.x] = data[at[threadIdx.x % 32]];
  __syncthreads();
  if (threadIdx.x == 100) written[at[5]] = 1;
}

template <class T>
T* made(int count) {
  T* data = nullptr;
  cudaMalloc(&data, sizeof(T) * count);
  cudaMemset(data, 0, sizeof(T) * count);
  return data;
}
int* flag() { return made<int>(1); }

void of_warps(int* out) {
  late_flag<<<1, kThreads>>>(made<int>(1), flag(), out);
  late_flag_good<<<1, kThreads>>>(made<int>(1), flag(), out);
  late_flag_shared<<<1, kThreads>>>(out);
  late_flag_shared_good<<<1, kThreads>>>(out);
  fence_by_pointer<<<1, kThreads>>>(made<int>(1), flag(), out);
  fence_by_pointer_good<<<1, kThreads>>>(made<int>(1), flag(), out);
  late_named_barrier<<<1, kThreads>>>(made<int>(32), out);
  late_named_barrier_good<<<1, kThreads>>>(made<int>(32), out);
  late_half<<<1, kThreads>>>(made<int>(1), out);
  late_half_good<<<1, kThreads>>>(made<int>(1), out);
}

void of_blocks(int* out) {
  other_cluster<<<4, 32>>>(made<int>(2), flag(), out);
  other_cluster_good<<<4, 32>>>(made<int>(2), flag(), out);
  scope_of_cluster<<<4, 32>>>(made<int>(2), flag());
  scope_of_cluster_good<<<4, 32>>>(made<int>(2), flag());
  four_of_five<<<6, 1>>>(made<int>(1), flag(), out, 4);
  five_of_five_good<<<6, 1>>>(made<int>(1), flag(), out);
}

void of_forms(int* out) {
  auto* words = made<unsigned>(kThreads);
  byte_of_word<<<1, kThreads>>>(made<unsigned>(32), words);
  word_of_pair<<<1, kThreads>>>(made<uint2>(32), words);
  bytes_good<<<1, kThreads>>>(made<uint8_t>(128), words);
  atomic_after_reads<<<1, kThreads>>>(made<int>(1), out);
  read_after_atomics<<<1, kThreads>>>(made<int>(1), out);
  atomics_good<<<1, kThreads>>>(made<int>(1), out);
  two_atomics<<<1, kThreads>>>(made<unsigned long long>(1));
  load_behind_barrier<<<1, kThreads>>>(made<int>(4), out);
  loads_before_barrier_good<<<1, kThreads>>>(made<int>(4), out);
  load_behind_release<<<2, 1>>>(made<int>(4), flag(), out);
  load_before_release_good<<<2, 1>>>(made<int>(4), flag(), out);
  int* lines = made<int>(512);
  last_line<<<1, kThreads>>>(lines, lines, out);
  last_line_good<<<1, kThreads>>>(lines, lines, out);
  int places[32];
  for (int i = 0; i < 32; ++i) places[i] = i * 37 % 256;
  int* at = made<int>(32);
  cudaMemcpy(at, places, sizeof places, cudaMemcpyHostToDevice);
  gathered<<<1, kThreads>>>(lines, at, lines, out);
  gathered_good<<<1, kThreads>>>(lines, at, lines, out);
}

}  // namespace

int main() {
  int* out = made<int>(kThreads);
  of_warps(out);
  of_blocks(out);
  of_forms(out);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
