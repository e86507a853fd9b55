// SPDX-License-Identifier: Apache-2.0
// Do launches reach a real libcudart as nvcc's own code would bring them there? Against the fake
// one, with KILN_DEVICE=cuda.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cudart.h"
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
int __cudaGetKernel(const void**, const void*);
int __cudaLaunchKernel(const void*, Dim, Dim, void**, size_t, void*);
int cudaLaunchKernel(const void*, Dim, Dim, void**, size_t, void*);
int cudaMalloc(void**, size_t);
int cudaStreamBeginCapture(void*, int);
int cublasCreate_v2(void**);
int cusparseCreate(void**);
}

namespace {

using testing::HasSubstr;

char g_stub[2], g_wrapper;

CudartLog& cudart_log() {
  static CudartLog* const log = [] {
    void* handle = dlopen(getenv("KILN_CUDART"), RTLD_NOW);
    return reinterpret_cast<CudartLog* (*)()>(dlsym(handle, "fake_cudart_log"))();
  }();
  return *log;
}

__attribute__((constructor)) void register_kernel() {
  void** handle = __cudaRegisterFatBinary(&g_wrapper);
  __cudaRegisterFunction(handle, g_stub, nullptr, "_Z4kernPi", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);
}

int launch_as_a_stub(int value) {
  static const void* kernel = nullptr;
  if (!kernel) {
    EXPECT_EQ(__cudaGetKernel(&kernel, g_stub), 0);
  }
  void* arguments[] = {&value};
  return __cudaLaunchKernel(kernel, {5, 6, 1}, {64, 1, 1}, arguments, 96, nullptr);
}

void launches(const kiln::Tensor&) { launch_as_a_stub(7); }
KILN_OP(launches, "x");

void wants_much(const kiln::Tensor&, int64_t bytes) {
  int value = 3;
  void* arguments[] = {&value};
  kiln::Launch how;
  how.block = 32;
  how.shared_bytes = bytes;
  kiln::detail::launch(g_stub, how, arguments);
}
KILN_OP(wants_much, "x, bytes");

kiln::Tensor makes(const kiln::Tensor& x) {
  return kiln::empty({16}, kiln::Dtype::f32, x.device());
}
KILN_OP(makes, "x");

int call(uint32_t op, int64_t number, KilnValue* results = nullptr) {
  int64_t size = 4, stride = 1;
  KilnTensor tensor{&size, &size, &stride, 1, KILN_F32, KILN_DEVICE_CUDA, 0, nullptr, nullptr};
  KilnValue arguments[2] = {};
  arguments[0].type = KILN_TYPE_TENSOR;
  arguments[0].as.tensor = &tensor;
  arguments[1].type = KILN_TYPE_INT;
  arguments[1].as.i = number;
  return kiln_library()->call(op, arguments, kiln_library()->ops[op].parameter_count, results);
}

TEST(Real, NothingIsRegisteredWhileLoading) {
  EXPECT_EQ(cudart_log().images, 0);
  EXPECT_EQ(launch_as_a_stub(1), 0);
  EXPECT_EQ(cudart_log().images, 1);
  EXPECT_EQ(cudart_log().functions, 1);
  EXPECT_EQ(cudart_log().ends, 1);
  EXPECT_STREQ(cudart_log().function, "_Z4kernPi");
}

TEST(Real, AStubLaunchesByTheHandleThatIsAskedForOnce) {
  const int before = cudart_log().launches;
  EXPECT_EQ(launch_as_a_stub(42), 0);
  EXPECT_EQ(launch_as_a_stub(43), 0);
  EXPECT_EQ(cudart_log().launches, before + 2);
  EXPECT_EQ(cudart_log().lookups, 1);
  EXPECT_EQ(cudart_log().kernel, g_stub + 1);
  EXPECT_EQ(cudart_log().argument, 43);
  EXPECT_EQ(cudart_log().grid[1], 6u);
  EXPECT_EQ(cudart_log().block[0], 64u);
  EXPECT_EQ(cudart_log().shared, 96u);
}

TEST(Real, LaunchByTheHostsAddress) {
  int value = 9;
  void* arguments[] = {&value};
  EXPECT_EQ(cudaLaunchKernel(g_stub, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr), 0);
  EXPECT_EQ(cudart_log().launches_by_host, 1);
  EXPECT_EQ(cudart_log().kernel, g_stub);
}

TEST(Real, AnUnknownKernelIsRefused) {
  const void* kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &kernel), 98);
}

TEST(Real, AFailedLaunchIsRaisedAndCleared) {
  cudart_log().next_error = 9;
  const int reads = cudart_log().last_error_reads;
  EXPECT_EQ(call(0, 0), 1);
  cudart_log().next_error = 0;
  EXPECT_THAT(kiln_library()->last_error(),
              HasSubstr("cannot launch _Z4kernPi<<<(5, 6, 1), (64, 1, 1), 96>>>"));
  EXPECT_THAT(kiln_library()->last_error(), HasSubstr("cudaErrorFake (9): as the test wished"));
  EXPECT_EQ(cudart_log().last_error_reads, reads + 1);
  EXPECT_EQ(call(0, 0), 0) << kiln_library()->last_error();
}

TEST(Real, ALimitOfSharedMemoryIsRaisedOrRefused) {
  EXPECT_EQ(call(1, 100 * 1024), 0) << kiln_library()->last_error();
  EXPECT_EQ(cudart_log().attribute_value, 100 * 1024);
  const int reads = cudart_log().last_error_reads;
  EXPECT_EQ(call(1, 1 << 20), 1);
  EXPECT_THAT(kiln_library()->last_error(), HasSubstr("1048576 bytes of shared memory"));
  EXPECT_EQ(cudart_log().last_error_reads,
            reads + 1);  // else the next call of anybody would report it
}

TEST(Real, AResultIsFreedInTheOrderOfTheStreamItWasMadeOn) {
  int first = 0, second = 0;  // their addresses stand for streams
  KilnValue made{};
  kiln_library()->use_stream(&first);
  ASSERT_EQ(call(2, 0, &made), 0) << kiln_library()->last_error();
  EXPECT_EQ(cudart_log().malloc_stream, &first);
  kiln_library()->use_stream(&second);
  const int frees = cudart_log().frees;
  made.as.tensor->release(made.as.tensor);
  kiln_library()->use_stream(nullptr);
  EXPECT_EQ(cudart_log().frees, frees + 1);
  EXPECT_EQ(cudart_log().free_stream, &first) << "work on it may still use the memory";
  EXPECT_EQ(cudart_log().event_stream, &second) << "so may work of the thread's new stream";
  EXPECT_EQ(cudart_log().waiting_stream, &first);
  EXPECT_EQ(cudart_log().events, 0);
}

TEST(Real, RuntimeCallsGoThroughTheTrampolines) {
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 77), 0);
  EXPECT_EQ(cudart_log().malloc_bytes, 77u);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, 0), 801);  // the fake has none
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is of version 13"));
}

// tests/unit/runtime/fake_cublas.cpp
TEST(Real, ALibraryIsOpenedByItsOwnFunction) {
  for (int i = 0; i < 2; i++) {
    void* handle = nullptr;
    EXPECT_EQ(cublasCreate_v2(&handle), 0);
    EXPECT_EQ(handle, reinterpret_cast<void*>(uintptr_t{0xb1a5}));
  }
}

TEST(Real, ALibraryThatIsNotThereIsNamed) {
  if (dlopen("libcusparse.so.13", RTLD_NOW) || dlopen("libcusparse.so.12", RTLD_NOW))
    GTEST_SKIP() << "the loader finds cuSPARSE";
  void* handle = &g_wrapper;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cusparseCreate(&handle), 1);
  EXPECT_EQ(handle, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no libcusparse.so"));
}

}  // namespace
