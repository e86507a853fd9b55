// SPDX-License-Identifier: Apache-2.0
// What does the message of a kernel's fault contain? What compute-sanitizer reports, in its words:
// what, where in the source, which thread, which address.
#pragma once

#include <cstdint>
#include <string>

#include "engine/cuda/errors.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

std::string demangled(const std::string& name);
// "f.cu:53", or "PTX line 12" if the library was compiled without -lineinfo.
std::string place_of(const Program& program, const Op& op);
// "at k(float *) in f.cu:53\n  by thread (232,0,0) in block (3,0,0)"
std::string where(const Warp& warp, const Op& op, uint32_t lane);

enum class Access : uint8_t { Read, Write, Atomic };

// Returns null if the kernel stops; otherwise a watcher wants it to continue (Sink::recovers).
const Op* out_of_bounds(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, Access access,
                        uint64_t address, uint32_t bytes);
// For the index of a View whose elements begin at `data`.
const Op* index_out_of_bounds(Warp& warp, const Op* op, uint32_t lane, int64_t index, int64_t size,
                              int64_t dimension, uint64_t data);
const Op* misaligned(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, Access access,
                     uint64_t address, uint32_t bytes);

}  // namespace kiln::engine
