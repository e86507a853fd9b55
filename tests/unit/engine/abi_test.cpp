// SPDX-License-Identifier: Apache-2.0
// Does the engine serve an op library through its C interface alone?
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/device_properties.h"
#include "fatbin.h"
#include "kiln/engine_abi.h"

extern "C" const KilnEngine* kiln_engine(uint32_t);

namespace {

using testing::HasSubstr;

const char* const kAbiText = R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry twice(.param .u64 p, .param .u32 n)
{
  .reg .b64 %rd<4>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p bra END;
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  ld.global.u32 %r3, [%rd2];
  add.u32 %r3, %r3, %r3;
  st.global.u32 [%rd2], %r3;
  END: ret;
}
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

class Abi : public testing::Test {
 protected:
  Abi() : fatbin(kAbiText), image(engine->register_image(&fatbin.wrapper)) {
    engine->register_function(image, &key, "twice");
    engine->register_function(image, &count_key, "count");
    engine->register_function(image, &missing_key, "thrice");
    engine->register_variable(image, &variable_key, "counter", 4, 0);
  }
  ~Abi() override { engine->unregister_image(image); }

  int launch(const void* function, uint32_t* data, uint32_t n, uint32_t known, uint32_t check = 1) {
    void* arguments[] = {&data, &n};
    KilnRegion region{data, uint64_t{known} * 4, "x", 1};
    KilnEngineLaunch what{};
    what.struct_bytes = sizeof what;
    what.host_function = function;
    what.grid = {1, 1, 1};
    what.block = {64, 1, 1};
    what.arguments = arguments;
    what.regions = &region;
    what.region_count = check;
    what.check_memory = check;
    return engine->launch(&what);
  }
  template <class Function>
  Function* runtime(const char* name) {
    void* found = engine->runtime_function(name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function*>(found);
  }

  const KilnEngine* engine = kiln_engine(KILN_ENGINE_ABI_VERSION);
  Fatbin fatbin;
  void* image;
  int key = 0, count_key = 0, missing_key = 0, variable_key = 0;
};

TEST(AbiVersion, OtherVersionsAreRefused) {
  EXPECT_EQ(kiln_engine(KILN_ENGINE_ABI_VERSION + 1), nullptr);
}

TEST_F(Abi, LaunchRunsToItsEnd) {
  std::vector<uint32_t> data{1, 2, 3};
  EXPECT_EQ(launch(&key, data.data(), 3, 3), 0) << engine->last_message();
  EXPECT_EQ(data, (std::vector<uint32_t>{2, 4, 6}));
}

TEST_F(Abi, FaultComesBackWithItsText) {
  std::vector<uint32_t> data(8, 1);
  EXPECT_EQ(launch(&key, data.data(), 8, 5), 700);
  EXPECT_THAT(engine->last_message(), HasSubstr("tensor 'x'"));
  EXPECT_EQ(launch(&key, data.data(), 5, 5), 0) << "the engine goes on after a fault";
}

TEST_F(Abi, WithoutAListEveryMappedAddressIsAllowedAndNothingElse) {
  std::vector<uint32_t> data(4, 1);
  EXPECT_EQ(launch(&key, data.data(), 4, 0, 0), 0) << engine->last_message();
  EXPECT_EQ(data[3], 2u);
  EXPECT_EQ(launch(&key, reinterpret_cast<uint32_t*>(8), 4, 0, 0), 700);
}

TEST_F(Abi, UnknownKernels) {
  uint32_t data = 0;
  EXPECT_EQ(launch(&missing_key, &data, 1, 1), 98);
  EXPECT_THAT(engine->last_message(), HasSubstr("thrice"));
  int stranger = 0;
  EXPECT_EQ(launch(&stranger, &data, 1, 1), 98);
}

TEST_F(Abi, DamagedImagesAreToldAtLaunch) {
  Fatbin damaged(kAbiText);
  damaged.container[8] = std::byte{0xff};
  damaged.container[13] = std::byte{0xff};
  void* other = engine->register_image(&damaged.wrapper);
  int other_key = 0;
  engine->register_function(other, &other_key, "twice");
  uint32_t data = 0;
  EXPECT_EQ(launch(&other_key, &data, 1, 1), 200);
  engine->unregister_image(other);
}

TEST_F(Abi, RuntimeMemoryAndSymbols) {
  auto* malloc_function = runtime<int(void**, size_t)>("cudaMalloc");
  auto* copy = runtime<int(void*, const void*, size_t, int)>("cudaMemcpy");
  auto* free_function = runtime<int(void*)>("cudaFree");
  void* device = nullptr;
  ASSERT_EQ(malloc_function(&device, 12), 0);
  uint32_t host[3] = {1, 2, 3};
  EXPECT_EQ(copy(device, host, 12, 1), 0);
  EXPECT_EQ(launch(&key, static_cast<uint32_t*>(device), 3, 0), 0) << engine->last_message();
  EXPECT_EQ(copy(host, device, 12, 2), 0);
  EXPECT_EQ(host[2], 6u);
  EXPECT_EQ(copy(device, host, 13, 1), 1) << "one byte too many";
  EXPECT_EQ(free_function(device), 0);
  EXPECT_EQ(free_function(device), 1) << "freed twice";
  uint32_t value = 0;
  EXPECT_EQ(runtime<int(void*, const void*, size_t, size_t, int)>("cudaMemcpyFromSymbol")(
                &value, &variable_key, 4, 0, 2),
            0);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(runtime<int(void*, const void*, size_t, size_t, int)>("cudaMemcpyFromSymbol")(
                &value, &variable_key, 4, 1, 2),
            1);
}

TEST_F(Abi, LastErrorIsKeptUntilRead) {
  auto* last = runtime<int()>("cudaGetLastError");
  auto* peek = runtime<int()>("cudaPeekAtLastError");
  last();
  runtime<int(int)>("cudaSetDevice")(3);
  EXPECT_EQ(peek(), 101);
  EXPECT_EQ(last(), 101);
  EXPECT_EQ(last(), 0);
  EXPECT_STREQ(runtime<const char*(int)>("cudaGetErrorName")(700), "cudaErrorIllegalAddress");
}

TEST_F(Abi, StreamsAndEvents) {
  void *stream = nullptr, *start = nullptr, *stop = nullptr;
  EXPECT_EQ(runtime<int(void**)>("cudaStreamCreate")(&stream), 0);
  EXPECT_EQ(runtime<int(void**)>("cudaEventCreate")(&start), 0);
  EXPECT_EQ(runtime<int(void**)>("cudaEventCreate")(&stop), 0);
  EXPECT_EQ(runtime<int(void*, void*)>("cudaEventRecord")(start, stream), 0);
  usleep(2000);
  EXPECT_EQ(runtime<int(void*, void*)>("cudaEventRecord")(stop, stream), 0);
  float milliseconds = 0;
  EXPECT_EQ(runtime<int(float*, void*, void*)>("cudaEventElapsedTime")(&milliseconds, start, stop),
            0);
  EXPECT_GE(milliseconds, 1.9f);
  EXPECT_EQ(runtime<int(void*)>("cudaStreamDestroy")(stream), 0);
  EXPECT_EQ(runtime<int(void*)>("cudaStreamSynchronize")(stream), 400) << "a dead handle";
  runtime<int(void*)>("cudaEventDestroy")(start);
  runtime<int(void*)>("cudaEventDestroy")(stop);
}

TEST_F(Abi, UnknownRuntimeFunctionIsNull) {
  EXPECT_EQ(engine->runtime_function("cudaFrobnicate"), nullptr);
}

TEST_F(Abi, WorksInTheChildOfAFork) {
  std::vector<uint32_t> data(64 * 512, 1);
  auto run_many = [&] {
    uint32_t* p = data.data();
    void* arguments[] = {&p};
    KilnRegion region{data.data(), data.size() * 4, "x", 1};
    KilnEngineLaunch what{};
    what.host_function = &count_key;
    what.grid = {512, 1, 1};
    what.block = {64, 1, 1};
    what.arguments = arguments;
    what.regions = &region;
    what.region_count = what.check_memory = 1;
    return engine->launch(&what);
  };
  ASSERT_EQ(run_many(), 0);  // the pool is there
  pid_t child = fork();
  if (child == 0) _exit(run_many() == 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Abi, LaunchesFromSeveralThreads) {
  std::vector<std::vector<uint32_t>> data(4, std::vector<uint32_t>(64, 1));
  std::vector<std::thread> threads;
  std::vector<int> codes(4, -1);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) codes[t] = launch(&key, data[t].data(), 64, 64);
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(codes[t], 0);
    EXPECT_EQ(data[t][63], 256u);
  }
}

}  // namespace
