// SPDX-License-Identifier: Apache-2.0
// Which GPUs are there, and which of them does a set of images serve: natively, by JIT of PTX, or
// not at all?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/images.h"
#include "project/arch.h"
#include "results/inspect/overview.h"

namespace kiln::inspect {

// What one multiprocessor has (CUDA C++ Programming Guide, table "Technical Specifications per
// Compute Capability").
struct GpuLimits {
  uint32_t arch = 0;  // 90
  std::string_view names;
  uint32_t warps = 0, blocks = 0;
  uint32_t shared_bytes = 0;        // of a multiprocessor
  uint32_t block_shared_bytes = 0;  // of a block, when it asks for it
  uint32_t shared_unit_bytes = 0;   // allocated in these
  uint32_t reserved_bytes = 0;      // the driver's share of each block
};
std::span<const GpuLimits> known_gpus();
// Null for an architecture that is not in the table.
const GpuLimits* limits_of(uint32_t arch);

using results::DriverFloor;
using results::Service;

struct Served {
  const GpuLimits* gpu = nullptr;
  Service service = Service::None;
  std::string by;  // "sm_80", "compute_80"; "sm_90, sm_90a" where fat binaries differ, the most
                   // frequent first
  size_t jit_containers =
      0;  // of a native one: fat binaries that have nothing but PTX for this GPU
};
// For each GPU of the table.
std::vector<Served> served_gpus(const std::vector<Image>& images);
Served service_for(const std::vector<Image>& images, uint32_t arch);

// `compiler_release` as "13.0"; empty when no cubin says it.
DriverFloor driver_floor(const std::vector<Image>& images, std::string_view compiler_release);

}  // namespace kiln::inspect
