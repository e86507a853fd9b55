// SPDX-License-Identifier: Apache-2.0
// How long does an add take, by the simplest honest program? CUDA events around one launch, L2
// flushed before each.
//   plain_events LOG2_ELEMENTS...   prints a line for each size, place in memory and way to
//   enqueue: LOG2 PLACE IN_FLIGHT STREAM BUSY_US MEDIAN_US P25_US P75_US TRIMMED_US, the last
//   without the outer tenths
// The plain program is the way "1 default 0". The others say what changes when 16 samples wait in
// the stream, when the stream is one of its own, and when a kernel of 20 us precedes the flush.
//   plain_events --few LOG2_ELEMENTS...   the plain way at one place with few samples, for a
//   profiler that follows each
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "plain_events.cuh"

static void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "error: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

constexpr int kMostInFlight = 16, kSamples = 320, kFewSamples = 80, kPlaces = 3;
constexpr int kMostBitsOfWays = 24;  // a microsecond does not show in longer kernels

struct Way {
  int in_flight;
  const char* stream_name;
  cudaStream_t stream;
  int busy_us;
};

struct Flush {
  void* memory;
  size_t bytes;
};

static std::vector<float> sample(const Way& way, const Flush& flush,
                                 const std::vector<cudaEvent_t>& events, const float4* a,
                                 const float4* b, float4* out, size_t count, int samples) {
  const auto blocks = static_cast<unsigned>((count / 4 + 255) / 256);
  std::vector<float> times;
  for (int i = 0; i < samples; i += way.in_flight) {
    for (int k = 0; k < way.in_flight; ++k) {
      if (way.busy_us > 0) spin<<<1, 1, 0, way.stream>>>(1900ll * way.busy_us);
      check(cudaMemsetAsync(flush.memory, 0, flush.bytes, way.stream));
      check(cudaEventRecord(events[2 * k], way.stream));
      plain_add<<<blocks, 256, 0, way.stream>>>(a, b, out, static_cast<int64_t>(count / 4));
      check(cudaEventRecord(events[2 * k + 1], way.stream));
    }
    check(cudaEventSynchronize(events[2 * way.in_flight - 1]));
    for (int k = 0; k < way.in_flight; ++k) {
      float ms = 0;
      check(cudaEventElapsedTime(&ms, events[2 * k], events[2 * k + 1]));
      if (i >= samples / 4) times.push_back(1e3f * ms);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

int main(int argc, char** argv) {
  int l2_bytes = 0;
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0));
  Flush flush{nullptr, 2 * static_cast<size_t>(l2_bytes)};
  check(cudaMalloc(&flush.memory, flush.bytes));
  std::vector<cudaEvent_t> events(2 * kMostInFlight);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event));
  cudaStream_t own;
  check(cudaStreamCreate(&own));
  const Way ways[] = {{1, "default", nullptr, 0}, {16, "default", nullptr, 0},
                      {1, "own", own, 0},         {16, "own", own, 0},
                      {1, "own", own, 20},        {16, "own", own, 20}};
  const bool few = argc > 1 && std::strcmp(argv[1], "--few") == 0;
  for (int word = few ? 2 : 1; word < argc; ++word) {
    const int bits = std::atoi(argv[word]);
    const size_t count = size_t{1} << bits;
    std::vector<float> values(count);
    unsigned state = 1;
    for (float& value : values)
      value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
    std::vector<float4*> taken;  // kept until the size is done: else each place would be the same
    for (int place = 0; place < (few ? 1 : kPlaces); ++place) {
      float4* tensors[3];
      for (float4*& tensor : tensors) {
        check(cudaMalloc(&tensor, 4 * count));
        taken.push_back(tensor);
        check(cudaMemcpy(tensor, values.data(), 4 * count, cudaMemcpyHostToDevice));
      }
      for (const Way& way : ways) {
        if ((few || bits > kMostBitsOfWays) && &way != ways) continue;
        const std::vector<float> times = sample(way, flush, events, tensors[0], tensors[1],
                                                tensors[2], count, few ? kFewSamples : kSamples);
        const size_t cut = times.size() / 10;
        const double middle = std::accumulate(times.begin() + cut, times.end() - cut, 0.0);
        std::printf("%d %d %d %s %d %.4f %.4f %.4f %.4f\n", bits, place, way.in_flight,
                    way.stream_name, way.busy_us, times[times.size() / 2], times[times.size() / 4],
                    times[3 * times.size() / 4],
                    middle / static_cast<double>(times.size() - 2 * cut));
      }
    }
    for (float4* tensor : taken) check(cudaFree(tensor));
  }
}
