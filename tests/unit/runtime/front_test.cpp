// SPDX-License-Identifier: Apache-2.0
// Do launches and runtime calls reach the back end with what they were given? Against the fake
// engine, through the very symbols that nvcc leaves open in an object.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fake_engine.h"
#include "kiln/abi.h"
#include "kiln/op.h"

struct Dim {
  unsigned x, y, z;
};
extern "C" {
const KilnLibrary* kiln_library(void);
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(Dim, Dim, size_t, void*);
int __cudaPopCallConfiguration(Dim*, Dim*, size_t*, void*);
int __cudaGetKernel(const void**, const void*);
int __cudaLaunchKernel(const void*, Dim, Dim, void**, size_t, void*);
int cudaMalloc(void**, size_t);
int cudaStreamBeginCapture(void*, int);
int cublasCreate_v2(void**);
int cufftPlan1d(int*, int, int, int);
}

namespace {

using testing::HasSubstr;

int g_stub;       // its address stands for the host stub of a kernel
int g_wrapper;    // ... for the fat binary's wrapper
char g_variable;  // ... for a __device__ variable

FakeEngineLog& engine_log() {
  static FakeEngineLog* const log = [] {
    void* handle = dlopen(getenv("KILN_ENGINE"), RTLD_NOW);
    return reinterpret_cast<FakeEngineLog* (*)()>(dlsym(handle, "fake_engine_log"))();
  }();
  return *log;
}

// As nvcc's generated code does when a library is loaded.
__attribute__((constructor)) void register_kernel() {
  void** handle = __cudaRegisterFatBinary(&g_wrapper);
  __cudaRegisterFunction(handle, reinterpret_cast<char*>(&g_stub), nullptr, "_Z4kernPi", -1,
                         nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterVar(handle, &g_variable, &g_variable, "counter", 0, 24, 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
}

// What <<<7, 32, 128, 0>>>(42) compiles to.
int plain_launch(int value) {
  EXPECT_EQ(__cudaPushCallConfiguration({7, 1, 1}, {32, 2, 1}, 128, nullptr), 0u);
  Dim grid, block;
  size_t shared;
  void* stream;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
  const void* kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &g_stub), 0);
  void* arguments[] = {&value};
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

kiln::Tensor launches(const kiln::Tensor& a, kiln::Tensor& b) {
  kiln::Tensor out = kiln::empty({4}, kiln::Dtype::f64, a.device());
  plain_launch(static_cast<int>(b.numel()));
  return out;
}
KILN_OP(launches, "launches(Tensor a, Tensor(a!) b) -> Tensor");

void launches_more(const kiln::Tensor&) {
  int value = 5;
  void* arguments[] = {&value};
  kiln::Launch how;
  how.grid = {2, 3};
  how.block = 64;
  how.shared_bytes = 100 * 1024;
  how.cluster = {2};
  how.cooperative = true;
  kiln::detail::launch(&g_stub, how, arguments);
}
KILN_OP(launches_more, "a");

// What <<<...>>>(x.data<double>()) does to a tensor of f32: the launch has begun when its argument
// throws.
void throws_in_an_argument(const kiln::Tensor& a) {
  if (__cudaPushCallConfiguration({1, 1, 1}, {1, 1, 1}, 0, nullptr) == 0) a.data<const double>();
}
KILN_OP(throws_in_an_argument, "a");

// Most code ignores the status.
void opens_a_library(const kiln::Tensor&) {
  void* handle = nullptr;
  cublasCreate_v2(&handle);
}
KILN_OP(opens_a_library, "a");

struct Host {
  float data[12] = {};
  int64_t sizes[2] = {2, 3};
  int64_t strides[2] = {6, 2};
  KilnTensor tensor{data, sizes, strides, 2, KILN_F32, KILN_DEVICE_CPU, 0, nullptr, nullptr};
  KilnValue value() {
    KilnValue v{};
    v.type = KILN_TYPE_TENSOR;
    v.as.tensor = &tensor;
    return v;
  }
};

uint32_t op_named(const char* name) {
  uint32_t i = 0;
  while (strcmp(kiln_library()->ops[i].name, name)) i++;
  return i;
}

TEST(Front, LaunchReachesTheEngineWithItsTensors) {
  Host a, b;
  const KilnValue arguments[] = {a.value(), b.value()};
  KilnValue result;
  ASSERT_EQ(kiln_library()->call(op_named("launches"), arguments, 2, &result), 0)
      << kiln_library()->last_error();
  const FakeEngineLog& log = engine_log();
  EXPECT_EQ(log.images, 1);
  EXPECT_STREQ(log.function, "_Z4kernPi");
  EXPECT_STREQ(log.variable, "counter");
  EXPECT_EQ(log.variable_bytes, 24u);
  EXPECT_EQ(log.variable_flags, uint32_t{KILN_VARIABLE_CONSTANT});
  EXPECT_EQ(log.grid.x, 7u);
  EXPECT_EQ(log.block.y, 2u);
  EXPECT_EQ(log.shared, 128u);
  EXPECT_EQ(log.argument, 6);
  EXPECT_EQ(log.check_memory, 1u);
  ASSERT_EQ(log.region_count, 3u);  // newest first: the result, b, a
  EXPECT_EQ(log.regions[0].bytes, 4 * sizeof(double));
  EXPECT_STREQ(log.region_names[1], "b");
  EXPECT_EQ(log.regions[1].writable, 1u);
  EXPECT_STREQ(log.region_names[2], "a");
  EXPECT_EQ(log.regions[2].begin, a.data);
  EXPECT_EQ(log.regions[2].writable, 0u);
  EXPECT_EQ(log.regions[2].bytes,
            (6 + 4 + 1) * sizeof(float));  // from the first to the last element that strides reach
  result.as.tensor->release(result.as.tensor);
}

TEST(Front, LaunchErrorIsRaisedWhenTheOpReturns) {
  Host a, b;
  const KilnValue arguments[] = {a.value(), b.value()};
  KilnValue result;
  engine_log().next_error = 700;
  EXPECT_EQ(kiln_library()->call(op_named("launches"), arguments, 2, &result), 1);
  engine_log().next_error = 0;
  EXPECT_STREQ(kiln_library()->last_error(), "error: the fake engine was told to fail");
}

TEST(Front, ArgumentsThatThrowLoseNoLaterLaunch) {
  Host a, b;
  const KilnValue argument = a.value(), arguments[] = {a.value(), b.value()};
  for (int i = 0; i < 40; i++)
    ASSERT_EQ(kiln_library()->call(op_named("throws_in_an_argument"), &argument, 1, nullptr), 1)
        << i;
  KilnValue result;
  ASSERT_EQ(kiln_library()->call(op_named("launches"), arguments, 2, &result), 0)
      << kiln_library()->last_error();
  result.as.tensor->release(result.as.tensor);
}

TEST(Front, LaunchesWhoseArgumentsThrewDoNotHinderTheNext) {
  for (int i = 0; i < 40; i++)
    EXPECT_EQ(__cudaPushCallConfiguration({1, 1, 1}, {1, 1, 1}, 0, nullptr), 0u);
  EXPECT_EQ(__cudaPushCallConfiguration({7, 1, 1}, {9, 1, 1}, 0, nullptr), 0u);
  Dim grid, block;
  size_t shared;
  void* stream;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
  EXPECT_EQ(grid.x, 7u);
  EXPECT_EQ(block.x, 9u);
  for (int i = 0; i < 15; i++)
    EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 52);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a kernel was not launched"));
}

TEST(Front, KilnLaunchPassesWhatBracketsCannot) {
  Host a;
  const KilnValue argument = a.value();
  ASSERT_EQ(kiln_library()->call(op_named("launches_more"), &argument, 1, nullptr), 0)
      << kiln_library()->last_error();
  const FakeEngineLog& log = engine_log();
  EXPECT_EQ(log.grid.y, 3u);
  EXPECT_EQ(log.cluster.x, 2u);
  EXPECT_EQ(log.cluster.y, 1u);
  EXPECT_EQ(log.flags, uint32_t{KILN_LAUNCH_COOPERATIVE});
  EXPECT_EQ(log.attribute, 8);
  EXPECT_EQ(log.attribute_value, 100 * 1024);
}

TEST(Front, ProgramGetsTheCodeOfALaunch) {
  EXPECT_EQ(plain_launch(1), 0);
  EXPECT_EQ(engine_log().region_count, 0u);
  engine_log().next_error = 719;
  testing::internal::CaptureStderr();
  EXPECT_EQ(plain_launch(1), 719);
  engine_log().next_error = 0;
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("told to fail"));
}

TEST(Front, RuntimeCallsGoThroughTheTrampolines) {
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 12345), 0);
  EXPECT_EQ(engine_log().malloc_bytes, 12345u);
  EXPECT_EQ(data, &engine_log());
}

TEST(Front, NamesWhatTheEngineDoesNotHave) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, 0), 801);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("cudaStreamBeginCapture is not available"));
}

TEST(Front, AProgramGetsTheStatusOfALibraryThatCannotRunHere) {
  void* handle = &g_stub;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cublasCreate_v2(&handle), 1);
  EXPECT_EQ(handle, nullptr) << "the library's other functions refuse null";
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("error: cublasCreate_v2 is not available"));
  EXPECT_THAT(text, HasSubstr("cuBLAS runs on GPUs only"));
  int plan = 7;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cufftPlan1d(&plan, 16, 0x29, 1), 5);
  EXPECT_EQ(plan, 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cufftPlan1d is not available"));
}

TEST(Front, AnOpThatIgnoresTheStatusOfALibraryFails) {
  Host a;
  const KilnValue argument = a.value();
  EXPECT_NE(kiln_library()->call(op_named("opens_a_library"), &argument, 1, nullptr), 0);
  EXPECT_THAT(kiln_library()->last_error(), HasSubstr("cublasCreate_v2 is not available"));
}

TEST(Front, NestedConfigurationsComeBackInOrder) {
  EXPECT_EQ(__cudaPushCallConfiguration({1, 1, 1}, {2, 1, 1}, 0, nullptr), 0u);
  EXPECT_EQ(__cudaPushCallConfiguration({3, 1, 1}, {4, 1, 1}, 0, nullptr), 0u);
  Dim grid, block;
  size_t shared;
  void* stream;
  __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
  EXPECT_EQ(grid.x, 3u);
  __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
  EXPECT_EQ(grid.x, 1u);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 52);
}

}  // namespace
