// SPDX-License-Identifier: Apache-2.0
// What does a .nv.info section say about kernels? Attributes of one kernel, or of the symbols of a
// whole cubin.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "binary/bytes.h"

namespace kiln::binary {

// The attributes that are read; their numbers and names are those that nvdisasm prints.
enum class NvAttribute : uint8_t {
  MaxThreads = 0x05,
  RequiredThreads = 0x10,
  FrameBytes = 0x11,
  MinStackBytes = 0x12,
  KernelParameter = 0x17,
  ParameterBytes = 0x19,
  MaxRegisters = 0x1b,
  MaxStackBytes = 0x23,
  RegisterCount = 0x2f,
  BlocksPerCluster = 0x3d,
  MaxClusterRank = 0x3f,
  BarrierCount = 0x4c,
  Annotations = 0x55,
};

struct NvRecord {
  NvAttribute attribute{};
  uint64_t offset = 0;  // of the record in its section
  uint16_t value = 0;   // of a record without a payload
  Bytes payload;
};

// All records, known or not; an error when one runs beyond the section.
Result<std::vector<NvRecord>> read_nv_info(Bytes section);

struct KernelParameter {
  uint16_t ordinal = 0, offset = 0;
  uint32_t bytes = 0;
};

struct Annotation {
  uint32_t code_offset = 0, kind = 0;
};
inline constexpr uint32_t kAnnotationSpill = 1;

// What the section of one kernel says.
struct KernelAttributes {
  uint32_t max_threads[3] = {0, 0, 0}, required_threads[3] = {0, 0, 0}, cluster[3] = {0, 0, 0};
  uint32_t max_cluster_rank = 0;
  uint32_t min_blocks =
      0;  // a multiprocessor's; no attribute has it, who reads the PTX fills it in. 0: not known
  uint32_t parameter_bytes = 0, max_registers = 0, barriers = 0;
  std::vector<KernelParameter> parameters;  // by ordinal
  std::vector<Annotation> annotations;
};
Result<KernelAttributes> read_kernel_attributes(Bytes section);

// What the section of the whole cubin says about one symbol; -1 when it says nothing.
struct SymbolAttributes {
  int64_t registers = -1, frame_bytes = -1, min_stack_bytes = -1, max_stack_bytes = -1;
};
// By symbol index; as long as the largest index below `symbol_count` that is named.
Result<std::vector<SymbolAttributes>> read_symbol_attributes(Bytes section, uint64_t symbol_count);

}  // namespace kiln::binary
