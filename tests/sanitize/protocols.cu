// SPDX-License-Identifier: Apache-2.0
// Are mistakes found in the protocols that groups, barriers, clusters, streams and graphs ask for?
// Each has a twin without it (rules.md).
// options --arch 9.0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 64;

// ---- Groups

// A tile orders its own lanes alone.
__global__ void across_tiles(int* out) {
  __shared__ int slots[kThreads];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  slots[threadIdx.x] = 1;  // expect shared-race #across-tiles
  tile.sync();
  out[threadIdx.x] = slots[threadIdx.x ^ 16];  // expect shared-race #across-tiles
}
__global__ void across_tiles_good(int* out) {
  __shared__ int slots[kThreads];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  slots[threadIdx.x] = 1;
  tile.sync();
  out[threadIdx.x] = slots[threadIdx.x ^ 8];
}

// Those who went the same way are ordered, the others are not.
__global__ void coalesced(int* out) {
  __shared__ int slots[32];
  const bool even = threadIdx.x % 2 == 0;
  if (even) slots[threadIdx.x] = 2;  // expect shared-race #coalesced
  if (even) {
    const auto group = cg::coalesced_threads();
    group.sync();
    out[threadIdx.x] = slots[(threadIdx.x + 2) % 32];
  } else {
    out[threadIdx.x] = slots[threadIdx.x - 1];  // expect shared-race #coalesced
  }
}
__global__ void coalesced_good(int* out) {
  __shared__ int slots[32];
  const bool even = threadIdx.x % 2 == 0;
  if (even) slots[threadIdx.x] = 2;
  if (even) {
    const auto group = cg::coalesced_threads();
    group.sync();
    out[threadIdx.x] = slots[(threadIdx.x + 2) % 32];
  }
}

// A reduction returns a value, and orders no memory between warps.
__global__ void reduce_as_barrier(int* out) {
  __shared__ int sums[kThreads / 32];
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int sum = cg::reduce(tile, static_cast<int>(threadIdx.x), cg::plus<int>());
  if (tile.thread_rank() == 0)
    sums[threadIdx.x / 32] = sum;                    // expect shared-race #reduce-as-barrier
  if (threadIdx.x == 0) out[0] = sums[0] + sums[1];  // expect shared-race #reduce-as-barrier
}
__global__ void reduce_good(int* out) {
  __shared__ int sums[kThreads / 32];
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int sum = cg::reduce(tile, static_cast<int>(threadIdx.x), cg::plus<int>());
  if (tile.thread_rank() == 0) sums[threadIdx.x / 32] = sum;
  block.sync();
  if (threadIdx.x == 0) out[0] = sums[0] + sums[1];
}

// ---- Barriers

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Who arrives and does not wait has met nobody.
template <bool kWaits>
__device__ void arrive(Barrier& barrier) {
  Barrier::arrival_token token = barrier.arrive();
  if (kWaits) barrier.wait(static_cast<Barrier::arrival_token&&>(token));
}
__global__ void arrive_only(int* out) {
  __shared__ int slots[kThreads];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  slots[threadIdx.x] = 1;  // expect shared-race #arrive-only
  arrive<false>(barrier);
  out[threadIdx.x] = slots[(threadIdx.x + 1) % kThreads];  // expect shared-race #arrive-only
}
__global__ void arrive_good(int* out) {
  __shared__ int slots[kThreads];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  slots[threadIdx.x] = 1;
  arrive<true>(barrier);
  out[threadIdx.x] = slots[(threadIdx.x + 1) % kThreads];
}

// Phases of an mbarrier by their parity.
__device__ void wait_parity(uint64_t* barrier, uint32_t parity) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(at), "r"(parity)
        : "memory");
  }
}
__device__ void set_up(uint64_t* barrier, uint32_t count) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
__device__ void arrive_at(uint64_t* barrier) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  asm volatile("{.reg .b64 s;\nmbarrier.arrive.shared.b64 s, [%0];}" ::"r"(at) : "memory");
}
__global__ void parity_good(int* out, int value) {
  __shared__ int slot;
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) set_up(&barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    slot = value;
    arrive_at(&barrier);
  } else if (threadIdx.x == 32) {
    wait_parity(&barrier, 0);
    out[0] = slot;
  }
}

// A ring of one stage: the producer must wait until it is empty.
__device__ void named_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}
__device__ void named_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}
__global__ void no_empty_barrier(int* out) {
  __shared__ int stage[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 2; ++i) {
      stage[lane] = i;  // expect shared-race #no-empty-barrier
      named_arrive(1 + i, kThreads);
    }
  } else {
    for (int i = 0; i < 2; ++i) {
      named_sync(1 + i, kThreads);
      out[lane] += stage[31 - lane];  // expect shared-race #no-empty-barrier
    }
  }
}
__global__ void empty_good(int* out) {
  __shared__ int stage[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 3; ++i) {
      if (i) named_sync(3, kThreads);
      stage[lane] = i;
      named_arrive(1, kThreads);
    }
  } else {
    for (int i = 0; i < 3; ++i) {
      named_sync(1, kThreads);
      out[lane] += stage[31 - lane];
      if (i < 2) named_arrive(3, kThreads);
    }
  }
}

// Warps of one block make a different number of rounds.
__global__ void rounds(int* out) {
  const int count = threadIdx.x < 32 ? 3 : 2;
  for (int i = 0; i < count; ++i) {
    out[threadIdx.x] += i;
    __syncthreads();  // expect barrier-after-exit #rounds
  }
}
__global__ void rounds_good(int* out) {
  const int count = threadIdx.x < 32 ? 3 : 2;
  for (int i = 0; i < 3; ++i) {
    if (i < count) out[threadIdx.x] += i;
    __syncthreads();
  }
}

// ---- Warps

__global__ void reduce_mask(int* out) {
  if (threadIdx.x < 20)
    // expect-next mask-without-caller #reduce-mask
    out[threadIdx.x] = __reduce_add_sync(0x0000ffff, 1);
}
__global__ void reduce_mask_good(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __reduce_add_sync(0x0000ffff, 1);
}

__global__ void match_of_some(int* out) {
  unsigned with = 0;
  if (threadIdx.x < 24)
    with = __match_any_sync(~0u, threadIdx.x / 8);  // expect missing-member #match-of-some
  else
    out[32 + threadIdx.x] = 1;
  __syncwarp();  // expect missing-member #sync-beside-match
  out[threadIdx.x] = __popc(with);
}
__global__ void match_good(int* out) {
  const unsigned with = __match_any_sync(~0u, threadIdx.x / 8);
  out[threadIdx.x] = __popc(with);
}

// Sums of a warp in volatile memory are strong accesses; the last ones need no barrier to be no
// race, and plain ones do.
__global__ void plain_tail(int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 16) {
    sums[threadIdx.x] += sums[threadIdx.x + 16];
    sums[threadIdx.x] += sums[threadIdx.x + 8];  // expect shared-race #plain-tail
  }
  if (threadIdx.x == 0) out[0] = sums[0];
}
__global__ void tail_good(int* out) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 16) {
    sums[threadIdx.x] += sums[threadIdx.x + 16];
    __syncwarp(0xffff);
    const int other = sums[threadIdx.x + 8];
    __syncwarp(0xffff);
    sums[threadIdx.x] += other;
  }
  if (threadIdx.x == 0) out[0] = sums[0];
}

// ---- Flags in shared memory

template <bool kReleases>
__device__ void say(int* flag) {
  cuda::atomic_ref<int, cuda::thread_scope_block> at(*flag);
  at.store(1, kReleases ? cuda::memory_order_release : cuda::memory_order_relaxed);
}
__device__ void hear(int* flag) {
  cuda::atomic_ref<int, cuda::thread_scope_block> at(*flag);
  while (at.load(cuda::memory_order_acquire) == 0) {
  }
}
__global__ void relaxed_flag(int* out, int value) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = value;  // expect shared-race #relaxed-flag
    say<false>(&flag);
  } else if (threadIdx.x == 32) {
    hear(&flag);
    out[0] = data;  // expect shared-race #relaxed-flag
  }
}
__global__ void flag_good(int* out, int value) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = value;
    say<true>(&flag);
  } else if (threadIdx.x == 32) {
    hear(&flag);
    out[0] = data;
  }
}

// The counter is atomic, what it counts is not: two blocks get the same place.
__global__ void place_of_two(int* count, int* list) {
  if (threadIdx.x == 0) {
    const int at = atomicAdd_block(count, 1);  // expect global-race #place-of-two
    list[at] = static_cast<int>(blockIdx.x);
  }
}
__global__ void place_good(int* count, int* list) {
  if (threadIdx.x == 0) list[atomicAdd(count, 1)] = static_cast<int>(blockIdx.x);
}

// ---- Clusters

// Another block's memory is its own: a cluster's barrier is needed before and behind.
__global__ void __cluster_dims__(2, 1, 1) peer_unordered(int* out) {
  __shared__ int slot;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) slot = 0;
  cluster.sync();
  int* peer = cluster.map_shared_rank(&slot, cluster.block_rank() ^ 1);
  if (threadIdx.x == 0) *peer = 7;  // expect shared-race #peer-unordered
  __syncthreads();
  if (threadIdx.x == 1) out[blockIdx.x] = slot;  // expect shared-race #peer-unordered
  cluster.sync();
}
__global__ void __cluster_dims__(2, 1, 1) peer_good(int* out) {
  __shared__ int slot;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) slot = 0;
  cluster.sync();
  int* peer = cluster.map_shared_rank(&slot, cluster.block_rank() ^ 1);
  if (threadIdx.x == 0) *peer = 7;
  cluster.sync();
  if (threadIdx.x == 1) out[blockIdx.x] = slot;
}

// ---- Grids

__global__ void early_return(int* out) {
  const auto grid = cg::this_grid();
  if (blockIdx.x == 1) return;
  if (threadIdx.x == 0) out[blockIdx.x] = 1;
  grid.sync();  // expect deadlock #early-return
}
__global__ void phases_good(int* a, int* b) {
  const auto grid = cg::this_grid();
  a[blockIdx.x] = 1;
  grid.sync();
  b[blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x];
}

// ---- Streams and graphs

__global__ void fills(int* x) {
  x[threadIdx.x] = 1;  // expect stream-race #branches
}
__global__ void sums(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #branches
}
__global__ void fills_good(int* x) { x[threadIdx.x] = 1; }
__global__ void sums_good(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void beside_graph(int* x) {
  x[threadIdx.x] = 4;  // expect stream-race #beside-graph
}
__global__ void in_graph(int* x) {
  x[threadIdx.x] = 5;  // expect stream-race #beside-graph
}
__global__ void uses_freed(int* x) {
  x[threadIdx.x] = 6;  // expect freed-in-use #freed-async
}

template <class T>
T* made(size_t count) {
  T* out = nullptr;
  cudaMalloc(&out, count * sizeof(T));
  cudaMemset(out, 0, count * sizeof(T));
  return out;
}

void device() {
  int *x = made<int>(256), *y = made<int>(256);
  across_tiles<<<1, kThreads>>>(x);
  across_tiles_good<<<1, kThreads>>>(x);
  coalesced<<<1, 32>>>(x);
  coalesced_good<<<1, 32>>>(x);
  reduce_as_barrier<<<1, kThreads>>>(x);
  reduce_good<<<1, kThreads>>>(x);
  arrive_only<<<1, kThreads>>>(x);
  arrive_good<<<1, kThreads>>>(x);
  parity_good<<<1, kThreads>>>(x, 5);
  no_empty_barrier<<<1, kThreads>>>(x);
  empty_good<<<1, kThreads>>>(x);
  rounds<<<1, kThreads>>>(x);
  rounds_good<<<1, kThreads>>>(x);
  reduce_mask<<<1, 32>>>(x);
  reduce_mask_good<<<1, 32>>>(x);
  match_of_some<<<1, 32>>>(x);
  match_good<<<1, 32>>>(x);
  plain_tail<<<1, kThreads>>>(x);
  tail_good<<<1, kThreads>>>(x);
  relaxed_flag<<<1, kThreads>>>(x, 5);
  flag_good<<<1, kThreads>>>(x, 5);
  place_of_two<<<2, 32>>>(x + 128, y);
  place_good<<<2, 32>>>(x + 129, y);
  peer_unordered<<<2, 32>>>(x);
  peer_good<<<2, 32>>>(x);
  void* two[] = {&x, &y};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(phases_good), 4, 1, two, 0, nullptr);
  cudaDeviceSynchronize();
}

// One graph with two branches, built by capture; joined or not.
void branches(bool orders, cudaStream_t first, cudaStream_t second, int* x, int* y) {
  cudaEvent_t fork{}, between{}, join{};
  cudaEventCreate(&fork);
  cudaEventCreate(&between);
  cudaEventCreate(&join);
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, first);
  cudaStreamWaitEvent(second, fork);
  if (orders) {
    fills_good<<<1, kThreads, 0, first>>>(x);
    cudaEventRecord(between, first);
    cudaStreamWaitEvent(second, between);
    sums_good<<<1, kThreads, 0, second>>>(x, y);
  } else {
    fills<<<1, kThreads, 0, first>>>(x);
    sums<<<1, kThreads, 0, second>>>(x, y);
  }
  cudaEventRecord(join, second);
  cudaStreamWaitEvent(first, join);
  cudaGraph_t graph{};
  cudaStreamEndCapture(first, &graph);
  cudaGraphExec_t exec{};
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, first);
  cudaDeviceSynchronize();
}

void graph_beside(cudaStream_t first, cudaStream_t second, int* x) {
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  in_graph<<<1, kThreads, 0, first>>>(x);
  cudaGraph_t graph{};
  cudaStreamEndCapture(first, &graph);
  cudaGraphExec_t exec{};
  cudaGraphInstantiate(&exec, graph, 0);
  beside_graph<<<1, kThreads, 0, second>>>(x);
  cudaGraphLaunch(exec, first);
  cudaDeviceSynchronize();
  fills_good<<<1, kThreads, 0, second>>>(x);
  cudaStreamSynchronize(second);
  cudaGraphLaunch(exec, first);
  cudaDeviceSynchronize();
}

void host() {
  cudaStream_t first{}, second{};
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  int *x = made<int>(256), *y = made<int>(256);
  cudaDeviceSynchronize();
  branches(false, first, second, x, y);
  branches(true, first, second, x, y);
  graph_beside(first, second, x);
  // A fill and a copy of the same bytes; columns side by side have none in common.
  cudaMemsetAsync(x, 0, 256, first);
  // expect-host stream-race 1
  cudaMemcpyAsync(x + 32, y, 256, cudaMemcpyDeviceToDevice, second);
  cudaDeviceSynchronize();
  cudaMemset2DAsync(x, 64, 0, 32, 4, first);
  cudaMemcpy2DAsync(x + 8, 64, y, 64, 32, 4, cudaMemcpyDeviceToDevice, second);
  cudaDeviceSynchronize();
  // A query that says "done" orders as a wait does.
  fills_good<<<1, kThreads, 0, first>>>(x);
  while (cudaStreamQuery(first) == cudaErrorNotReady) {
  }
  sums_good<<<1, kThreads, 0, second>>>(x, y);
  cudaDeviceSynchronize();
  // Freed on one stream while another uses it, and freed twice.
  int* z = nullptr;
  cudaMallocAsync(&z, 1024, first);
  cudaStreamSynchronize(first);
  uses_freed<<<1, kThreads, 0, second>>>(z);
  cudaFreeAsync(z, first);
  cudaDeviceSynchronize();
  cudaMallocAsync(&z, 1024, first);
  cudaFreeAsync(z, first);
  cudaFreeAsync(z, first);  // expect-host double-free 1
  cudaDeviceSynchronize();
}

}  // namespace

// Last: a kernel that stops takes the context with it.
void stopped() {
  int* x = made<int>(64);
  void* words[] = {&x};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(early_return), 2, 32, words, 0, nullptr);
}

int main() {
  device();
  host();
  stopped();
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
