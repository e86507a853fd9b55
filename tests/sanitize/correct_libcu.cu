// SPDX-License-Identifier: Apache-2.0
// Do programs with libcu++ and cooperative groups have no finding? Barriers, latches, semaphores,
// pipelines, asynchronous copies, atomics, clusters, collectives of tiles. Nothing is expected
// (rules.md).
// options --arch 90
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace {

namespace cg = cooperative_groups;
constexpr int kThreads = 128, kBlocks = 4, kAll = kThreads * kBlocks;

struct Memory {
  int x[kAll], y[kAll], z[kAll];
  int word, flag, turn;
  unsigned done;
  int queue[kAll];
  unsigned head, tail;
};

__device__ int thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// ---- Barriers

__global__ void phases(Memory* m) {
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  __shared__ int tile[kThreads];
  if (threadIdx.x == 0) init(&gate, kThreads);
  __syncthreads();
  for (int round = 0; round < 4; ++round) {
    tile[threadIdx.x] = thread() + round;
    gate.arrive_and_wait();
    m->y[thread()] += tile[(threadIdx.x + 1) % kThreads];
    gate.arrive_and_wait();
  }
}

// Half of the block makes what the other half uses: two barriers of a buffer, full and empty.
__global__ void producer_consumer(Memory* m) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier full, empty;
  __shared__ int buffer[kThreads / 2];
  if (threadIdx.x == 0) init(&full, kThreads), init(&empty, kThreads);
  __syncthreads();
  const int half = kThreads / 2, at = threadIdx.x % half;
  const bool makes = threadIdx.x < half;
  if (!makes) (void)empty.arrive();  // the buffer is free at first
  for (int round = 0; round < 3; ++round) {
    if (makes) {
      empty.arrive_and_wait();
      buffer[at] = thread() * round;
      (void)full.arrive();
    } else {
      full.arrive_and_wait();
      m->y[thread()] += buffer[half - 1 - at];
      (void)empty.arrive();
    }
  }
}

__global__ void drops_out(Memory* m) {
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  __shared__ int tile[kThreads];
  if (threadIdx.x == 0) init(&gate, kThreads);
  __syncthreads();
  if (threadIdx.x >= 96) {
    tile[threadIdx.x] = 1;
    gate.arrive_and_drop();
    return;
  }
  tile[threadIdx.x] = 2;
  gate.arrive_and_wait();
  m->y[thread()] = tile[127 - threadIdx.x];
  gate.arrive_and_wait();
  tile[threadIdx.x] = 3;
}

__global__ void latch(Memory* m) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char room[sizeof(Latch)];
  __shared__ int tile[kThreads];
  Latch& gate = *reinterpret_cast<Latch*>(room);
  if (threadIdx.x == 0) new (room) Latch(kThreads);
  __syncthreads();
  tile[threadIdx.x] = thread();
  gate.arrive_and_wait();
  m->y[thread()] = tile[kThreads - 1 - threadIdx.x];
}

// ---- Semaphores and atomics

__device__ cuda::binary_semaphore<cuda::thread_scope_device> mutex(1);
__global__ void semaphore(Memory* m) {
  if (threadIdx.x) return;
  mutex.acquire();
  ++m->word;
  mutex.release();
}

__global__ void atomic_message(Memory* m) {
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(m->flag);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    m->word = 42;
    flag.store(1, cuda::memory_order_release);
    flag.notify_all();
  } else {
    flag.wait(0, cuda::memory_order_acquire);
    m->y[blockIdx.x] = m->word;
  }
}

// Blocks take turns, each with a compare and swap that acquires and releases.
__global__ void turns(Memory* m) {
  if (threadIdx.x) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> turn(m->turn);
  int own = static_cast<int>(blockIdx.x);
  while (!turn.compare_exchange_weak(own, kBlocks + own, cuda::memory_order_acq_rel))
    own = static_cast<int>(blockIdx.x);
  m->word = m->word * 2 + own;
  turn.store(own + 1, cuda::memory_order_release);
}

// A queue of many producers: a slot is published by its own flag.
__global__ void queue(Memory* m) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> tail(m->tail);
  const unsigned at = tail.fetch_add(1, cuda::memory_order_relaxed);
  m->x[at] = thread();
  cuda::atomic_ref<int, cuda::thread_scope_device> slot(m->queue[at]);
  slot.store(1, cuda::memory_order_release);
  if (at == 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> before(m->queue[at - 1]);
  if (before.load(cuda::memory_order_acquire)) m->y[at] = m->x[at - 1];
}

__global__ void fence_of_a_block(Memory* m) {
  if (threadIdx.x == 0) {
    m->x[blockIdx.x] = 7;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(m->done).fetch_add(
        1, cuda::memory_order_relaxed);
  }
  __shared__ bool last;
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> done(m->done);
    last = done.load(cuda::memory_order_relaxed) == kBlocks;
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
  }
  __syncthreads();
  if (last && threadIdx.x < kBlocks) m->y[blockIdx.x * kThreads + threadIdx.x] = m->x[threadIdx.x];
}

// ---- Asynchronous copies

__global__ void copies(Memory* m) {
  __shared__ cuda::barrier<cuda::thread_scope_block> gate;
  __shared__ alignas(16) int tile[kThreads];
  if (threadIdx.x == 0) init(&gate, kThreads);
  __syncthreads();
  cuda::memcpy_async(tile + threadIdx.x, m->x + thread(), cuda::aligned_size_t<4>(4), gate);
  gate.arrive_and_wait();
  m->y[thread()] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void group_copies(Memory* m) {
  __shared__ alignas(16) int tile[kThreads];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile, m->x + blockIdx.x * kThreads, sizeof tile);
  cg::wait(block);
  m->y[thread()] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void pipeline(Memory* m) {
  __shared__ alignas(16) int tile[2][kThreads];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  for (int round = 0; round < kBlocks + 1; ++round) {
    if (round < kBlocks) {
      pipe.producer_acquire();
      cuda::memcpy_async(&tile[round % 2][threadIdx.x], &m->x[round * kThreads + threadIdx.x],
                         cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    }
    if (round == 0) continue;
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    if (round == kBlocks) cuda::pipeline_consumer_wait_prior<0>(pipe);
    __syncthreads();
    if (blockIdx.x == 0)
      m->y[(round - 1) * kThreads + threadIdx.x] = tile[(round - 1) % 2][127 - threadIdx.x];
    pipe.consumer_release();
    __syncthreads();
  }
}

// ---- Groups

__global__ void tile_collectives(Memory* m) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int sum = cg::reduce(tile, m->x[thread()], cg::plus<int>());
  const int scanned = cg::inclusive_scan(tile, m->x[thread()], cg::plus<int>());
  m->y[thread()] = sum + scanned;
}

__global__ void branches(Memory* m) {
  if (threadIdx.x % 3 == 0) {
    const auto active = cg::coalesced_threads();
    m->y[thread()] = cg::reduce(active, 1, cg::plus<int>());
  }
  const auto labelled = cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()),
                                              static_cast<int>(threadIdx.x % 2));
  m->z[thread()] = labelled.shfl(static_cast<int>(threadIdx.x), 0);
}

__global__ void grid_phases(Memory* m) {
  const cg::grid_group grid = cg::this_grid();
  for (int step = 1; step < kAll; step *= 2) {
    const int value = thread() >= step ? m->x[thread() - step] : 0;
    grid.sync();
    m->x[thread()] += value;
    grid.sync();
  }
}

__global__ void __cluster_dims__(2, 1, 1) clusters(Memory* m) {
  __shared__ int own[kThreads];
  const cg::cluster_group cluster = cg::this_cluster();
  own[threadIdx.x] = thread();
  cluster.sync();
  const int* other = cluster.map_shared_rank(own, cluster.block_rank() ^ 1);
  m->y[thread()] = other[kThreads - 1 - threadIdx.x];
  cluster.sync();  // nobody ends while its memory is read
}

using Kernel = void (*)(Memory*);

int run(Memory* m, Kernel kernel, bool cooperative = false) {
  cudaMemset(m, 0, sizeof(Memory));
  void* arguments[] = {&m};
  if (cooperative)
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), kBlocks, kThreads, arguments);
  else
    kernel<<<kBlocks, kThreads>>>(m);
  const cudaError_t code = cudaDeviceSynchronize();
  if (code != cudaSuccess) std::printf("%s\n", cudaGetErrorString(code));
  return code == cudaSuccess ? 0 : 1;
}

}  // namespace

int main() {
  Memory* m = nullptr;
  cudaMalloc(&m, sizeof(Memory));
  int wrong = 0, cases = 1;
  for (Kernel kernel :
       {phases, producer_consumer, drops_out, latch, semaphore, atomic_message, turns, queue,
        fence_of_a_block, copies, group_copies, pipeline, tile_collectives, branches, clusters}) {
    wrong += run(m, kernel);
    ++cases;
  }
  wrong += run(m, grid_phases, true);
  cudaFree(m);
  std::printf("%d cases, %d wrong\n", cases, wrong);
  return wrong ? 1 : 0;
}
