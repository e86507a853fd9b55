// SPDX-License-Identifier: Apache-2.0
// Do streams keep order, events tell time, all cores take blocks, and does a child of fork() run
// kernels?
#include <set>
#include <thread>
#include <vector>

#include "expect.h"

__global__ void times_two_plus(int* p, int value) { p[threadIdx.x] = p[threadIdx.x] * 2 + value; }
__global__ void spin(int* p, int rounds) {
  int x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223;
  if (threadIdx.x == 0) p[blockIdx.x] = x;
}

void streams_keep_order() {
  int* p = nullptr;
  int host = 0;
  EXPECT_OK(cudaMalloc(&p, 128));
  EXPECT_OK(cudaMemset(p, 0, 128));
  int least = 1, greatest = 1, priority = 7;
  EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(least == 0 && greatest < 0);
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  EXPECT_OK(cudaStreamGetPriority(stream, &priority));
  EXPECT(priority == greatest);
  std::vector<int> seen;
  for (int i = 1; i <= 3; ++i) {
    times_two_plus<<<1, 32, 0, stream>>>(p, i);
    EXPECT_OK(cudaMemcpyAsync(&host, p, 4, cudaMemcpyDeviceToHost, stream));
    static int* last = nullptr;
    last = &host;
    EXPECT_OK(cudaLaunchHostFunc(
        stream, [](void* list) { static_cast<std::vector<int>*>(list)->push_back(*last); }, &seen));
  }
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamQuery(stream));
  EXPECT(seen == std::vector<int>({1, 4, 11}));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(p));
}

void events_tell_real_times() {
  int* p = nullptr;
  EXPECT_OK(cudaMalloc(&p, 4096));
  cudaEvent_t start, stop, untimed;
  EXPECT_OK(cudaEventCreate(&start));
  EXPECT_OK(cudaEventCreate(&stop));
  EXPECT_OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  float short_ms = 0, long_ms = 0;
  EXPECT_OK(cudaEventRecord(start));
  spin<<<1, 32>>>(p, 100);
  EXPECT_OK(cudaEventRecord(stop));
  EXPECT_OK(cudaEventSynchronize(stop));
  EXPECT_OK(cudaEventElapsedTime(&short_ms, start, stop));
  EXPECT_OK(cudaEventRecord(start));
  spin<<<1, 32>>>(p, 1000000);
  EXPECT_OK(cudaEventRecord(stop));
  EXPECT_OK(cudaEventSynchronize(stop));
  EXPECT_OK(cudaEventElapsedTime(&long_ms, start, stop));
  EXPECT(short_ms >= 0 && long_ms > short_ms);
  EXPECT_OK(cudaEventRecord(untimed));
  EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&long_ms, start, untimed));
  cudaGetLastError();
  EXPECT_OK(cudaFree(p));
}

void threads_of_the_host_share_the_device() {
  std::vector<std::thread> threads;
  std::vector<int> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &results] {
      int* p = nullptr;
      cudaStream_t stream;
      cudaMalloc(&p, 128);
      cudaStreamCreate(&stream);
      cudaMemsetAsync(p, 0, 128, stream);
      for (int i = 0; i < 50; ++i) times_two_plus<<<1, 32, 0, stream>>>(p, i % 2 ? -t : t);
      cudaMemcpyAsync(&results[t], p, 4, cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    int wanted = 0;
    for (int i = 0; i < 50; ++i)
      wanted = static_cast<int>(static_cast<unsigned>(wanted) * 2u +
                                static_cast<unsigned>(i % 2 ? -t : t));
    EXPECT(results[t] == wanted);
  }
}

// Many blocks before and after: the pool of threads does not survive a fork, and must be made anew.
void a_child_of_fork_runs_kernels(bool parent_has_run) {
  int* p = nullptr;
  if (parent_has_run) {
    EXPECT_OK(cudaMalloc(&p, 4096));
    spin<<<256, 128>>>(p, 10);
    EXPECT_OK(cudaDeviceSynchronize());
  }
  in_a_child([] {
    int* q = nullptr;
    int host[1024] = {};
    alarm(60);
    EXPECT_OK(cudaMalloc(&q, 4096));
    spin<<<1024, 128>>>(q, 10);
    EXPECT_OK(cudaMemcpy(host, q, 4096, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == host[1023] && host[0] != 0);
  });
}

int main() {
  a_child_of_fork_runs_kernels(false);
  streams_keep_order();
  events_tell_real_times();
  threads_of_the_host_share_the_device();
  if (on_the_engine()) a_child_of_fork_runs_kernels(true);  // CUDA itself does not survive a fork
  return finish();
}
