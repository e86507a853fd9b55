// SPDX-License-Identifier: Apache-2.0
// Which wrong uses of barriers and of lanes must `sync` find? Each kernel with a mistake has a twin
// without it. `expect RULE #NAME` stands in the line of the mistake (rules.md).
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/barrier>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 64;
constexpr unsigned kAll = 0xffffffffu;

// ---- Barriers of a block

__global__ void in_a_branch(float* y) {
  if (threadIdx.x % 2 == 0) {
    y[threadIdx.x] = 1;
    __syncthreads();  // expect divergent-barrier #in-a-branch
  }
}
__global__ void in_a_branch_good(float* y) {
  if (threadIdx.x % 2 == 0) y[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void in_both_branches(float* y) {
  if (threadIdx.x % 32 < 16) {
    y[threadIdx.x] = 1;
    __syncthreads();  // expect divergent-barrier #in-both-branches
  } else {
    y[threadIdx.x] = 2;
    __syncthreads();  // expect divergent-barrier #in-both-branches
  }
}
// Whole warps go different ways and meet at one barrier each: a GPU counts arrivals.
__global__ void by_warps_good(float* y) {
  if (threadIdx.x / 32 == 0) y[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x / 32 == 1) y[threadIdx.x] = 2;
}

__global__ void after_return(float* y, int n) {
  if (threadIdx.x >= n) return;
  y[threadIdx.x] = 1;
  __syncthreads();  // expect divergent-barrier #after-return
  y[threadIdx.x] += 1;
}
__global__ void after_return_good(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void after_warp_left(float* y) {
  if (threadIdx.x >= 32) return;
  y[threadIdx.x] = 1;
  __syncthreads();  // expect barrier-after-exit #after-warp-left
}
__global__ void after_warp_left_good(float* y) {
  if (threadIdx.x >= 32) return;
  y[threadIdx.x] = 1;
  __syncwarp();
}

__global__ void in_a_loop(float* y) {
  for (int i = 0; i < threadIdx.x % 4; ++i) {
    y[threadIdx.x] = static_cast<float>(i);
    __syncthreads();  // expect divergent-barrier #in-a-loop
  }
}
__global__ void in_a_loop_good(float* y) {
  for (int i = 0; i < 4; ++i) {
    if (i < threadIdx.x % 4) y[threadIdx.x] = static_cast<float>(i);
    __syncthreads();
  }
}

__global__ void count_in_a_branch(int* y) {
  if (threadIdx.x < 20) y[threadIdx.x] = __syncthreads_count(1);  // expect divergent-barrier #votes
}
__global__ void count_good(int* y) {
  const int all = __syncthreads_count(threadIdx.x < 20);
  if (threadIdx.x < 20) y[threadIdx.x] = all;
}

// One lane spins on a lock while the others of its warp are at the barrier already.
__global__ void lock_then_barrier_good(int* lock, int* y) {
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    atomicAdd(y, 1);
    __threadfence();
    atomicExch(lock, 0);
  }
  __syncthreads();
}

// ---- Named barriers

__device__ void named_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}
__device__ void named_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

__global__ void count_of_a_part(float* y, int count) {
  if (threadIdx.x < 32)
    // expect-next barrier-count #count-of-a-part
    asm volatile("barrier.sync 1, %0;" ::"r"(count) : "memory");
  y[threadIdx.x] = 1;
}

__global__ void counts_differ(float* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // expect barrier-count #counts-differ
  } else {
    asm volatile("bar.sync 1, 32;" ::: "memory");  // expect barrier-count #counts-differ
  }
  y[threadIdx.x] = 1;
}

__global__ void arrives_in_vain(float* y) {
  y[threadIdx.x] = 1;
  if (threadIdx.x < 32)
    asm volatile("bar.arrive 2, 64;" ::: "memory");  // expect barrier-count #arrives-in-vain
}

__global__ void arrives_again(float* y) {
  y[threadIdx.x] = 1;
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 3, 64;" ::: "memory");  // expect barrier-count #arrives-again
    asm volatile("bar.arrive 3, 64;" ::: "memory");  // expect barrier-count #arrives-again
  }
}
// Each round is handed back before the next begins.
__global__ void arrives_again_good(float* y) {
  __shared__ float tile[32];
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x < 32) {
      if (round) named_sync(4, 64);
      tile[threadIdx.x] = static_cast<float>(round);
      named_arrive(3, 64);
    } else {
      named_sync(3, 64);
      y[threadIdx.x] += tile[63 - threadIdx.x];
      if (round < 3) named_arrive(4, 64);
    }
  }
}

__global__ void named_good(float* y) {
  if (threadIdx.x < 32) {
    y[threadIdx.x] = 1;
    named_arrive(1, kThreads);
  } else {
    named_sync(1, kThreads);
    y[threadIdx.x] = y[threadIdx.x - 32];
    named_sync(2, 32);
  }
}

// ---- Lanes of a warp

__global__ void syncwarp_without_caller(int* y) {
  y[threadIdx.x] = 1;
  if (threadIdx.x < 8) __syncwarp(0xf0);  // expect mask-without-caller #syncwarp-without-caller
}
__global__ void shuffle_without_caller(int* y) {
  if (threadIdx.x < 8)
    y[threadIdx.x] = __shfl_sync(0xf0, threadIdx.x, 4);  // expect mask-without-caller #shuffle-mask
}
__global__ void masks_good(int* y) {
  if (threadIdx.x < 8) {
    __syncwarp(0xff);
    y[threadIdx.x] = __shfl_sync(0xff, threadIdx.x, 4);
  }
}

__global__ void ballot_in_a_branch(unsigned* y) {
  if (threadIdx.x < 16) {
    y[threadIdx.x] = __ballot_sync(kAll, threadIdx.x & 1);  // expect missing-member #ballot
  } else {
    y[threadIdx.x] = __ballot_sync(kAll, threadIdx.x & 2);  // expect missing-member #other-ballot
  }
}
__global__ void ballot_good(unsigned* y) {
  const unsigned half = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  if (threadIdx.x < 16) {
    y[threadIdx.x] = __ballot_sync(half, threadIdx.x & 1);
  } else {
    y[threadIdx.x] = __ballot_sync(half, threadIdx.x & 2);
  }
}

__global__ void masks_differ(unsigned* y) {
  const unsigned mask = threadIdx.x == 0 ? 0xffffu : kAll;
  y[threadIdx.x] = __any_sync(mask, 1);  // expect missing-member #masks-differ
}

__global__ void shuffle_from_ended(float* y, int n) {
  if (threadIdx.x >= n) return;
  const float own = static_cast<float>(threadIdx.x);
  y[threadIdx.x] = __shfl_down_sync(kAll, own, 4);  // expect inactive-source #from-ended
}
__global__ void shuffle_from_ended_good(float* y, int n) {
  const float own = threadIdx.x < n ? static_cast<float>(threadIdx.x) : 0;
  const float next = __shfl_down_sync(kAll, own, 4);
  if (threadIdx.x < n) y[threadIdx.x] = next;
}

__global__ void shuffle_outside_mask(int* y) {
  if (threadIdx.x < 16)
    y[threadIdx.x] = __shfl_sync(0xffff, threadIdx.x, 20);  // expect inactive-source #outside-mask
}
// The last rounds read beyond the mask, in lanes whose result nobody uses.
__global__ void reduce_half_good(int* y) {
  if (threadIdx.x < 16) {
    int sum = static_cast<int>(threadIdx.x);
    for (int step = 8; step; step /= 2) sum += __shfl_down_sync(0xffff, sum, step);
    if (threadIdx.x == 0) y[0] = sum;
  }
}

__global__ void partial_warp(int* y) {  // blocks of 20 threads
  int sum = static_cast<int>(threadIdx.x);
  for (int step = 16; step; step /= 2)
    sum += __shfl_down_sync(kAll, sum, step);  // expect inactive-source #partial-warp
  if (threadIdx.x == 0) y[0] = sum;
}
__global__ void tiles_good(int* y) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int sum = static_cast<int>(threadIdx.x);
  for (int step = 4; step; step /= 2) sum += tile.shfl_down(sum, step);
  if (tile.thread_rank() == 0) y[threadIdx.x / 8] = sum;
  if (threadIdx.x % 3 == 0) {
    auto some = cg::coalesced_threads();
    y[threadIdx.x + 64] = some.shfl(static_cast<int>(threadIdx.x), 0);
  }
}

// ---- mbarriers

__device__ void make(unsigned long long* at, unsigned count) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(count) : "memory");
}
__device__ void arrive(unsigned long long* at) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(address) : "memory");
}
__device__ void forget(unsigned long long* at) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address) : "memory");
}

__global__ void arrives_before_init() {
  __shared__ unsigned long long gate[2];
  if (threadIdx.x == 0) make(&gate[0], 32);
  __syncthreads();
  const auto other = static_cast<unsigned>(__cvta_generic_to_shared(&gate[1]));
  // expect-next mbarrier-misuse #before-init
  asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(other) : "memory");
}

// One warp sets it up, another uses it: which comes first is not said.
__global__ void unordered_init() {
  __shared__ unsigned long long gate;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&gate));
  if (threadIdx.x == 0)
    // expect-next mbarrier-misuse #unordered-init
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(2) : "memory");
  if (threadIdx.x == 32)
    // expect-next mbarrier-misuse #unordered-init
    asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(at) : "memory");
}
__global__ void unordered_init_good() {
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) make(&gate, 2);
  __syncthreads();
  if (threadIdx.x == 32) arrive(&gate);
}

__global__ void arrives_too_often() {
  __shared__ unsigned long long gate;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&gate));
  if (threadIdx.x == 0)
    // expect-next mbarrier-misuse #too-often
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(2) : "memory");
  __syncthreads();
  if (threadIdx.x == 0)
    // expect-next mbarrier-misuse #too-often
    asm volatile("{.reg .b64 t; mbarrier.arrive.noComplete.shared.b64 t, [%0], 3;}" ::"r"(at)
                 : "memory");
}

__global__ void made_twice() {
  __shared__ unsigned long long gate;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&gate));
  if (threadIdx.x == 0) {
    // expect-next mbarrier-misuse #made-twice
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(8) : "memory");
    // expect-next mbarrier-misuse #made-twice
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(4) : "memory");
  }
}

__global__ void mbarrier_good(int* y) {
  __shared__ unsigned long long gate;
  if (threadIdx.x == 0) make(&gate, kThreads);
  __syncthreads();
  arrive(&gate);
  __syncthreads();
  if (threadIdx.x == 0) {
    forget(&gate);
    make(&gate, 1);
    y[0] = 1;
  }
}

// ---- Threads that wait for ever: each ends its launch

__global__ void one_arrival_too_many() {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  if (threadIdx.x == 0) init(&gate, blockDim.x + 1);
  __syncthreads();
  gate.arrive_and_wait();  // expect deadlock #one-arrival-too-many
}
__global__ void arrivals_good(int* y) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  if (threadIdx.x == 0) init(&gate, blockDim.x);
  __syncthreads();
  gate.arrive_and_wait();
  gate.wait(gate.arrive());
  y[threadIdx.x] = 1;
}

__global__ void different_barriers() {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // expect deadlock #different-barriers
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");  // expect deadlock #different-barriers
  }
}

__global__ void waits_for_host(volatile int* flag) {
  while (*flag == 0) {  // expect deadlock #waits-for-host
  }
}

template <class T>
T* made(size_t count) {
  T* out = nullptr;
  cudaMalloc(&out, count * sizeof(T));
  cudaMemset(out, 0, count * sizeof(T));
  return out;
}

void blocks() {
  float* y = made<float>(2 * kThreads);
  int* counts = made<int>(2 * kThreads);
  in_a_branch<<<1, kThreads>>>(y);
  in_a_branch_good<<<1, kThreads>>>(y);
  in_both_branches<<<1, kThreads>>>(y);
  by_warps_good<<<1, kThreads>>>(y);
  after_return<<<1, kThreads>>>(y, 40);
  after_return_good<<<1, kThreads>>>(y, 40);
  after_warp_left<<<1, kThreads>>>(y);
  after_warp_left_good<<<1, kThreads>>>(y);
  in_a_loop<<<1, kThreads>>>(y);
  in_a_loop_good<<<1, kThreads>>>(y);
  count_in_a_branch<<<1, kThreads>>>(counts);
  count_good<<<1, kThreads>>>(counts);
  int* lock = made<int>(2);
  lock_then_barrier_good<<<4, kThreads>>>(lock, lock + 1);
  count_of_a_part<<<1, kThreads>>>(y, 20);
  arrives_in_vain<<<1, kThreads>>>(y);
  arrives_again<<<1, 64>>>(y);
  arrives_again_good<<<1, 64>>>(y);
  named_good<<<1, kThreads>>>(y);
}

void lanes() {
  float* y = made<float>(2 * kThreads);
  int* numbers = made<int>(2 * kThreads);
  auto* masks = made<unsigned>(kThreads);
  syncwarp_without_caller<<<1, 32>>>(numbers);
  shuffle_without_caller<<<1, 32>>>(numbers);
  masks_good<<<1, 32>>>(numbers);
  ballot_in_a_branch<<<1, 32>>>(masks);
  ballot_good<<<1, 32>>>(masks);
  masks_differ<<<1, 32>>>(masks);
  shuffle_from_ended<<<1, 32>>>(y, 20);
  shuffle_from_ended_good<<<1, 32>>>(y, 20);
  shuffle_outside_mask<<<1, 32>>>(numbers);
  reduce_half_good<<<1, 32>>>(numbers);
  partial_warp<<<1, 20>>>(numbers);
  tiles_good<<<1, kThreads>>>(numbers);
}

void mbarriers() {
  int* y = made<int>(kThreads);
  arrives_before_init<<<1, 1>>>();
  unordered_init<<<1, 64>>>();
  unordered_init_good<<<1, 64>>>();
  arrives_too_often<<<1, 32>>>();
  made_twice<<<1, 1>>>();
  mbarrier_good<<<1, kThreads>>>(y);
  arrivals_good<<<1, kThreads>>>(y);
}

// A launch that waits for ever ends with an error, which the next one needs to be rid of.
template <class Launch>
void endless(Launch launch) {
  launch();
  cudaDeviceSynchronize();
  cudaDeviceReset();
}

}  // namespace

int main() {
  blocks();
  lanes();
  mbarriers();
  const cudaError_t code = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(code));
  endless([] { counts_differ<<<1, kThreads>>>(made<float>(kThreads)); });
  endless([] { different_barriers<<<1, kThreads>>>(); });
  endless([] { one_arrival_too_many<<<1, kThreads>>>(); });
  endless([] { waits_for_host<<<1, 1>>>(made<int>(1)); });
  return 0;
}
