// SPDX-License-Identifier: Apache-2.0
// Are .rz, .rm and .rp right, and 2 to the power of x? The reference is the FPU's own rounding of
// one number after the other, and the sum of one term after the other.
#include <fmt/format.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <random>

#include "engine/numbers/exponential.h"
#include "harness.h"

namespace kiln::engine {
namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Near each other, so that sums cancel and products reach the subnormal numbers; and any bits.
template <class T>
std::vector<T> operands(uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out(4096);
  for (size_t i = 0; i < out.size(); ++i) {
    const T plain = static_cast<T>(static_cast<int64_t>(random() % 4001) - 2000) / 64;
    const int far = sizeof(T) == 8 ? 530 : 66;
    out[i] = i % 4 == 0   ? std::bit_cast<T>(static_cast<BitsOf<T>>(random()))
             : i % 4 == 1 ? std::ldexp(plain, -far)
                          : plain + std::ldexp(plain, -static_cast<int>(random() % 30));
  }
  return out;
}

// volatile: computed when and as it is written here.
template <class T>
T rounded(const std::string& name, int rounding, T x, T y, T z) {
  volatile T a = x, b = y, c = z, one = 1, result = 0;
  std::fesetround(rounding);
  if (name == "add") result = a + b;
  if (name == "sub") result = a - b;
  if (name == "mul") result = a * b;
  if (name == "div") result = a / b;
  if (name == "rcp") result = one / a;
  if (name == "sqrt") result = std::sqrt(a);
  if (name == "fma") result = std::fma(a, b, c);
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T>
T flushed(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
}

template <class T>
void expect_rounded(const std::string& name, const char* how, int rounding, bool flushes) {
  const bool wide = sizeof(T) == 8;
  const std::string type = wide ? "f64" : "f32", x = wide ? "%fd" : "%f";
  const uint32_t count = name == "fma" ? 3 : name == "rcp" || name == "sqrt" ? 1 : 2;
  std::string instruction =
      fmt::format("{}.{}{}.{} {}4", name, how, flushes ? ".ftz" : "", type, x);
  for (uint32_t k = 1; k <= count; ++k) instruction += fmt::format(", {}{}", x, k);
  SCOPED_TRACE(instruction);
  Session session(kernel_text(
      "u64 a, u64 b, u64 c, u64 d",
      fmt::format("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];"
                  "ld.param.u64 %rd4, [d]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;"
                  "mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;"
                  "mul.wide.u32 %rd5, %r4, {1}; add.s64 %rd1, %rd1, %rd5;"
                  "add.s64 %rd2, %rd2, %rd5; add.s64 %rd3, %rd3, %rd5; add.s64 %rd4, %rd4, %rd5;"
                  "ld.global.{2} {0}1, [%rd1]; ld.global.{2} {0}2, [%rd2];"
                  "ld.global.{2} {0}3, [%rd3]; {3}; st.global.{2} [%rd4], {0}4;",
                  x, sizeof(T), type, instruction)));
  std::vector<T> a = operands<T>(1), b = operands<T>(2), c = operands<T>(3), d(a.size());
  // 4090 of them: the last warp has lanes that are not there.
  const LaunchOutcome outcome = session.launch(
      "k", {{10, 1, 1}, {409, 1, 1}}, session.allow(a, "a", false), session.allow(b, "b", false),
      session.allow(c, "c", false), session.allow(d, "d"));
  ASSERT_EQ(outcome.text, "");
  int wrong = 0;
  for (size_t i = 0; i < 4090 && wrong < 3; ++i) {
    const auto ready = [&](T value) { return flushes ? flushed(value) : value; };
    const T right = ready(rounded(name, rounding, ready(a[i]), ready(b[i]), ready(c[i])));
    const bool same = std::isnan(right)
                          ? std::isnan(d[i])
                          : std::bit_cast<BitsOf<T>>(right) == std::bit_cast<BitsOf<T>>(d[i]);
    if (same) continue;
    ADD_FAILURE() << fmt::format("of {}, {}, {}: {}, not {}", a[i], b[i], c[i], d[i], right);
    ++wrong;
  }
}

TEST(Rounded, AsTheFpuDoes) {
  for (const char* name : {"add", "sub", "mul", "div", "rcp", "sqrt", "fma"}) {
    const std::pair<const char*, int> hows[] = {
        {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
    for (const auto& [how, rounding] : hows) {
      expect_rounded<float>(name, how, rounding, false);
      expect_rounded<float>(name, how, rounding, true);
      expect_rounded<double>(name, how, rounding, false);
    }
  }
}

// One term after the other, each product and each sum rounded.
float plain_power_of_two(float a) {
  const double x = std::fmin(std::fmax(static_cast<double>(a), -200.0), 200.0);
  const double whole = std::nearbyint(x), r = x - whole;
  double sum = 0x1.b63880a30e9ffp-24;
  for (double term : {0x1.63d136366db24p-20, 0x1.ffcb9515a8016p-17, 0x1.4308ac85aa947p-13,
                      0x1.5d87fe86fe88ep-10, 0x1.3b2ab7181b755p-7, 0x1.c6b08d7047e52p-5,
                      0x1.ebfbdff823cedp-3, 0x1.62e42fefa39efp-1, 1.0}) {
    volatile double product = sum * r;
    sum = product + term;
  }
  return static_cast<float>(std::ldexp(sum, static_cast<int>(whole)));
}

TEST(PowerOfTwo, SumsInAnyOrder) {
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    const float a = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(a))
      ASSERT_TRUE(std::isnan(power_of_two(a)));
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(power_of_two(a)),
                std::bit_cast<uint32_t>(plain_power_of_two(a)))
          << a;
  }
}

}  // namespace
}  // namespace kiln::engine
