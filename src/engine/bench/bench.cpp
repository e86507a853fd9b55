// SPDX-License-Identifier: Apache-2.0
// How fast is the engine? kiln_engine_bench BENCH.PTX: each kernel beside a plain loop, in CPU time of this thread, so
// that a busy machine changes the figures less; threads are measured by the clock on the wall.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "engine/fault.h"
#include "engine/image.h"
#include "engine/launch.h"

namespace {

using namespace kiln;
using namespace kiln::engine;

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class Body>
double best_of(int times, clockid_t clock, Body body) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    double start = seconds(clock);
    body();
    best = std::min(best, seconds(clock) - start);
  }
  return best;
}

struct Bench {
  Heap heap;
  Image image{heap};
  std::vector<KilnRegion> regions;

  template <class... Arguments>
  void launch(const char* name, KilnDim3 grid, KilnDim3 block, Arguments... arguments) {
    auto program = image.kernel(name);
    if (!program) {
      fmt::print(stderr, "{}\n", format(program.error()));
      std::exit(1);
    }
    KernelFacts facts{*program, *image.kernel(name, true), image.static_shared_bytes(**program), kDefaultSharedBytes};
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    KilnEngineLaunch what{};
    what.grid = grid;
    what.block = block;
    what.arguments = pointers;
    what.regions = regions.data();
    what.region_count = static_cast<uint32_t>(regions.size());
    what.check_memory = 1;
    LaunchOutcome outcome = launch_kernel(image, heap, facts, what);
    if (outcome.code) {
      fmt::print(stderr, "{}\n", outcome.text);
      std::exit(1);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} tests/ptx/kernels/bench.ptx\n", argv[0]);
    return 2;
  }
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  Bench bench;
  if (auto status = bench.image.load(text.str()); !status) {
    fmt::print(stderr, "{}\n", format(status.error()));
    return 1;
  }
  constexpr uint32_t kCount = 16u << 20;
  std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), out(kCount);
  for (auto* v : {&a, &b, &out}) bench.regions.push_back({v->data(), v->size() * sizeof(float), "t", 1});
  setenv("KILN_ENGINE_THREADS", "1", 1);

  const float *pa = a.data(), *pb = b.data();
  float* po = out.data();
  double plain = best_of(5, CLOCK_THREAD_CPUTIME_ID, [&] {
    for (uint32_t i = 0; i < kCount; ++i) po[i] = pa[i] + pb[i];
    asm volatile("" ::"r"(po) : "memory");
  });
  int64_t n = kCount;
  double add = best_of(5, CLOCK_THREAD_CPUTIME_ID, [&] {
    bench.launch("add", {kCount / 256, 1, 1}, {256, 1, 1}, pa, pb, po, n);
  });
  int64_t n4 = kCount / 4;
  double add4 = best_of(5, CLOCK_THREAD_CPUTIME_ID, [&] {
    bench.launch("add4", {kCount / 1024, 1, 1}, {256, 1, 1}, pa, pb, po, n4);
  });
  fmt::print(
      "add of 16M floats, one core: plain loop {:.1f} ms, engine {:.1f} ms = {:.1f}x (bar: 12x), float4 {:.1f} ms = "
      "{:.1f}x\n",
      plain * 1e3, add * 1e3, add / plain, add4 * 1e3, add4 / plain);

  int size = 512;
  double matmul = best_of(2, CLOCK_THREAD_CPUTIME_ID, [&] {
    bench.launch("matmul", {16, 16, 1}, {32, 32, 1}, pa, pb, po, size);
  });
  fmt::print("tiled matmul 512^3 fp32, one core: {:.1f} ms, {:.2f} G lane-FMA/s (bar: 1)\n", matmul * 1e3,
             512.0 * 512 * 512 / matmul * 1e-9);

  double empty = best_of(5, CLOCK_THREAD_CPUTIME_ID, [&] {
    for (int i = 0; i < 1000; ++i) bench.launch("nothing", {1, 1, 1}, {32, 1, 1});
  });
  fmt::print("empty launch: {:.2f} us (bar: 5)\n", empty * 1e3);
  return 0;
}
