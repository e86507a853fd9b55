// SPDX-License-Identifier: Apache-2.0
// How do launches, function attributes and occupancy queries of the CUDA runtime reach the engine?
#include <fmt/format.h>

#include <cstring>

#include "engine/fault.h"
#include "engine/runtime.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

int launch(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments, size_t shared, void* stream,
           uint32_t flags, KilnDim3 cluster = {0, 0, 0}) {
  KilnEngineLaunch what{};
  what.struct_bytes = sizeof what;
  what.flags = flags;
  what.host_function = function;
  what.grid = grid;
  what.block = block;
  what.cluster = cluster;
  what.arguments = arguments;
  what.dynamic_shared_bytes = shared;
  what.stream = stream;
  what.check_memory = 1;  // a program's kernels may touch what cudaMalloc gave
  return launch_now(what);
}

int launch_kernel_plain(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments, size_t shared,
                        void* stream) {
  return launch(function, grid, block, arguments, shared, stream, 0);
}
int launch_cooperative(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments, size_t shared,
                       void* stream) {
  return launch(function, grid, block, arguments, shared, stream, KILN_LAUNCH_COOPERATIVE);
}

// cudaLaunchAttribute: an id and 64 bytes of value.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  KilnDim3 grid, block;
  size_t dynamic_shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
enum : int { kAttributeCooperative = 2, kAttributeClusterDimension = 4 };

int launch_ex(const LaunchConfig* config, const void* function, void** arguments) {
  if (!config) return fail(kInvalidValue, "cudaLaunchKernelExC: the configuration is null");
  uint32_t flags = 0;
  KilnDim3 cluster{0, 0, 0};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kAttributeCooperative && attribute.value.cooperative) flags |= KILN_LAUNCH_COOPERATIVE;
    if (attribute.id == kAttributeClusterDimension) {
      cluster = {attribute.value.cluster.x, attribute.value.cluster.y, attribute.value.cluster.z};
    }
  }
  return launch(function, config->grid, config->block, arguments, config->dynamic_shared_bytes, config->stream, flags,
                cluster);
}

RegisteredFunction* find(const void* function, int* code) {
  std::string text;
  RegisteredFunction* found = resolved_function(function, code, &text);
  if (!found) fail(*code, std::move(text));
  return found;
}

enum : int { kMaxDynamicShared = 8, kPreferredCarveout = 9 };

int set_attribute(const void* function, int attribute, int value) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  if (attribute != kMaxDynamicShared) return kSuccess;  // hints
  uint64_t wanted = static_cast<uint64_t>(value < 0 ? 0 : value);
  if (value < 0 || wanted + found->facts.static_shared_bytes > kMaxSharedBytesOptIn) {
    return fail(kInvalidValue, fmt::format("{} bytes of dynamic shared memory and {} static ones are more than {}",
                                           value, found->facts.static_shared_bytes, kMaxSharedBytesOptIn));
  }
  found->max_dynamic_shared = wanted;
  found->facts.shared_limit = std::max(kDefaultSharedBytes, wanted + found->facts.static_shared_bytes);
  return kSuccess;
}

// cudaFuncAttributes of CUDA 12 and 13; the rest of it is reserved.
struct FunctionAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared, carveout;
  int cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, nonportable_cluster;
  int reserved[16];
};

int get_attributes(FunctionAttributes* out, const void* function) {
  if (!out) return fail(kInvalidValue, "cudaFuncGetAttributes: the place for the answer is null");
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  std::memset(out, 0, sizeof *out);
  const Program& program = *found->facts.program;
  out->shared_bytes = found->facts.static_shared_bytes;
  out->local_bytes = program.local_bytes;
  uint32_t bound = program.function->max_threads;
  out->max_threads = static_cast<int>(bound ? std::min(bound, kMaxThreadsPerBlock) : kMaxThreadsPerBlock);
  out->registers = 32;
  out->ptx_version = out->binary_version = 90;
  out->max_dynamic_shared = static_cast<int>(found->facts.shared_limit - found->facts.static_shared_bytes);
  return kSuccess;
}

int occupancy(int* blocks, const void* function, int threads, size_t dynamic_shared) {
  if (!blocks) return fail(kInvalidValue, "the place for the number of blocks is null");
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  *blocks = threads <= 0
                ? 0
                : static_cast<int>(resident_blocks(found->facts, static_cast<uint32_t>(threads), dynamic_shared));
  return kSuccess;
}
int occupancy_with_flags(int* blocks, const void* function, int threads, size_t dynamic_shared, unsigned) {
  return occupancy(blocks, function, threads, dynamic_shared);
}
int available_dynamic_shared(size_t* bytes, const void* function, int blocks, int) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  uint64_t each = blocks > 0 ? kSharedBytesPerMultiprocessor / static_cast<uint64_t>(blocks) : 0;
  uint64_t taken = found->facts.static_shared_bytes + kReservedSharedBytes;
  *bytes = each > taken ? std::min(each - taken, found->facts.shared_limit - found->facts.static_shared_bytes) : 0;
  return kSuccess;
}
int set_cache_config(const void*, int) { return kSuccess; }

constexpr auto address = [](auto* function) { return reinterpret_cast<void*>(function); };

}  // namespace

std::span<const RuntimeFunction> runtime_launch() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaLaunchKernel", address(launch_kernel_plain)},
      {"cudaLaunchKernelExC", address(launch_ex)},
      {"cudaLaunchCooperativeKernel", address(launch_cooperative)},
      {"cudaFuncSetAttribute", address(set_attribute)},
      {"cudaFuncGetAttributes", address(get_attributes)},
      {"cudaFuncSetCacheConfig", address(set_cache_config)},
      {"cudaFuncSetSharedMemConfig", address(set_cache_config)},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", address(occupancy)},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", address(occupancy_with_flags)},
      {"cudaOccupancyAvailableDynamicSMemPerBlock", address(available_dynamic_shared)},
  };
  return kFunctions;
}

}  // namespace kiln::engine
