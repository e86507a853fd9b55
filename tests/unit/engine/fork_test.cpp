// SPDX-License-Identifier: Apache-2.0
// Can the child of a fork use the engine, whatever the other threads of its parent were doing?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "fatbin.h"
#include "kiln/engine_abi.h"

extern "C" const KilnEngine* kiln_engine(uint32_t);

namespace {

const char* const kForkText = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 p)
{
  .reg .b64 %rd<4>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mad.wide.u32 %rd2, %r4, 4, %rd1;
  st.global.u32 [%rd2], %r4;
  ret;
}
)";
constexpr uint32_t kBlocks = 24, kThreads = 64, kBytes = kBlocks * kThreads * 4;

template <class Signature, class... Arguments>
int call(const char* name, Arguments... arguments) {
  const KilnEngine* engine = kiln_engine(KILN_ENGINE_ABI_VERSION);
  return reinterpret_cast<Signature*>(engine->runtime_function(name))(arguments...);
}

// All that a program does, from loading a library on: memory, streams, events, arrays, a launch, an
// error.
bool use_everything() {
  const KilnEngine* engine = kiln_engine(KILN_ENGINE_ABI_VERSION);
  Fatbin fatbin(kForkText);
  int key = 0;
  void* image = engine->register_image(&fatbin.wrapper);
  engine->register_function(image, &key, "count");
  void *device = nullptr, *stream = nullptr, *event = nullptr, *pool = nullptr;
  bool good = call<int(void**, size_t)>("cudaMalloc", &device, kBytes) == 0;
  good &= call<int(void**)>("cudaStreamCreate", &stream) == 0;
  good &= call<int(void**)>("cudaEventCreate", &event) == 0;
  good &= call<int(void**, int)>("cudaDeviceGetDefaultMemPool", &pool, 0) == 0;
  void* arguments[] = {&device};
  KilnEngineLaunch what{};
  what.flags = KILN_LAUNCH_DEFERRED;
  what.host_function = &key;
  what.grid = {kBlocks, 1, 1};
  what.block = {kThreads, 1, 1};
  what.arguments = arguments;
  what.stream = stream;
  what.check_memory = 1;
  good &= engine->launch(&what) == 0;
  good &= call<int(void*, void*)>("cudaEventRecord", event, stream) == 0;
  std::vector<uint32_t> out(kBlocks * kThreads), wanted(out.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  good &=
      call<int(void*, const void*, size_t, int)>("cudaMemcpy", out.data(), device, kBytes, 2) == 0;
  good &= out == wanted;
  good &= call<int(void*)>("cudaFreeArray", &key) != 0;
  good &= call<int()>("cudaGetLastError") != 0;
  good &= call<int(void*)>("cudaEventDestroy", event) == 0;
  good &= call<int(void*)>("cudaStreamDestroy", stream) == 0;
  good &= call<int(void*)>("cudaFree", device) == 0;
  engine->unregister_image(image);
  return good;
}

TEST(Fork, ChildrenUseTheEngineWhileOtherThreadsDo) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "ASan's allocator of GCC 12 holds its locks across a fork: a child waits for "
                  "them for ever";
#endif
  setenv("KILN_ENGINE_THREADS", "3", 1);
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) bad += !use_everything();
    });
  }
  constexpr int kForks = 200;
  int failed = 0;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // a child that waits for ever is ended and seen
      _exit(use_everything() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    failed += status != 0;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  unsetenv("KILN_ENGINE_THREADS");
  EXPECT_EQ(failed, 0) << "of " << kForks << " children";
  EXPECT_EQ(bad, 0);
}

}  // namespace
