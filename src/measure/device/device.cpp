// SPDX-License-Identifier: Apache-2.0
#include "measure/device/device.h"

namespace kiln::measure {

Json to_json(const DeviceFacts& facts) {
  return {{"kind", facts.kind},
          {"name", facts.name},
          {"index", facts.index},
          {"driver", facts.driver},
          {"cuda", facts.cuda},
          {"compute", facts.compute},
          {"multiprocessors", facts.multiprocessors},
          {"l2_bytes", facts.l2_bytes},
          {"memory_bytes", facts.memory_bytes},
          {"most_mhz", facts.most_mhz},
          {"peak_gb_per_s", facts.peak_gbs},
          {"notes", facts.notes}};
}

std::string reason_names(uint64_t reasons) {
  static constexpr struct {
    uint64_t bit;
    const char* name;
  } kNames[] = {{0x1, "idle"},
                {0x2, "application clocks"},
                {0x4, "power cap"},
                {0x8, "hardware slowdown"},
                {0x10, "sync boost"},
                {0x20, "thermal slowdown"},
                {0x40, "hardware thermal slowdown"},
                {0x80, "power brake"},
                {0x100, "display clocks"}};
  std::string names;
  for (const auto& row : kNames)
    if (reasons & row.bit) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace kiln::measure
