// SPDX-License-Identifier: Apache-2.0
// How many blocks fit by warps, by registers, by shared memory, and which is the least?
#include "inspect/occupancy.h"

#include <algorithm>

namespace kiln::inspect {
namespace {

constexpr uint32_t kWarp = 32, kRegisters = 65536, kRegisterUnit = 256, kSchedulers = 4,
                   kMaxThreads = 1024, kMaxRegisters = 255;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string_view name_of(Limiter limiter) {
  switch (limiter) {
    case Limiter::Warps:
      return "warps";
    case Limiter::Blocks:
      return "blocks";
    case Limiter::Registers:
      return "registers";
    case Limiter::Shared:
      return "shared memory";
    default:
      return "too large";
  }
}

Occupancy occupancy(const GpuLimits& gpu, const BlockNeeds& needs) {
  Occupancy out;
  uint32_t warps = (needs.threads + kWarp - 1) / kWarp;
  uint64_t shared = round_up(needs.shared_bytes + gpu.reserved_bytes, gpu.shared_unit_bytes);
  // A warp's registers come from the quarter of its scheduler, in units.
  uint64_t warp_registers = round_up(uint64_t{needs.registers} * kWarp, kRegisterUnit);
  uint64_t warps_by_registers = warp_registers
                                    ? kRegisters / kSchedulers / warp_registers * kSchedulers
                                    : uint64_t{gpu.warps};
  if (warps == 0 || needs.threads > kMaxThreads || needs.registers > kMaxRegisters ||
      needs.shared_bytes > gpu.block_shared_bytes || warps_by_registers < warps) {
    out.limiter = Limiter::TooLarge;
    return out;
  }
  struct Bound {
    uint64_t blocks;
    Limiter limiter;
  };
  Bound bounds[] = {{gpu.warps / warps, Limiter::Warps},
                    {gpu.blocks, Limiter::Blocks},
                    {warp_registers ? warps_by_registers / warps : gpu.blocks, Limiter::Registers},
                    {shared ? gpu.shared_bytes / shared : gpu.blocks, Limiter::Shared}};
  Bound least =
      *std::min_element(std::begin(bounds), std::end(bounds),
                        [](const Bound& a, const Bound& b) { return a.blocks < b.blocks; });
  out.blocks = static_cast<uint32_t>(least.blocks);
  out.limiter = least.limiter;
  out.warps = out.blocks * warps;
  out.fraction = static_cast<double>(out.warps) / gpu.warps;
  return out;
}

}  // namespace kiln::inspect
