// SPDX-License-Identifier: Apache-2.0
// Does kiln/op.h compile under NVRTC, where there is no host and no standard header? Asked of the
// real NVRTC, where it is installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

const char* const kKernel = R"(
#include <kiln/op.h>
template <class T>
__global__ void add(kiln::View<const T, 2> a, kiln::View<T, 2> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i, 1) = a(i, 0) + T(1);
}
template __global__ void add<float>(kiln::View<const float, 2>, kiln::View<float, 2>);
)";

TEST(Nvrtc, CompilesTheAuthorsHeader) {
  void* nvrtc = nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"})
    if (!nvrtc) nvrtc = dlopen(name, RTLD_NOW);
  if (!nvrtc) GTEST_SKIP() << "no libnvrtc on this machine";
  const auto function = [&](const char* name) { return dlsym(nvrtc, name); };
  const auto create =
      reinterpret_cast<int (*)(void**, const char*, const char*, int, const char**, const char**)>(
          function("nvrtcCreateProgram"));
  const auto compile =
      reinterpret_cast<int (*)(void*, int, const char**)>(function("nvrtcCompileProgram"));
  const auto log_size =
      reinterpret_cast<int (*)(void*, size_t*)>(function("nvrtcGetProgramLogSize"));
  const auto log = reinterpret_cast<int (*)(void*, char*)>(function("nvrtcGetProgramLog"));
  const auto ptx_size = reinterpret_cast<int (*)(void*, size_t*)>(function("nvrtcGetPTXSize"));
  const auto ptx = reinterpret_cast<int (*)(void*, char*)>(function("nvrtcGetPTX"));

  void* program = nullptr;
  ASSERT_EQ(create(&program, kKernel, "kernel.cu", 0, nullptr, nullptr), 0);
  const char* options[] = {"-I" KILN_RUNTIME_INCLUDE, "-arch=compute_80", "-std=c++17"};
  const int code = compile(program, 3, options);
  size_t size = 0;
  log_size(program, &size);
  std::string text(size, 0);
  log(program, text.data());
  ASSERT_EQ(code, 0) << text;
  ptx_size(program, &size);
  std::string result(size, 0);
  ptx(program, result.data());
  // The code that the engine reads as a check of an index.
  EXPECT_NE(result.find("setp.ge.u64 kiln_bounds_1, "), std::string::npos) << result;
}

}  // namespace
