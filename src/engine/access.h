// SPDX-License-Identifier: Apache-2.0
// How does an Op's address become memory of this process? Checked for bounds, rights and alignment before anything is
// touched.
#pragma once

#include <cstdint>
#include <string>

#include "engine/fault.h"
#include "engine/warp.h"

namespace kiln::engine {

// Bits of Op::x for Ops with an address in `a` and `imm`.
constexpr uint8_t kAddressUniform = 1;
constexpr uint8_t kAddress32 = 2;

enum class Shape : uint8_t {
  Fault,
  Uniform,     // all lanes at pointer[0]
  Contiguous,  // lane i at pointer[0] + i * bytes, all lanes active
  Scattered    // the active lanes at pointer[i]
};

// Where the bytes of each active lane are. `space` is in Op::z.
Shape locate(Warp& warp, const Op* op, uint32_t bytes, Access access, std::byte* (&pointer)[kWarpSize]);

// One lane at a generic address. Null: a fault was reported.
std::byte* locate_generic(Warp& warp, const Op* op, uint32_t lane, uint64_t address, uint32_t bytes, Access access);
// The text that ends in NUL at a generic address, at most `most` bytes of it. False: a fault was reported.
bool read_text(Warp& warp, const Op* op, uint32_t lane, uint64_t address, size_t most, std::string* out);

}  // namespace kiln::engine
