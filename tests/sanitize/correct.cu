// SPDX-License-Identifier: Apache-2.0
// Which programs must have no finding? Correct ones with the idioms that a race detector gets
// wrong: each kernel here orders its threads in another way. Nothing is expected (rules.md).
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 128, kBlocks = 8, kAll = kThreads * kBlocks;

// What kernels work on, zeroed before each.
struct Memory {
  int x[kAll], y[kAll], z[kAll];
  unsigned counter, ticket, serving, lock;
  int flags[kBlocks], sums[kBlocks], prefixes[kBlocks];
  unsigned char bytes[kAll];
  unsigned short halves[kAll];
};

__device__ int thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// ---- Fences and flags

__global__ void last_block(Memory* m) {
  __shared__ bool last;
  m->x[thread()] = thread();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&m->counter, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  for (int i = threadIdx.x; i < kAll; i += kThreads) m->y[i] = m->x[kAll - 1 - i];
  if (threadIdx.x == 0) m->counter = 0;
}

__global__ void last_block_all_fence(Memory* m) {
  __shared__ bool last;
  m->x[thread()] = thread();
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(&m->counter, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int i = threadIdx.x; i < kAll; i += kThreads) m->y[i] = m->x[kAll - 1 - i];
}

__global__ void message_volatile(Memory* m) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  volatile int* flag = m->flags;
  if (blockIdx.x == 0) {
    m->x[0] = 42;
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    m->y[0] = m->x[0];
  }
}

__global__ void message_atomic_ref(Memory* m) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(m->flags[0]);
  if (blockIdx.x == 0) {
    m->x[0] = 42;
    flag.store(1, cuda::memory_order_release);
  } else {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    m->y[0] = m->x[0];
  }
}

__global__ void message_fences(Memory* m) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(m->flags[0]);
  if (blockIdx.x == 0) {
    m->x[0] = 42;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    flag.store(1, cuda::memory_order_relaxed);
  } else {
    while (flag.load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    m->y[0] = m->x[0];
  }
}

// Each block waits for the one before it, and passes on what that one wrote.
__global__ void chain(Memory* m) {
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) {
      while (atomicAdd(&m->flags[blockIdx.x - 1], 0) == 0) {
      }
      __threadfence();
    }
    m->x[blockIdx.x] = blockIdx.x ? m->x[blockIdx.x - 1] + 1 : 1;
    m->y[0] += 1;  // of all blocks, one after the other
    __threadfence();
    atomicExch(&m->flags[blockIdx.x], 1);
  }
}

__global__ void block_scope_message(Memory* m) {
  __shared__ int data, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> of(flag);
  if (threadIdx.x == 0) {
    data = 5;
    of.store(1, cuda::memory_order_release);
  } else if (threadIdx.x == 64) {
    while (of.load(cuda::memory_order_acquire) == 0) {
    }
    m->x[blockIdx.x] = data;
  }
}

// ---- Locks

__global__ void ticket_lock(Memory* m) {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(&m->ticket, 1u);
  while (atomicAdd(&m->serving, 0u) != mine) {
  }
  __threadfence();
  m->x[0] += 1;
  __threadfence();
  atomicAdd(&m->serving, 1u);
}

__global__ void ticket_lock_volatile(Memory* m) {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(&m->ticket, 1u);
  volatile unsigned* serving = &m->serving;
  while (*serving != mine) {
  }
  __threadfence();
  m->x[0] += 1;
  __threadfence();
  *serving = mine + 1;
}

__global__ void spin_lock(Memory* m) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&m->lock, 0u, 1u) != 0) {
  }
  __threadfence();
  m->x[0] += 1;
  m->x[1] = m->x[0] * 2;
  __threadfence();
  atomicExch(&m->lock, 0u);
}

__global__ void spin_lock_atomic_ref(Memory* m) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> lock(m->lock);
  unsigned expected = 0;
  while (!lock.compare_exchange_weak(expected, 1u, cuda::memory_order_acquire)) expected = 0;
  m->x[0] += 1;
  lock.store(0u, cuda::memory_order_release);
}

// The data of a seqlock are atomics too: a reader may meet a writer.
__global__ void seqlock(Memory* m) {
  if (threadIdx.x != 0) return;
  using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  using Data = cuda::atomic_ref<int, cuda::thread_scope_device>;
  Ref version(m->counter);
  Data a(m->x[0]), b(m->x[1]);
  if (blockIdx.x == 0) {
    for (int i = 1; i < 4; ++i) {
      version.fetch_add(1, cuda::memory_order_acquire);
      cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
      a.store(i, cuda::memory_order_relaxed);
      b.store(i, cuda::memory_order_relaxed);
      version.fetch_add(1, cuda::memory_order_release);
    }
    return;
  }
  for (int i = 0; i < 8; ++i) {
    const unsigned before = version.load(cuda::memory_order_acquire);
    const int seen = a.load(cuda::memory_order_relaxed) + b.load(cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    if (before % 2 == 0 && version.load(cuda::memory_order_relaxed) == before)
      m->y[blockIdx.x] = seen;
  }
}

// ---- Scans over blocks

// Decoupled look-back: status and value in words of their own, with fences.
__global__ void look_back(Memory* m) {
  __shared__ int sums[kThreads];
  __shared__ int before;
  const int t = threadIdx.x;
  sums[t] = m->x[thread()] + 1;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const int other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  if (t == kThreads - 1) {
    const int block = blockIdx.x;
    m->sums[block] = sums[t];
    if (block == 0) m->prefixes[0] = sums[t];
    __threadfence();
    atomicExch(&m->flags[block], block == 0 ? 2 : 1);
    int sum = 0;
    for (int i = block - 1; i >= 0; --i) {
      int state;
      while ((state = atomicAdd(&m->flags[i], 0)) == 0) {
      }
      __threadfence();
      if (state == 2) {
        sum += m->prefixes[i];
        break;
      }
      sum += m->sums[i];
    }
    before = sum;
    if (block) {
      m->prefixes[block] = sum + sums[t];
      __threadfence();
      atomicExch(&m->flags[block], 2);
    }
  }
  __syncthreads();
  m->y[thread()] = before + sums[t];
}

// ---- Grids

__global__ void grid_sync(Memory* m) {
  cg::grid_group grid = cg::this_grid();
  m->x[thread()] = thread();
  grid.sync();
  m->y[thread()] = m->x[kAll - 1 - thread()];
  grid.sync();
  m->x[thread()] = m->y[kAll - 1 - thread()];
}

__global__ void grid_sync_ping_pong(Memory* m) {
  cg::grid_group grid = cg::this_grid();
  int *from = m->x, *to = m->y;
  for (int i = 0; i < 3; ++i) {
    const int left = thread() ? from[thread() - 1] : 0;
    const int right = thread() + 1 < kAll ? from[thread() + 1] : 0;
    to[thread()] = left + right + 1;
    grid.sync();
    int* swap = from;
    from = to;
    to = swap;
  }
  if (thread() == 0) m->z[0] = from[kAll - 1];
}

__device__ unsigned arrivals, generation;
__global__ void own_grid_barrier(Memory* m) {
  m->x[thread()] = thread();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned old = *static_cast<volatile unsigned*>(&generation);
    __threadfence();
    if (atomicAdd(&arrivals, 1u) == gridDim.x - 1) {
      atomicExch(&arrivals, 0u);
      __threadfence();
      atomicAdd(&generation, 1u);
    } else {
      while (*static_cast<volatile unsigned*>(&generation) == old) {
      }
    }
    __threadfence();
  }
  __syncthreads();
  m->y[thread()] = m->x[(thread() + kThreads) % kAll];
}

// ---- Barriers of a block

__global__ void tree(Memory* m) {
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = m->x[thread()];
  for (int half = kThreads / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) m->y[blockIdx.x] = sums[0];
}

__global__ void double_buffer(Memory* m) {
  __shared__ int rows[2][kThreads];
  int from = 0;
  rows[0][threadIdx.x] = m->x[thread()];
  __syncthreads();
  for (int i = 0; i < 5; ++i) {
    rows[1 - from][threadIdx.x] = rows[from][(threadIdx.x + 1) % kThreads];
    from = 1 - from;
    __syncthreads();
  }
  m->y[thread()] = rows[from][threadIdx.x];
}

__global__ void transpose(Memory* m) {
  __shared__ int tile[32][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int i = y; i < 32; i += kThreads / 32) tile[i][x] = m->x[i * 32 + x];
  __syncthreads();
  if (blockIdx.x) return;
  for (int i = y; i < 32; i += kThreads / 32) m->y[i * 32 + x] = tile[x][i];
}

__global__ void histogram(Memory* m) {
  __shared__ int own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[threadIdx.x * 7 % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&m->x[threadIdx.x], own[threadIdx.x]);
}

__global__ void votes(Memory* m) {
  __shared__ int chosen;
  const int any = __syncthreads_or(threadIdx.x == 77);
  if (threadIdx.x == 77) chosen = any;
  const int count = __syncthreads_count(threadIdx.x < 10);
  m->x[thread()] = chosen + count;
}

// Warps 0 and 1 write, 2 and 3 read: barriers of both, arrive and sync apart.
__global__ void named_barriers(Memory* m) {
  __shared__ int stage[2][64];
  const int t = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int i = 0; i < 6; ++i) {
      if (i >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + i % 2) : "memory");
      stage[i % 2][t] = i * 64 + t;
      asm volatile("bar.arrive %0, 128;" ::"r"(1 + i % 2) : "memory");
    }
  } else {
    int sum = 0;
    for (int i = 0; i < 6; ++i) {
      asm volatile("bar.sync %0, 128;" ::"r"(1 + i % 2) : "memory");
      sum += stage[i % 2][63 - t];
      if (i < 4) asm volatile("bar.arrive %0, 128;" ::"r"(3 + i % 2) : "memory");
    }
    m->x[thread()] = sum;
  }
}

__global__ void barrier_of_two_warps(Memory* m) {
  __shared__ int tile[kThreads];
  const int half = threadIdx.x / 64;
  tile[threadIdx.x] = thread();
  asm volatile("barrier.sync %0, 64;" ::"r"(1 + half) : "memory");
  m->x[thread()] = tile[half * 64 + 63 - threadIdx.x % 64];
}

__global__ void cuda_barrier(Memory* m) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int tile[kThreads];
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = thread() + i;
    barrier.arrive_and_wait();
    m->x[thread()] += tile[kThreads - 1 - threadIdx.x];
    barrier.arrive_and_wait();
  }
}

__global__ void cuda_barrier_split(Memory* m) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int tile[kThreads];
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  tile[threadIdx.x] = thread();
  auto token = barrier.arrive();
  m->y[thread()] = 1;  // what others do not read
  barrier.wait(std::move(token));
  m->x[thread()] = tile[(threadIdx.x + 40) % kThreads];
}

// ---- Warps

__global__ void warp_exchange(Memory* m) {
  __shared__ int tile[kThreads];
  const int lane = threadIdx.x % 32, warp = threadIdx.x - lane;
  tile[threadIdx.x] = thread();
  __syncwarp();
  const int other = tile[warp + 31 - lane];
  __syncwarp();
  tile[threadIdx.x] = other;
  __syncwarp();
  m->x[thread()] = tile[warp + (lane + 1) % 32];
}

__global__ void warp_tree(Memory* m) {
  __shared__ int sums[kThreads];
  const int lane = threadIdx.x % 32;
  int* own = sums + threadIdx.x - lane;
  own[lane] = m->x[thread()];
  for (int half = 16; half; half /= 2) {
    __syncwarp();
    const int other = lane < half ? own[lane + half] : 0;
    __syncwarp();
    if (lane < half) own[lane] += other;
  }
  if (lane == 0) m->y[thread()] = own[0];
}

__global__ void tiles(Memory* m) {
  __shared__ int tile[kThreads];
  const auto part = cg::tiled_partition<8>(cg::this_thread_block());
  const int rank = static_cast<int>(part.thread_rank()), first = threadIdx.x - rank;
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = thread() + i;
    part.sync();
    m->x[thread()] += tile[first + 7 - rank];
    part.sync();
  }
}

__global__ void nested_tiles(Memory* m) {
  __shared__ int tile[kThreads];
  const auto quarter = cg::tiled_partition<8>(cg::this_thread_block());
  const auto half = cg::tiled_partition<16>(cg::this_thread_block());
  const int in8 = threadIdx.x % 8, in16 = threadIdx.x % 16;
  tile[threadIdx.x] = thread();
  quarter.sync();
  int sum = tile[threadIdx.x - in8 + 7 - in8];
  half.sync();
  sum += tile[threadIdx.x - in16 + 15 - in16];
  half.sync();
  tile[threadIdx.x] = sum;
}

__global__ void coalesced(Memory* m) {
  __shared__ int tile[kThreads];
  if (threadIdx.x % 3 == 0) {
    const auto group = cg::coalesced_threads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x - lane;
    tile[warp + static_cast<int>(group.thread_rank())] = thread();
    group.sync();
    m->x[thread()] = tile[warp + static_cast<int>(group.size() - 1 - group.thread_rank())];
  }
}

__global__ void aggregated_atomics(Memory* m) {
  if (threadIdx.x % 2) {
    const auto group = cg::coalesced_threads();
    unsigned first = 0;
    if (group.thread_rank() == 0) first = atomicAdd(&m->counter, group.size());
    first = group.shfl(first, 0);
    m->x[first + group.thread_rank()] = thread();
  }
}

// ---- Atomics and small elements

__global__ void work_list(Memory* m) {
  if (threadIdx.x % 5 == 0) m->x[atomicAdd(&m->counter, 1u)] = thread();
}

__global__ void block_scope_atomics(Memory* m) {
  atomicAdd_block(&m->x[blockIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) m->y[blockIdx.x] = m->x[blockIdx.x];
}

__global__ void small_elements(Memory* m) {
  m->bytes[thread()] = static_cast<unsigned char>(thread());
  m->halves[kAll - 1 - thread()] = static_cast<unsigned short>(thread());
  if (thread() % 2) m->bytes[thread()] += 1;
}

__global__ void vectors(Memory* m) {
  auto* rows = reinterpret_cast<int4*>(m->x);
  if (thread() < kAll / 4) rows[thread()] = make_int4(thread(), 1, 2, 3);
  auto* pairs = reinterpret_cast<int2*>(m->y);
  if (thread() < kAll / 2) pairs[thread()].y = thread();
}

__global__ void on_the_heap(Memory* m) {
  int* own = static_cast<int*>(malloc(16));
  if (!own) return;
  for (int i = 0; i < 4; ++i) own[i] = thread();
  m->x[thread()] = own[3];
  free(own);
}

// ---- Streams

__global__ void write_all(int* x) { x[thread()] = thread(); }
__global__ void read_all(const int* x, int* y) { y[thread()] = x[kAll - 1 - thread()]; }

void streams_with_events(Memory* m) {
  cudaStream_t first, second;
  cudaEvent_t done;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&done);
  write_all<<<kBlocks, kThreads, 0, first>>>(m->x);
  cudaEventRecord(done, first);
  cudaStreamWaitEvent(second, done, 0);
  read_all<<<kBlocks, kThreads, 0, second>>>(m->x, m->y);
  write_all<<<kBlocks, kThreads, 0, first>>>(m->z);
  cudaStreamSynchronize(second);
  write_all<<<kBlocks, kThreads, 0, first>>>(m->x);
  cudaDeviceSynchronize();
  int* memory = nullptr;
  cudaMallocAsync(&memory, kAll * sizeof(int), first);
  write_all<<<kBlocks, kThreads, 0, first>>>(memory);
  cudaMemcpyAsync(m->y, memory, kAll * sizeof(int), cudaMemcpyDeviceToDevice, first);
  cudaFreeAsync(memory, first);
  cudaEventDestroy(done);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaDeviceSynchronize();
}

void graph_of_streams(Memory* m) {
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  write_all<<<kBlocks, kThreads, 0, first>>>(m->x);
  cudaEventRecord(fork, first);
  cudaStreamWaitEvent(second, fork, 0);
  read_all<<<kBlocks, kThreads, 0, second>>>(m->x, m->y);
  read_all<<<kBlocks, kThreads, 0, first>>>(m->x, m->z);
  cudaEventRecord(join, second);
  cudaStreamWaitEvent(first, join, 0);
  write_all<<<kBlocks, kThreads, 0, first>>>(m->x);
  cudaStreamEndCapture(first, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphLaunch(ready, first);
  cudaGraphLaunch(ready, first);
  cudaStreamSynchronize(first);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

using Kernel = void (*)(Memory*);
template <class... Kernels>
void run(Memory* m, Kernels... kernels) {
  for (Kernel kernel : {Kernel{kernels}...}) {
    cudaMemset(m, 0, sizeof(Memory));
    kernel<<<kBlocks, kThreads>>>(m);
  }
}

}  // namespace

int main() {
  Memory* m = nullptr;
  cudaMalloc(&m, sizeof(Memory));
  run(m, last_block, last_block_all_fence, message_volatile, message_atomic_ref, message_fences,
      chain, block_scope_message, ticket_lock, ticket_lock_volatile, spin_lock,
      spin_lock_atomic_ref, seqlock, look_back, own_grid_barrier, tree, double_buffer, transpose,
      histogram, votes, named_barriers, barrier_of_two_warps, cuda_barrier, cuda_barrier_split,
      warp_exchange, warp_tree, tiles, nested_tiles, coalesced, aggregated_atomics, work_list,
      block_scope_atomics, small_elements, vectors, on_the_heap);
  for (Kernel kernel : {Kernel{grid_sync}, Kernel{grid_sync_ping_pong}}) {
    cudaMemset(m, 0, sizeof(Memory));
    void* arguments[] = {&m};
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), kBlocks, kThreads, arguments);
  }
  cudaDeviceSynchronize();  // streams that do not wait for the default one
  streams_with_events(m);
  graph_of_streams(m);
  const cudaError_t code = cudaDeviceSynchronize();
  if (code != cudaSuccess) std::printf("%s\n", cudaGetErrorString(code));
  cudaFree(m);
  return code == cudaSuccess ? 0 : 1;
}
