// SPDX-License-Identifier: Apache-2.0
// Which launches are refused, and how do arguments reach the kernel?
#include "engine/cudart/launch.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "engine/cudart/environment.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/interrupt.h"
#include "engine/cudart/listener.h"
#include "engine/machine/events.h"
#include "engine/machine/fault.h"
#include "engine/machine/grid.h"

namespace kiln::engine {
namespace {

std::atomic<uint64_t> next_epoch{1};

LaunchOutcome refuse(const Program& program, int code, std::string why) {
  return {code, fmt::format("cannot launch {}: {}", demangled(program.name), why), false};
}

// An invalid shape is an invalid value in CUDA 13; older versions report an invalid configuration.
LaunchOutcome check_configuration(const Program& program, const KilnEngineLaunch& launch,
                                  uint64_t shared_bytes, uint64_t shared_limit) {
  const KilnDim3 &g = launch.grid, &b = launch.block;
  uint64_t threads = uint64_t{b.x} * b.y * b.z;
  if (g.x == 0 || g.y == 0 || g.z == 0) {
    return refuse(program, kInvalidValue,
                  fmt::format("the grid ({},{},{}) is empty", g.x, g.y, g.z));
  }
  if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    return refuse(
        program, kInvalidValue,
        fmt::format("the grid ({},{},{}) is larger than (2147483647,65535,65535)", g.x, g.y, g.z));
  }
  if (threads == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 || threads > kMaxThreadsPerBlock) {
    return refuse(
        program, kInvalidValue,
        fmt::format("the block ({},{},{}) is not between 1 and {} threads, at most (1024,1024,64)",
                    b.x, b.y, b.z, kMaxThreadsPerBlock));
  }
  const ptx::Function& function = *program.function;
  if (function.max_threads && threads > function.max_threads) {
    return refuse(program, kInvalidValue,
                  fmt::format("{} threads per block exceed its __launch_bounds__({})", threads,
                              function.max_threads));
  }
  const uint32_t* wanted = function.required_threads;
  if (wanted[0] && (b.x != wanted[0] || b.y != wanted[1] || b.z != wanted[2])) {
    return refuse(program, kInvalidValue,
                  fmt::format("the block must be ({},{},{}), as it was compiled", wanted[0],
                              wanted[1], wanted[2]));
  }
  if (shared_bytes > shared_limit) {
    std::string hint = shared_limit < kMaxSharedBytesOptIn && shared_bytes <= kMaxSharedBytesOptIn
                           ? "; raise it with cudaFuncSetAttribute(..., "
                             "cudaFuncAttributeMaxDynamicSharedMemorySize, ...) "
                             "or kiln::launch"
                           : "";
    return refuse(program, kInvalidValue,
                  fmt::format("{} bytes of shared memory per block exceed {}{}", shared_bytes,
                              shared_limit, hint));
  }
  return {};
}

LaunchOutcome set_cluster(const Program& program, const KilnEngineLaunch& launch, Grid* grid) {
  const uint32_t* compiled = program.function->required_cluster;
  KilnDim3 size = launch.cluster.x ? launch.cluster : KilnDim3{1, 1, 1};
  if (compiled[0]) {
    const KilnDim3 wanted{compiled[0], std::max(compiled[1], 1u), std::max(compiled[2], 1u)};
    if (launch.cluster.x && (size.x != wanted.x || size.y != wanted.y || size.z != wanted.z)) {
      return refuse(program, kInvalidValue,
                    fmt::format("the cluster must be ({},{},{}), as it was compiled", wanted.x,
                                wanted.y, wanted.z));
    }
    size = wanted;
  }
  const uint64_t blocks = uint64_t{size.x} * size.y * size.z;
  if (blocks == 0 || size.x > kMaxClusterBlocks || size.y > kMaxClusterBlocks ||
      size.z > kMaxClusterBlocks || blocks > kMaxClusterBlocks) {
    return refuse(program, kInvalidClusterSize,
                  fmt::format("the cluster ({},{},{}) is not between 1 and {} blocks", size.x,
                              size.y, size.z, kMaxClusterBlocks));
  }
  const KilnDim3& g = launch.grid;
  if (g.x % size.x || g.y % size.y || g.z % size.z) {
    return refuse(program, kInvalidValue,
                  fmt::format("the grid ({},{},{}) is not a multiple of the cluster ({},{},{})",
                              g.x, g.y, g.z, size.x, size.y, size.z));
  }
  grid->cluster_dim = size;
  grid->cluster_size = static_cast<uint32_t>(blocks);
  return {};
}

}  // namespace

uint32_t resident_blocks(uint64_t static_shared_bytes, uint32_t threads,
                         uint64_t dynamic_shared_bytes) {
  if (threads == 0 || threads > kMaxThreadsPerBlock) return 0;
  uint64_t shared = static_shared_bytes + dynamic_shared_bytes;
  if (shared > kMaxSharedBytesOptIn) return 0;
  uint32_t warps = (threads + kWarpSize - 1) / kWarpSize;
  uint64_t by_threads = kMaxThreadsPerMultiprocessor / (warps * kWarpSize);
  uint64_t by_shared = kSharedBytesPerMultiprocessor / (shared + kReservedSharedBytes);
  return static_cast<uint32_t>(
      std::min<uint64_t>({by_threads, by_shared, kMaxBlocksPerMultiprocessor}));
}

namespace {

[[gnu::cold]] void watch_launch(Sink& sink, const Grid& grid, const KilnEngineLaunch& launch,
                                bool ended) {
  LaunchEvent event;
  event.program = grid.program;
  event.number = grid.epoch;
  event.grid = grid.grid_dim;
  event.block = grid.block_dim;
  event.cluster = grid.cluster_dim;
  event.shared_bytes = grid.shared_bytes;
  event.dynamic_shared_bytes = grid.dynamic_shared_bytes;
  event.memory = &grid.memory;
  event.ended = ended;
  event.code = grid.fault_code;
  event.cooperative = grid.cooperative;
  event.stream = stream_number(launch.stream);
  event.thread = host_thread();
  // The stub that stands for the kernel is in the library that contains its code.
  Dl_info found{};
  if (launch.host_function && dladdr(launch.host_function, &found) && found.dli_fname)
    event.file = found.dli_fname;
  sink.on(event);
}

// The events for which the decoder must insert Ops.
uint8_t decoded_events(Kernel& kernel, uint32_t wanted) {
  // Only event Ops report the groups of operations that the engine completes at once.
  if (wanted & kAsyncEvents) wanted |= kSyncEvents;
  const uint32_t decoded = wanted & kDecodedEvents;
  // A kernel without variables in shared memory cannot access past one.
  const bool by_name = decoded == kVariableEvents && kernel.any() && kernel.static_shared_bytes();
  return static_cast<uint8_t>(decoded == kVariableEvents && !by_name ? 0 : decoded);
}

// As cudaLaunchKernel does, because the caller's variables may change when it returns.
void copy_parameters(const Program& program, void* const* arguments, Grid& grid) {
  grid.parameter_lines.resize(program.parameter_bytes / sizeof(Grid::ParameterLine) + 1);
  for (size_t i = 0; i < program.parameter_places.size(); ++i) {
    const ParameterPlace place = program.parameter_places[i];
    if (place.bytes) std::memcpy(grid.parameters() + place.offset, arguments[i], place.bytes);
  }
}

// Shared memory: the kernel's own, what the launch asked for, and after these what cooperative
// groups reserve (%reserved_smem_offset), so that the others stay where they are.
void lay_out_shared(const Program& program, uint64_t static_bytes, uint64_t dynamic_bytes,
                    Grid& grid) {
  grid.dynamic_shared_bytes = dynamic_bytes;
  for (const SpecialSlot& slot : program.specials) {
    if (slot.special == Special::TotalSharedBytes) grid.reserved_bytes = kReservedSharedBytes;
  }
  if (grid.reserved_bytes) grid.dynamic_shared_bytes = (dynamic_bytes + 15) / 16 * 16;
  grid.shared_bytes = static_bytes + grid.dynamic_shared_bytes;
}

LaunchOutcome launch_or_throw(Device& device, Kernel& kernel, uint64_t shared_limit,
                              const KilnEngineLaunch& launch, bool for_rows) {
  Sink* const sink = device.watched();
  if (device.refusal) return {kInvalidConfiguration, device.refusal, false};
  const uint32_t wanted = sink ? sink->wanted() : 0;
  const WatchedTurn turn(device, sink);
  const KilnDim3& dim = launch.block;
  const uint8_t events = decoded_events(kernel, wanted);
  // In a short kernel all warps run at once if each is a row, as if rows were narrower.
  const bool rows_are_warps =
      dim.x == kWarpSize && dim.y > 1 && events == 0 && kernel.runs_straight();
  const bool fill_warps = !rows_are_warps && (dim.x % kWarpSize == 0 || (dim.y == 1 && dim.z == 1));
  const bool narrow = !fill_warps && dim.x <= kWarpSize && std::has_single_bit(dim.x) &&
                      (dim.z == 1 || uint64_t{dim.x} * dim.y % kWarpSize == 0);
  const uint32_t row_lanes = events ? kWarpSize : dim.x;  // watched, no machine code is made
  const Variant variant{for_rows && fill_warps, events,
                        static_cast<uint8_t>(for_rows && narrow ? row_lanes : 0)};
  auto decoded = kernel.program(variant);
  if (!decoded) return {kNotSupported, format(decoded.error()), false};
  const Program& program = **decoded;
  const uint64_t align = kernel.image().dynamic_shared_alignment();
  const uint64_t static_shared = kernel.static_shared_bytes();
  uint64_t static_bytes = (static_shared + align - 1) / align * align;
  // Padding for alignment does not count against the limit.
  LaunchOutcome refused = check_configuration(
      program, launch, static_shared + launch.dynamic_shared_bytes, shared_limit);
  if (refused.code) return refused;
  if (program.parameter_bytes && !launch.arguments) {
    return refuse(program, kInvalidValue, "it has parameters and none were given");
  }
  Grid grid;
  grid.device = &device;
  grid.program = &program;
  grid.grid_dim = launch.grid;
  grid.block_dim = launch.block;
  refused = set_cluster(program, launch, &grid);
  if (refused.code) return refused;
  grid.block_count = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  grid.threads_per_block = launch.block.x * launch.block.y * launch.block.z;
  lay_out_shared(program, static_bytes, launch.dynamic_shared_bytes, grid);
  grid.has_barriers = program.has_barrier || program.has_calls;
  grid.cooperative = launch.flags & KILN_LAUNCH_COOPERATIVE;
  if (grid.cooperative) {
    uint64_t most = uint64_t{resident_blocks(static_shared, grid.threads_per_block,
                                             launch.dynamic_shared_bytes)} *
                    kMultiprocessors;
    if (grid.block_count > most) {
      return refuse(
          program, kCooperativeLaunchTooLarge,
          fmt::format("{} blocks cannot be resident together; at most {}", grid.block_count, most));
    }
  }
  copy_parameters(program, launch.arguments, grid);
  RunningLaunch running(device.heap);
  grid.memory.begin(launch.regions, launch.region_count, launch.check_memory != 0,
                    running.regions());
  uint64_t parameters = reinterpret_cast<uint64_t>(grid.parameters());
  grid.memory.add(
      {parameters, parameters + std::max<uint32_t>(program.parameter_bytes, 8), false, ""});
  if (grid.cooperative) {
    const uint64_t workspace = reinterpret_cast<uint64_t>(grid.workspace);
    grid.memory.add({workspace, workspace + sizeof grid.workspace, true, ""});
  }
  grid.epoch = next_epoch.fetch_add(1, std::memory_order_relaxed);
  grid.settings = settings();
  InterruptWatch interrupts;
  grid.outside = &interrupts;
  grid.sink = sink;
  grid.wanted = wanted;
  const int64_t begin_ns = launch_begins();
  if (sink) watch_launch(*sink, grid, launch, false);
  run_grid(grid);
  if (sink) watch_launch(*sink, grid, launch, true);
  running.end();
  if (begin_ns)
    launch_ended(begin_ns, launch, demangled(program.name).c_str(), grid.shared_bytes,
                 grid.fault_code);
  if (grid.interrupted.load() && python_will_raise()) return {};  // nothing can observe the results
  if (grid.fault_code)
    return {grid.fault_code, std::move(grid.fault_text), !grid.interrupted.load()};
  return {};
}

}  // namespace

LaunchOutcome launch_kernel(Device& device, Kernel& kernel, uint64_t shared_limit,
                            const KilnEngineLaunch& launch, bool for_rows) {
  try {
    return launch_or_throw(device, kernel, shared_limit, launch, for_rows);
  } catch (const std::bad_alloc&) {
    return {kMemoryAllocation, {}, true};
  }
}

}  // namespace kiln::engine
