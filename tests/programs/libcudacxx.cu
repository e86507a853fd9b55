// SPDX-License-Identifier: Apache-2.0
// Does libcu++ run: atomics of every scope, barriers, latches, semaphores, pipelines, and
// cuda::std?
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/utility>
#include <cuda/std/variant>

#include "expect.h"

constexpr int kThreads = 128, kBlocks = 4;
using DeviceCounter = cuda::atomic<int, cuda::thread_scope_device>;

__global__ void counts(DeviceCounter* counter, int* most, long long* wide, float* sum) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> of_block;
  if (threadIdx.x == 0) new (&of_block) cuda::atomic<int, cuda::thread_scope_block>(0);
  __syncthreads();
  of_block.fetch_add(1, cuda::memory_order_relaxed);
  __syncthreads();
  if (threadIdx.x == 0) counter->fetch_add(of_block.load(), cuda::memory_order_acq_rel);
  cuda::atomic_ref<int, cuda::thread_scope_device>(*most).fetch_max(
      static_cast<int>(threadIdx.x * (blockIdx.x + 1)));
  cuda::atomic_ref<long long, cuda::thread_scope_system> ref(*wide);
  long long seen = ref.load();
  while (!ref.compare_exchange_weak(seen, seen + (1ll << 33))) {
  }
  cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
}
__global__ void waits(int* out) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier barrier;
  __shared__ int tile[kThreads];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3; ++round) {
    tile[i] = i + round;
    Barrier::arrival_token token = barrier.arrive();
    barrier.wait(cuda::std::move(token));
    const int seen = tile[(i + 1) % kThreads];
    barrier.arrive_and_wait();
    out[i] += seen;
  }
}
__global__ void takes_turns(int* out) {
  __shared__ cuda::latch<cuda::thread_scope_block>* latch;
  __shared__ alignas(cuda::latch<cuda::thread_scope_block>) char
      room[sizeof(cuda::latch<cuda::thread_scope_block>)];
  __shared__ alignas(8) char other[sizeof(cuda::binary_semaphore<cuda::thread_scope_block>)];
  auto* semaphore = reinterpret_cast<cuda::binary_semaphore<cuda::thread_scope_block>*>(other);
  if (threadIdx.x == 0) {
    latch = new (room) cuda::latch<cuda::thread_scope_block>(kThreads);
    new (semaphore) cuda::binary_semaphore<cuda::thread_scope_block>(1);
    out[0] = 0;
  }
  __syncthreads();
  semaphore->acquire();
  const int before = *static_cast<volatile int*>(out);
  *static_cast<volatile int*>(out) = before + 1;
  __threadfence_block();
  semaphore->release();
  latch->arrive_and_wait();
  if (threadIdx.x == 0) out[1] = *static_cast<volatile int*>(out);
}
__global__ void pipes(const int* from, int* to, int tiles) {
  constexpr int kStages = 2;
  __shared__ int tile[kStages][kThreads];
  auto pipeline = cuda::make_pipeline();
  const auto fetch = [&](int t) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&tile[t % kStages][threadIdx.x], &from[t * kThreads + threadIdx.x],
                       sizeof(int), pipeline);
    pipeline.producer_commit();
  };
  for (int t = 0; t < kStages; ++t) fetch(t);
  for (int t = 0; t < tiles; ++t) {
    cuda::pipeline_consumer_wait_prior<kStages - 1>(pipeline);
    to[t * kThreads + threadIdx.x] = 2 * tile[t % kStages][threadIdx.x];
    pipeline.consumer_release();
    if (t + kStages < tiles) {
      fetch(t + kStages);
    } else {
      pipeline.producer_acquire();
      pipeline.producer_commit();
    }
  }
}

__host__ __device__ int with_std(int seed) {
  cuda::std::array<int, 4> values{seed, seed + 1, seed + 2, seed + 3};
  int sum = 0;
  for (int value : cuda::std::span<const int>(values.data(), 3)) sum += value;
  const cuda::std::tuple<int, float> pair{sum, 0.5f};
  const cuda::std::optional<int> perhaps =
      seed % 2 ? cuda::std::optional<int>(7) : cuda::std::nullopt;
  cuda::std::variant<int, float> either = 3;
  if (seed % 3 == 0) either = 2.0f;
  const cuda::std::complex<float> square =
      cuda::std::complex<float>(1, 2) * cuda::std::complex<float>(3, -1);
  return cuda::std::get<0>(pair) + perhaps.value_or(100) + static_cast<int>(either.index()) * 1000 +
         cuda::std::popcount(static_cast<unsigned>(seed)) * 10000 +
         static_cast<int>(square.real() + square.imag()) +
         (cuda::std::numeric_limits<int>::max() == 0x7fffffff);
}
__global__ void uses_std(int* out) { out[threadIdx.x] = with_std(static_cast<int>(threadIdx.x)); }

int main() {
  int* memory = nullptr;
  EXPECT_OK(cudaMallocManaged(&memory, 64 * kThreads * sizeof(int)));
  auto* counter = new (memory) DeviceCounter(0);
  auto* wide = reinterpret_cast<long long*>(memory + 4);
  auto* sum = reinterpret_cast<float*>(memory + 8);
  counts<<<kBlocks, kThreads>>>(counter, memory + 2, wide, sum);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counter->load() == kBlocks * kThreads && memory[2] == kBlocks * (kThreads - 1));
  EXPECT(*wide == (1ll << 33) * kBlocks * kThreads && *sum == 0.5f * kBlocks * kThreads);
  EXPECT_OK(cudaMemset(memory, 0, kThreads * sizeof(int)));
  waits<<<1, kThreads>>>(memory);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) EXPECT(memory[i] == 3 * ((i + 1) % kThreads) + 3);
  takes_turns<<<1, kThreads>>>(memory);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(memory[1] == kThreads);
  int *from = memory, *to = memory + 16 * kThreads;
  for (int i = 0; i < 6 * kThreads; ++i) from[i] = i;
  pipes<<<1, kThreads>>>(from, to, 6);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 6 * kThreads; ++i) EXPECT(to[i] == 2 * i);
  uses_std<<<1, kThreads>>>(memory);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) EXPECT(memory[i] == with_std(i));
  return finish();
}
