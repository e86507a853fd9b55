// SPDX-License-Identifier: Apache-2.0
// Are conversions between integers, f32, f64 and the floats of 16 bits right, in every direction of
// rounding and in registers that are wider than the type? The reference looks the neighbours of a
// number up in a table of all.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "engine/numbers/numeric.h"
#include "harness.h"

namespace kiln::engine {
namespace {

// Exact for every type that is read here: 64 bits of significand or more.
using Wide = long double;

bool is_float_type(const std::string& type) { return type.find('f') != std::string::npos; }
uint32_t width_of_type(const std::string& type) {
  return static_cast<uint32_t>(std::stoul(type.substr(type.find_first_of("1234568"))));
}

// Low bits first: what a narrower register reads. Of the small floats one in eight.
std::vector<uint64_t> inputs(const std::string& from) {
  std::mt19937_64 random(7);
  const bool is_small_float = from == "f16" || from == "bf16";
  std::vector<uint64_t> out(is_small_float ? 1 << 13 : 1 << 12);
  for (uint32_t i = 0; i < out.size(); ++i) {
    const uint64_t any = random(), few = (any | any << 17) & ~uint64_t{0} << random() % 60;
    if (is_small_float) {
      out[i] = (any & ~uint64_t{0xffff}) | (i * 8 + any % 8);
    } else if (from == "f32") {  // often where f16 has its numbers, often with few bits
      const uint32_t exponent = 95 + static_cast<uint32_t>(random() % 55);
      const auto some = static_cast<uint32_t>((few >> 32 & 0x807fffff) | exponent << 23);
      out[i] = i % 4 ? some : any >> 32;
    } else if (from == "f64") {
      const uint64_t exponent = 860 + random() % 300;
      out[i] = i % 4 ? (few & 0x800fffffffffffff) | exponent << 52 : any;
    } else {
      out[i] = i % 4 == 0 ? any : i % 4 == 1 ? few >> random() % 64 : (few >> random() % 64) - 1;
    }
  }
  return out;
}

Wide value_of(const std::string& type, uint64_t word) {
  if (type == "f64") return std::bit_cast<double>(word);
  if (type == "f32") return std::bit_cast<float>(static_cast<uint32_t>(word));
  if (type == "f16") return half_to_float(static_cast<uint16_t>(word));
  if (type == "bf16") return bf16_to_float(static_cast<uint16_t>(word));
  const uint32_t unused = 64 - width_of_type(type);
  if (type[0] == 'u') return static_cast<Wide>(word << unused >> unused);
  return static_cast<Wide>(static_cast<int64_t>(word << unused) >> unused);
}

// All numbers of the format from 0 on, and behind them the first that it does not have.
const std::vector<Wide>& numbers_of(const std::string& type) {
  static std::vector<Wide> of_half, of_bf16;
  std::vector<Wide>& numbers = type == "f16" ? of_half : of_bf16;
  for (uint16_t i = 0; numbers.empty() || !std::isinf(numbers.back()); ++i)
    numbers.push_back(value_of(type, i));
  return numbers;
}

uint64_t expected_float(const std::string& to, Wide value, char rounding) {
  if (std::isnan(value)) return 0x7fff;
  const std::vector<Wide>& numbers = numbers_of(to);
  const bool is_negative = std::signbit(value);
  const Wide magnitude = std::fabs(value);
  const auto above = std::upper_bound(numbers.begin(), numbers.end(), magnitude);
  auto index = static_cast<uint64_t>(above - numbers.begin()) - 1;
  const uint64_t sign = is_negative ? 0x8000 : 0;
  if (numbers[index] == magnitude) return sign | index;
  // Infinity is where the next number would be.
  const Wide low = numbers[index];
  const Wide step =
      index + 2 < numbers.size() ? numbers[index + 1] - low : low - numbers[index - 1];
  const Wide half = low + step / 2;
  if (rounding == 'n') index += magnitude > half || (magnitude == half && index % 2 == 1);
  if (rounding == 'p') index += !is_negative;
  if (rounding == 'm') index += is_negative;
  return sign | index;
}

uint64_t expected_integer(const std::string& to, Wide value, char rounding) {
  const uint32_t bits = width_of_type(to);
  if (std::isnan(value)) return bits == 64 ? uint64_t{1} << 63 : 0;
  const Wide whole = rounding == 'z'   ? std::trunc(value)
                     : rounding == 'm' ? std::floor(value)
                     : rounding == 'p' ? std::ceil(value)
                                       : std::nearbyint(value);
  const bool is_signed = to[0] == 's';
  const uint64_t most = is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
  if (whole >= static_cast<Wide>(most)) return most;
  const Wide least = is_signed ? -static_cast<Wide>(most) - 1 : 0;
  if (whole <= least) return is_signed ? ~most : 0;
  return whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                   : static_cast<uint64_t>(whole);
}

struct Conversion {
  std::string from, to, rounding;  // "rn", "rzi"
  std::string source, dest;        // registers
  bool saturates = false;
};

// Whether the register of the result is full of it, and how wide it is.
uint64_t cut(const Conversion& c, uint64_t word) {
  return c.dest.starts_with("%rs")   ? word & 0xffff
         : c.dest.starts_with("%rd") ? word
                                     : word & 0xffffffff;
}

uint64_t expected(const Conversion& c, uint64_t word) {
  Wide value = value_of(c.from, word);
  const char rounding = c.rounding[1];
  if (!is_float_type(c.to)) return cut(c, expected_integer(c.to, value, rounding));
  if (c.rounding.size() == 3) {
    const float narrow = static_cast<float>(value);
    value = rounding == 'z'   ? std::trunc(narrow)
            : rounding == 'm' ? std::floor(narrow)
            : rounding == 'p' ? std::ceil(narrow)
                              : std::nearbyint(narrow);
  }
  if (c.saturates) value = value > 0 ? std::min(value, Wide{1}) : 0;
  return expected_float(c.to, value, rounding);
}

void expect_right(const Conversion& c) {
  const std::string instruction =
      fmt::format("cvt.{}{}.{}.{} {}, {};", c.rounding, c.saturates ? ".sat" : "", c.to, c.from,
                  c.dest, c.source);
  SCOPED_TRACE(instruction);
  const std::string stored = c.dest.starts_with("%rs")   ? "cvt.u64.u16 %rd9, %rs9;"
                             : c.dest.starts_with("%rd") ? ""
                                                         : "cvt.u64.u32 %rd9, %r9;";
  Session session(
      kernel_text("u64 in, u64 out",
                  "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %ctaid.x;"
                  "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;"
                  "mul.wide.u32 %rd3, %r4, 8; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;"
                  "ld.global.u64 %rd5, [%rd1]; cvt.u32.u64 %r5, %rd5; cvt.u16.u64 %rs5, %rd5;"
                  "mov.b32 %f5, %r5; mov.b64 %fd5, %rd5;" +
                      instruction + stored + "st.global.u64 [%rd2], %rd9;"));
  std::vector<uint64_t> in = inputs(c.from), out(in.size());
  const auto count = static_cast<uint32_t>(in.size());
  const LaunchOutcome outcome =
      session.launch("k", {{count / 256, 1, 1}, {256, 1, 1}}, session.allow(in, "in", false),
                     session.allow(out, "out"));
  ASSERT_EQ(outcome.text, "");
  int wrong = 0;
  for (uint32_t i = 0; i < count && wrong < 3; ++i) {
    const uint64_t right = expected(c, in[i]);
    if (out[i] == right) continue;
    ADD_FAILURE() << fmt::format("of {:#x}: {:#x}, not {:#x}", in[i], out[i], right);
    ++wrong;
  }
}

const char* const kRoundings[] = {"rn", "rz", "rm", "rp"};

TEST(ConvertFloats, IntegersToSmallFloats) {
  for (const char* from : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"}) {
    for (const char* source : {"%rs5", "%r5", "%rd5"}) {
      const uint32_t register_bits = source[2] == 's' ? 16 : source[2] == 'd' ? 64 : 32;
      if (register_bits < width_of_type(from)) continue;
      for (const char* rounding : kRoundings) {
        expect_right({from, "f16", rounding, source, "%rs9"});
        expect_right({from, "bf16", rounding, source, "%rs9"});
      }
    }
  }
}

TEST(ConvertFloats, FloatsToSmallFloats) {
  for (const char* to : {"f16", "bf16"}) {
    for (const char* rounding : kRoundings) {
      for (bool saturates : {false, true}) {
        expect_right({"f32", to, rounding, "%f5", "%rs9", saturates});
        expect_right({"f64", to, rounding, "%fd5", "%rs9", saturates});
        expect_right({"f16", to, rounding, "%rs5", "%rs9", saturates});
        expect_right({"bf16", to, rounding, "%rs5", "%rs9", saturates});
      }
      expect_right({to, to, std::string(rounding) + "i", "%rs5", "%rs9"});
    }
  }
}

TEST(ConvertFloats, ToIntegers) {
  const auto from = [&](const char* type, const char* source) {
    for (const char* rounding : {"rni", "rzi", "rmi", "rpi"}) {
      for (const char* to : {"s8", "u8", "s16", "u16"}) {
        expect_right({type, to, rounding, source, "%rs9"});
        expect_right({type, to, rounding, source, "%r9"});
      }
      expect_right({type, "s32", rounding, source, "%r9"});
      expect_right({type, "u32", rounding, source, "%r9"});
      expect_right({type, "s64", rounding, source, "%rd9"});
      expect_right({type, "u64", rounding, source, "%rd9"});
    }
  };
  from("f16", "%rs5");
  from("bf16", "%rs5");
  from("f32", "%f5");
}

}  // namespace
}  // namespace kiln::engine
