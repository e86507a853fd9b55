// SPDX-License-Identifier: Apache-2.0
// Does the engine survive where memory and threads are scarce? A launch succeeds with the right
// result, or its error is reported; the process and later launches are well.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "engine/cudart/state.h"
#include "engine/machine/fault.h"
#include "engine/machine/grid.h"
#include "engine/memory/memory.h"
#include "fatbin.h"
#include "harness.h"
#include "kiln/engine_abi.h"
#include "scarcity.h"

extern "C" const KilnEngine* kiln_engine(uint32_t);

namespace kiln::engine {
namespace {

// Every thread writes its own number, by way of shared memory, a call and local memory.
const char* const kPressureText = R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 offset = 0;
.func (.param .b32 out) same(.param .b32 x)
{
  .local .align 4 .b8 room[64];
  .reg .b32 %r<4>; .reg .b64 %rd<3>;
  mov.u64 %rd1, room;
  ld.param.b32 %r1, [x];
  st.local.b32 [%rd1], %r1;
  ld.local.b32 %r2, [%rd1];
  st.param.b32 [out], %r2;
  ret;
}
.visible .entry number(.param .u64 p)
{
  .shared .align 4 .b8 tile[256];
  .reg .b64 %rd<6>; .reg .b32 %r<10>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mov.u32 %r5, tile;
  mad.lo.u32 %r6, %r3, 4, %r5;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  st.shared.u32 [%r6], %r4;
  bar.sync 0;
  ld.shared.u32 %r7, [%r6];
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r7; call.uni (b), same, (a); ld.param.b32 %r8, [b]; }
  mov.u64 %rd3, offset;
  ld.global.u32 %r9, [%rd3];
  add.u32 %r8, %r8, %r9;
  mad.wide.u32 %rd2, %r4, 4, %rd1;
  st.global.u32 [%rd2], %r8;
  ret;
}
)";

constexpr uint32_t kPressureBlocks = 40, kThreads = 64;

// A library and the runtime functions that a program would call.
class Pressure : public testing::Test {
 protected:
  Pressure() { setenv("KILN_ENGINE_THREADS", "4", 1); }
  ~Pressure() override {
    unsetenv("KILN_ENGINE_THREADS");
    call<int()>("cudaDeviceReset");
    call<int()>("cudaGetLastError");
  }

  void* load() {
    void* image = engine->register_image(&fatbin.wrapper);
    engine->register_function(image, &key, "number");
    return image;
  }
  template <class Signature, class... Arguments>
  int call(const char* name, Arguments... arguments) {
    return reinterpret_cast<Signature*>(engine->runtime_function(name))(arguments...);
  }
  int launch(uint32_t* to, uint32_t flags) {
    void* arguments[] = {&to};
    KilnEngineLaunch what{};
    what.struct_bytes = sizeof what;
    what.flags = flags;
    what.host_function = &key;
    what.grid = {kPressureBlocks, 1, 1};
    what.block = {kThreads, 1, 1};
    what.arguments = arguments;
    KilnRegion region{to, kPressureBlocks * kThreads * 4, "x", 1};
    what.regions = &region;
    what.region_count = what.check_memory = 1;
    return engine->launch(&what);
  }
  static std::vector<uint32_t> wanted() {
    std::vector<uint32_t> out(kPressureBlocks * kThreads);
    std::iota(out.begin(), out.end(), 0u);
    return out;
  }
  static std::vector<uint32_t> nothing() {
    return std::vector<uint32_t>(kPressureBlocks * kThreads, ~0u);
  }

  const KilnEngine* engine = kiln_engine(KILN_ENGINE_ABI_VERSION);
  Fatbin fatbin{kPressureText};
  int key = 0;
};

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSteps = 8;  // launches are slow there
#else
constexpr uint64_t kSteps = 64;
#endif

// A step through the allocations of a library's first launch, more of them where they are many:
// each fails once, alone or with all that follow.
TEST_F(Pressure, AnOpWithoutMemoryFailsAndTheNextOneRuns) {
  for (bool all_after : {false, true}) {
    uint64_t first = 0, refused = 0;
    for (bool missed = false; !missed; first += 1 + first / kSteps) {
      auto out = nothing();
      NoMemory scarce(first, all_after);
      void* image = load();
      const int code = launch(out.data(), 0);
      missed = !scarce.happened();
      scarce.lift();
      if (code == 0) {
        ASSERT_EQ(out, wanted()) << "allocation " << first;
      } else {
        ++refused;
        ASSERT_STRNE(engine->last_message(), "");
      }
      registrations_lost = false;
      if (image) engine->unregister_image(image);
      image = load();
      out = nothing();
      ASSERT_EQ(launch(out.data(), 0), 0)
          << engine->last_message() << " after allocation " << first;
      ASSERT_EQ(out, wanted());
      engine->unregister_image(image);
    }
    EXPECT_GT(refused, 20u);
  }
}

// The same of a program, whose launches report nothing themselves: then all calls that wait do.
TEST_F(Pressure, AProgramsLaunchWithoutMemoryIsReportedByEveryCallThatWaits) {
  void* image = load();
  uint32_t* device = nullptr;
  ASSERT_EQ(call<int(void**, size_t)>("cudaMalloc", reinterpret_cast<void**>(&device),
                                      kPressureBlocks * kThreads * 4),
            0);
  uint64_t first = 0, reported = 0;
  for (bool missed = false; !missed; ++first) {
    auto out = nothing();
    NoMemory scarce(first, true);
    const int code = launch(device, KILN_LAUNCH_DEFERRED);
    missed = !scarce.happened();
    scarce.lift();
    const int waited = call<int()>("cudaDeviceSynchronize");
    const int copied = call<int(void*, const void*, size_t, int)>("cudaMemcpy", out.data(), device,
                                                                  out.size() * 4, 2);
    if (code || waited) {
      ++reported;
      ASSERT_NE(copied, 0) << "allocation " << first;
      ASSERT_EQ(call<int()>("cudaGetLastError"), copied);
      ASSERT_EQ(call<int(void*)>("cudaStreamSynchronize", nullptr), copied);
      ASSERT_EQ(call<int()>("cudaDeviceReset"), 0);
    } else {
      ASSERT_EQ(copied, 0);
      ASSERT_EQ(out, wanted()) << "allocation " << first;
    }
    call<int()>("cudaGetLastError");
  }
  EXPECT_GT(reported, 0u);
  EXPECT_EQ(call<int(void*)>("cudaFree", device), 0);
  engine->unregister_image(image);
}

TEST_F(Pressure, RegistrationWithoutMemoryIsAnErrorOfTheLaunch) {
  auto out = nothing();
  void* image = nullptr;
  {
    NoMemory scarce(0, true);
    image = engine->register_image(&fatbin.wrapper);
    engine->register_function(image, &key, "number");
    engine->register_variable(image, &key, "offset", 4, 0);
    engine->unregister_image(image);
  }
  EXPECT_EQ(launch(out.data(), 0), kMemoryAllocation);
  EXPECT_THAT(engine->last_message(), testing::HasSubstr("registered"));
  registrations_lost = false;
}

TEST(Threads, FewerServeWhereMoreCannotBeHad) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mad.wide.s32 %rd3, %r4, 4, %rd1;
    st.global.u32 [%rd3], %r4;
  )"));
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  setenv("KILN_ENGINE_THREADS", "64", 1);
  const int64_t refused = NoThreads::refused();
  for (int64_t threads : {0, 0, 1, 3}) {
    NoThreads scarce(threads);
    for (int i = 0; i < 70; ++i) {  // more than lie between two tries
      std::vector<uint32_t> out(100 * 96, ~0u), wanted(out.size());
      std::iota(wanted.begin(), wanted.end(), 0u);
      session.regions.clear();
      LaunchOutcome outcome =
          session.launch("k", {{100, 1, 1}, {96, 1, 1}}, session.allow(out, "out"));
      ASSERT_EQ(outcome.code, 0) << outcome.text;
      ASSERT_EQ(out, wanted);
    }
  }
  unsetenv("KILN_ENGINE_THREADS");
  EXPECT_GT(NoThreads::refused(), refused) << "the test took no thread away";
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << "signal " << signal;
  }
}

// What one launch has freed, another that runs may still touch.
TEST(Heap, MemoryStaysUntilEveryLaunchHasEndedThatBeganBefore) {
  Heap heap;
  void* early = heap.allocate(64, AllocationKind::Device);
  void* late = heap.allocate(64, AllocationKind::Device);
  RunningLaunch first(heap);
  RunningLaunch second(heap);
  EXPECT_TRUE(heap.release(early));
  EXPECT_FALSE(heap.release(early));
  EXPECT_FALSE(heap.find(reinterpret_cast<uint64_t>(early)));
  RunningLaunch third(heap);
  EXPECT_TRUE(heap.release(late));
  second.end();
  EXPECT_EQ(heap.retired_count(), 2u);
  first.end();
  EXPECT_EQ(heap.retired_count(), 1u) << "the third has never seen the first of them";
  third.end();
  EXPECT_EQ(heap.retired_count(), 0u);
}

TEST(Heap, AllocationsOfACheckedProcessAreFarApart) {
  Heap heap;
  heap.set_quarantine(1 << 20);
  std::vector<uint64_t> begins;
  for (int i = 0; i < 20; ++i)
    begins.push_back(reinterpret_cast<uint64_t>(heap.allocate(4096, AllocationKind::Device)));
  std::sort(begins.begin(), begins.end());
  for (size_t i = 1; i < begins.size(); ++i) EXPECT_GE(begins[i] - begins[i - 1], 4u << 20);
  heap.set_quarantine(0);  // freed at once, for the leak checker
  for (uint64_t begin : begins) EXPECT_TRUE(heap.release(reinterpret_cast<void*>(begin)));
}

// Does the system note that the mapping around this address wants large pages?
bool wants_large_pages(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin <= address && address < end;
    else if (inside && line.starts_with("VmFlags:"))
      return line.find(" hg") != line.npos;
  }
  return false;
}

TEST(Heap, LargeAllocationsAskForLargePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no large pages";
  Heap heap;
  void* const large = heap.allocate(64 << 20, AllocationKind::Device);
  ASSERT_TRUE(large);
  EXPECT_TRUE(wants_large_pages(large));
  EXPECT_TRUE(heap.release(large));
}

TEST(Heap, MoreLaunchesThanSlotsKeepTheirMemory) {
  Heap heap;
  std::vector<std::unique_ptr<RunningLaunch>> running;
  for (int i = 0; i < 100; ++i) running.push_back(std::make_unique<RunningLaunch>(heap));
  void* memory = heap.allocate(64, AllocationKind::Device);
  running.push_back(std::make_unique<RunningLaunch>(heap));
  EXPECT_EQ(running.back()->regions().size(), 1u);
  EXPECT_EQ(running.front()->regions().size(), 0u);
  EXPECT_TRUE(heap.release(memory));
  for (size_t i = 0; i + 1 < running.size(); ++i) running[i]->end();
  EXPECT_EQ(heap.retired_count(), 1u);
  running.back()->end();
  EXPECT_EQ(heap.retired_count(), 0u);
}

TEST(Heap, TwoThreadsAllocateFreeAndLaunch) {
  Heap heap;
  auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      RunningLaunch running(heap);
      auto* memory = static_cast<char*>(heap.allocate(64, AllocationKind::Device, "x"));
      EXPECT_LE(running.regions().size(), 1u) << "the other thread's, at most";
      EXPECT_TRUE(heap.release(memory));
      std::memset(memory, i, 64);  // the launch still may
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(heap.retired_count(), 0u);
  EXPECT_EQ(heap.bytes_in_use(), 0u);
}

// A function of the program in a stream: on a GPU another thread calls it, so nobody can catch what
// it throws.
TEST_F(Pressure, WhatAHostFunctionThrowsIsAFaultOfTheDevice) {
  using HostFunction = void (*)(void*);
  for (HostFunction thrower : {HostFunction([](void*) { throw std::runtime_error("no luck"); }),
                               HostFunction([](void*) { throw 42; })}) {
    EXPECT_EQ(
        (call<int(void*, HostFunction, void*)>("cudaLaunchHostFunc", nullptr, thrower, nullptr)),
        0);
    EXPECT_EQ(call<int()>("cudaDeviceSynchronize"), kUnknown);
    EXPECT_EQ(call<int(void*)>("cudaStreamSynchronize", nullptr), kUnknown);
    EXPECT_EQ(call<int()>("cudaDeviceReset"), 0);
    EXPECT_EQ(call<int()>("cudaDeviceSynchronize"), 0);
  }
}

}  // namespace
}  // namespace kiln::engine
