// SPDX-License-Identifier: Apache-2.0
// Is everything that torch hands to an op deleted, also when an argument in the middle is refused?
// Against a fake libtorch that counts.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "fake_torch.h"
#include "kiln/abi.h"
#include "kiln/op.h"

extern "C" const KilnLibrary* kiln_library(void);

namespace ops {

int64_t g_calls = 0;

kiln::Tensor mixed(const kiln::Tensor& a, kiln::Optional<kiln::Tensor> b, kiln::TensorList c,
                   kiln::Str d, kiln::Span<const int64_t> e, kiln::Optional<kiln::Str> f,
                   const kiln::Tensor& g) {
  g_calls += static_cast<int64_t>(a.numel() + g.numel() +
                                  static_cast<int64_t>(c.size() + d.size() + e.size())) +
             b.has_value() + f.has_value();
  return kiln::empty_like(a);
}
KILN_OP(mixed, "a, b, c, d, e, f, g");

// More than fit on the stack.
int64_t many(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h,
             int64_t i, int64_t j, int64_t k, int64_t l, int64_t m, const kiln::Tensor& n) {
  return a + b + c + d + e + f + g + h + i + j + k + l + 100 * m + n.numel();
}
KILN_OP(many, "a, b, c, d, e, f, g, h, i, j, k, l, m, n");

}  // namespace ops

namespace {

FakeTorch& torch() {
  static FakeTorch* const the = [] {
    void* handle = dlopen(KILN_FAKE_TORCH, RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    auto* found = reinterpret_cast<FakeTorch* (*)()>(dlsym(handle, "fake_torch"))();
    EXPECT_EQ(kiln_library()->register_torch(), 0) << kiln_library()->last_error();
    return found;
  }();
  return *the;
}

uint64_t raw(void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
uint64_t boxed_in_optional(uint64_t value) { return raw(new uint64_t(value)); }

// The tensors of mixed's arguments by number: a, b, c[0], c[1], g.
std::vector<uint64_t> arguments_of_mixed(int refusing) {
  const auto tensor = [&](int number) { return raw(torch().new_tensor(number == refusing)); };
  const uint64_t pair[] = {tensor(2), tensor(3)}, numbers[] = {7, 8, 9};
  return {tensor(0),
          boxed_in_optional(tensor(1)),
          raw(torch().new_list(pair, 2)),
          raw(torch().new_string("text")),
          raw(torch().new_list(numbers, 3)),
          boxed_in_optional(raw(torch().new_string("more"))),
          tensor(4)};
}

TEST(Torch, ACallDeletesItsArguments) {
  std::vector<uint64_t> stack = arguments_of_mixed(-1);
  torch().log.boxed[0](stack.data(), stack.size(), 1);
  EXPECT_EQ(ops::g_calls, 4 + 4 + 2 + 4 + 3 + 2);
  EXPECT_EQ(torch().log.tensors, 1) << "the result";
  torch().delete_tensor(reinterpret_cast<void*>(stack[0]));
  EXPECT_EQ(torch().log.tensors, 0);
  EXPECT_EQ(torch().log.lists, 0);
  EXPECT_EQ(torch().log.strings, 0);
}

TEST(Torch, ARefusedArgumentLeavesNothingBehind) {
  for (int refusing = 0; refusing < 5; refusing++) {
    std::vector<uint64_t> stack = arguments_of_mixed(refusing);
    EXPECT_THROW(torch().log.boxed[0](stack.data(), stack.size(), 1), std::exception) << refusing;
    EXPECT_EQ(torch().log.tensors, 0) << refusing;
    EXPECT_EQ(torch().log.lists, 0) << refusing;
    EXPECT_EQ(torch().log.strings, 0) << refusing;
  }
}

TEST(Torch, ManyArguments) {
  std::vector<uint64_t> stack;
  for (uint64_t i = 0; i < 13; i++) stack.push_back(i);
  stack.push_back(raw(torch().new_tensor(false)));
  torch().log.boxed[1](stack.data(), stack.size(), 1);
  EXPECT_EQ(stack[0], 66u + 1200 + 4);
  EXPECT_EQ(torch().log.tensors, 0);
}

}  // namespace
