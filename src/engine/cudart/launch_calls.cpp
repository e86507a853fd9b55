// SPDX-License-Identifier: Apache-2.0
// How do launches, function attributes and occupancy queries of the CUDA runtime reach the engine?
#include <fmt/format.h>

#include <cstring>

#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

int launch(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments, size_t shared,
           void* stream, uint32_t flags, KilnDim3 cluster = {0, 0, 0}) {
  KilnEngineLaunch what{};
  what.struct_bytes = sizeof what;
  what.flags = flags | KILN_LAUNCH_DEFERRED;
  what.host_function = function;
  what.grid = grid;
  what.block = block;
  what.cluster = cluster;
  what.arguments = arguments;
  what.dynamic_shared_bytes = shared;
  what.stream = stream;
  what.check_memory = 1;  // a program's kernels may access what cudaMalloc returned
  return launch_in_stream(what);
}

int launch_kernel_plain(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments,
                        size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream, 0);
}
int launch_cooperative(const void* function, KilnDim3 grid, KilnDim3 block, void** arguments,
                       size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream, KILN_LAUNCH_COOPERATIVE);
}

int launch_ex(const LaunchConfig* config, const void* function, void** arguments) {
  if (!config) return fail(kInvalidValue, "cudaLaunchKernelExC: the configuration is null");
  uint32_t flags = 0;
  KilnDim3 cluster{0, 0, 0};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kAttributeCooperative && attribute.value.cooperative)
      flags |= KILN_LAUNCH_COOPERATIVE;
    if (attribute.id == kAttributeCluster) cluster = attribute.value.cluster;
  }
  return launch(function, config->grid, config->block, arguments, config->dynamic_shared_bytes,
                config->stream, flags, cluster);
}

RegisteredFunction* find(const void* function, int* code) {
  std::string text;
  RegisteredFunction* found = resolved_function(function, code, &text);
  if (!found) fail(*code, std::move(text));
  return found;
}

// cudaFuncAttribute
enum FunctionAttribute : int {
  kMaxDynamicShared = 8,
  kCarveout = 9,
  kNonPortableCluster = 14,
  kClusterPolicy = 15,
};

int set_attribute(const void* function, int attribute, int value) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  if (attribute < kMaxDynamicShared || attribute > kClusterPolicy)
    return fail(kInvalidValue, fmt::format("function attribute {} cannot be set", attribute));
  if (attribute != kMaxDynamicShared) {  // hints, stored so that a program reads back what it set
    if (attribute == kCarveout && (value < -1 || value > 100))
      return fail(kInvalidValue, fmt::format("a carveout of {} is not between -1 and 100", value));
    if (attribute == kCarveout) found->carveout = value;
    if (attribute == kNonPortableCluster) found->nonportable_cluster = value;
    if (attribute == kClusterPolicy) found->cluster_policy = value;
    return kSuccess;
  }
  uint64_t wanted = static_cast<uint64_t>(value < 0 ? 0 : value);
  if (value < 0 || wanted + found->static_shared_bytes() > kMaxSharedBytesOptIn) {
    return fail(kInvalidValue,
                fmt::format("{} bytes of dynamic and {} of static shared memory exceed {}", value,
                            found->static_shared_bytes(), kMaxSharedBytesOptIn));
  }
  found->max_dynamic_shared = wanted;
  return kSuccess;
}

int get_attributes(FunctionAttributes* out, const void* function) {
  if (!out) return fail(kInvalidValue, "cudaFuncGetAttributes: the output pointer is null");
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  std::memset(out, 0, sizeof *out);
  const Program& program = found->program();
  out->shared_bytes = found->static_shared_bytes();
  out->local_bytes = program.local_bytes;
  uint32_t bound = program.function->max_threads;
  out->max_threads =
      static_cast<int>(bound ? std::min(bound, kMaxThreadsPerBlock) : kMaxThreadsPerBlock);
  out->registers = 32;
  // As on a GPU: of the PTX that was chosen, and of the code that the device compiles from it.
  out->ptx_version = static_cast<int>(found->image->arch);
  out->binary_version = static_cast<int>(kDeviceArch);
  out->max_dynamic_shared = static_cast<int>(found->shared_limit() - found->static_shared_bytes());
  for (const ptx::Variable& variable : program.module->variables) {
    if (variable.space == ptx::Space::Const) out->const_bytes += variable.bytes();
  }
  out->carveout = found->carveout;
  out->nonportable_cluster = found->nonportable_cluster;
  out->cluster_policy = found->cluster_policy;
  out->cluster_width = static_cast<int>(program.function->required_cluster[0]);
  out->cluster_height = static_cast<int>(program.function->required_cluster[1]);
  out->cluster_depth = static_cast<int>(program.function->required_cluster[2]);
  return kSuccess;
}

int occupancy(int* blocks, const void* function, int threads, size_t dynamic_shared) {
  if (!blocks) return fail(kInvalidValue, "the output pointer for the number of blocks is null");
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  *blocks = threads <= 0
                ? 0
                : static_cast<int>(resident_blocks(found->static_shared_bytes(),
                                                   static_cast<uint32_t>(threads), dynamic_shared));
  return kSuccess;
}
int occupancy_with_flags(int* blocks, const void* function, int threads, size_t dynamic_shared,
                         unsigned) {
  return occupancy(blocks, function, threads, dynamic_shared);
}
int available_dynamic_shared(size_t* bytes, const void* function, int blocks, int) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  uint64_t each = blocks > 0 ? kSharedBytesPerMultiprocessor / static_cast<uint64_t>(blocks) : 0;
  uint64_t taken = found->static_shared_bytes() + kReservedSharedBytes;
  *bytes = each > taken
               ? std::min(each - taken, found->shared_limit() - found->static_shared_bytes())
               : 0;
  return kSuccess;
}
constexpr unsigned kMostClusterBlocks = 8;  // every sm_90 supports this
int cluster_size(int* blocks, const void* function, const LaunchConfig*) {
  int code = 0;
  if (!find(function, &code)) return code;
  *blocks = kMostClusterBlocks;
  return kSuccess;
}
int active_clusters(int* clusters, const void* function, const LaunchConfig* config) {
  if (!clusters || !config) return fail(kInvalidValue, "a pointer is null");
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  uint32_t size = 1;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id != kAttributeCluster) continue;
    size = attribute.value.cluster.x * attribute.value.cluster.y * attribute.value.cluster.z;
  }
  const uint32_t threads = config->block.x * config->block.y * config->block.z;
  const uint32_t resident =
      resident_blocks(found->static_shared_bytes(), threads, config->dynamic_shared_bytes) *
      kMultiprocessors;
  *clusters = size ? static_cast<int>(resident / size) : 0;
  return kSuccess;
}

int set_cache_config_of(const void* function, int) {
  int code = 0;
  return find(function, &code) ? kSuccess : code;
}
int get_name(const char** out, const void* function) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  if (!out) return fail(kInvalidValue, "the output pointer for the name is null");
  *out = found->name.c_str();
  return kSuccess;
}
int parameter_info(const void* function, size_t index, size_t* offset, size_t* bytes) {
  int code = 0;
  RegisteredFunction* found = find(function, &code);
  if (!found) return code;
  const std::vector<ParameterPlace>& places = found->program().parameter_places;
  if (index >= places.size())
    return fail(kInvalidValue, fmt::format("the kernel has no parameter {}", index));
  if (offset) *offset = places[index].offset;
  if (bytes) *bytes = places[index].bytes;
  return kSuccess;
}
// A function handle is the host address of the kernel.
int func_by_symbol(const void** out, const void* function) {
  int code = 0;
  if (!find(function, &code)) return code;
  *out = function;
  return kSuccess;
}

}  // namespace

std::span<const RuntimeFunction> runtime_launch() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaLaunchKernel", behind<&launch_kernel_plain>()},
      {"cudaLaunchKernelExC", behind<&launch_ex>()},
      {"cudaLaunchCooperativeKernel", behind<&launch_cooperative>()},
      {"cudaFuncSetAttribute", entry<&set_attribute>()},
      {"cudaFuncGetAttributes", entry<&get_attributes>()},
      {"cudaFuncSetCacheConfig", entry<&set_cache_config_of>()},
      {"cudaFuncSetSharedMemConfig", entry<&set_cache_config_of>()},
      {"cudaFuncGetName", entry<&get_name>()},
      {"cudaFuncGetParamInfo", entry<&parameter_info>()},
      {"cudaGetFuncBySymbol", entry<&func_by_symbol>()},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", entry<&occupancy>()},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", entry<&occupancy_with_flags>()},
      {"cudaOccupancyAvailableDynamicSMemPerBlock", entry<&available_dynamic_shared>()},
      {"cudaOccupancyMaxPotentialClusterSize", entry<&cluster_size>()},
      {"cudaOccupancyMaxActiveClusters", entry<&active_clusters>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
