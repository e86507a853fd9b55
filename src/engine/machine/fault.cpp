// SPDX-License-Identifier: Apache-2.0
// How is the message of a fault composed?
#include "engine/machine/fault.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string_view space_name(ptx::Space space) {
  switch (space) {
    case ptx::Space::Shared:
      return "__shared__";
    case ptx::Space::Local:
      return "__local__";
    case ptx::Space::Const:
      return "__constant__";
    case ptx::Space::Param:
      return "__param__";
    default:
      return "__global__";
  }
}

std::string_view access_name(Access access) {
  return access == Access::Read ? "read" : access == Access::Write ? "write" : "atomic";
}

// "tensor 'x'". For a tensor without a name, the launch passes a description in words.
std::string tensor_text(std::string_view name) {
  return name.find(' ') == name.npos ? fmt::format("tensor '{}'", name) : std::string(name);
}

std::string view_text(const Warp& warp, uint64_t data) {
  const uint64_t tag = data >> 56;
  if (tag == kSharedTag || tag == kLocalTag) {
    return fmt::format("a View of {} memory", tag == kSharedTag ? "shared" : "local");
  }
  const auto region = warp.block->grid->memory.owner(data);
  if (!region) return fmt::format("the View at 0x{:x}", data);
  if (region->name && region->name[0]) return tensor_text(region->name);
  return fmt::format("the View at 0x{:x}, in the allocation at 0x{:x} of size {} bytes", data,
                     region->begin, grouped(region->end - region->begin));
}

std::string nearest_text(const Warp& warp, uint64_t address, uint32_t bytes, Access access) {
  auto region = warp.block->grid->memory.nearest(address);
  if (!region) return "the launch was given no memory at all";
  std::string name =
      region->name && region->name[0] ? fmt::format(" ({})", tensor_text(region->name)) : "";
  uint64_t size = region->end - region->begin;
  std::string allocation = fmt::format("the nearest allocation at 0x{:x} of size {} bytes{}",
                                       region->begin, grouped(size), name);
  if (address < region->begin)
    return fmt::format("and is {} bytes before {}", grouped(region->begin - address), allocation);
  if (address >= region->end) {
    return fmt::format("and is {} bytes after {}", grouped(address - region->end + 1), allocation);
  }
  if (region->holds(address, bytes) && access != Access::Read && !region->writable) {
    return fmt::format("and is inside memory that the op may only read: {} bytes at 0x{:x}{}",
                       grouped(size), region->begin, name);
  }
  return fmt::format("and runs {} bytes over the end of {}", grouped(address + bytes - region->end),
                     allocation);
}

}  // namespace

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;  // otherwise a C function `f` would read as `float`
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}

// A relative path, as people write it; compilers write full paths.
static std::string shown_path(std::string_view path) {
  std::error_code gone;
  const std::string here = std::filesystem::current_path(gone).string() + "/";
  return std::string(path.starts_with(here) ? path.substr(here.size()) : path);
}

std::string place_of(const Program& program, const Op& op) {
  if (op.site >= program.sites.size()) return "an unknown place";
  const Site& site = program.sites[op.site];
  if (site.source.file == 0)
    return fmt::format("PTX line {} (compile with -lineinfo for the source line)", site.ptx_line);
  std::string inner = fmt::format("{}:{}", shown_path(program.module->file_name(site.source.file)),
                                  site.source.line);
  if (site.source.outer_file == 0 ||
      (site.source.outer_file == site.source.file && site.source.outer_line == site.source.line)) {
    return inner;
  }
  std::string outer =
      fmt::format("{}:{}", shown_path(program.module->file_name(site.source.outer_file)),
                  site.source.outer_line);
  return fmt::format("{} (inlined from {})", outer, inner);
}

std::string where(const Warp& warp, const Op& op, uint32_t lane) {
  ThreadId thread = thread_of(warp, lane);
  const Block& block = *warp.block;
  const Program& kernel = *block.grid->program;
  const Program& function = *warp.frame->program;
  std::string callee = &kernel == &function ? "" : fmt::format(" in {}", demangled(function.name));
  return fmt::format("  at {} in {}{}\n  by thread ({},{},{}) in block ({},{},{})",
                     demangled(kernel.name), place_of(function, op), callee, thread.x, thread.y,
                     thread.z, block.x, block.y, block.z);
}

namespace {

AccessKind kind_of(Access access) {
  return access == Access::Read    ? AccessKind::Load
         : access == Access::Write ? AccessKind::Store
                                   : AccessKind::Atomic;
}

// Asks the sink whether the kernel continues. Fills in `by`.
bool recovered(const Warp& warp, const Op* op, uint32_t lane, FaultEvent event) {
  Sink* sink = warp.block->grid->sink;
  if (!sink) return false;
  event.by = actor(warp, op);
  event.by.mask = 1u << lane;
  if (!sink->recovers(event)) return false;
  warp.block->grid->recovered.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace

const Op* out_of_bounds(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, Access access,
                        uint64_t address, uint32_t bytes) {
  FaultEvent event;
  event.kind = FaultKind::Bounds;
  event.code = kIllegalAddress;
  event.space = space;
  event.access = kind_of(access);
  event.address = address;
  event.bytes = bytes;
  if (space == ptx::Space::Shared) event.limit = warp.block->shared_bytes;
  if (space == ptx::Space::Local) event.limit = warp.local_limit;
  if (space != ptx::Space::Shared && space != ptx::Space::Local && access != Access::Read &&
      warp.block->grid->memory.find(address, bytes, false))
    event.kind = FaultKind::ReadOnly;
  if (recovered(warp, op, lane, event)) return op;
  std::string text =
      fmt::format("Invalid {} {} of size {} bytes\n{}\n  Address 0x{:x} is out of bounds\n  ",
                  space_name(space), access_name(access), bytes, where(warp, *op, lane), address);
  switch (space) {
    case ptx::Space::Shared:
      text +=
          fmt::format("the block has {} bytes of shared memory", grouped(warp.block->shared_bytes));
      break;
    case ptx::Space::Local:
      text += fmt::format("the thread has {} bytes of local memory", grouped(warp.local_limit));
      break;
    default:
      text += nearest_text(warp, address, bytes, access);
  }
  return warp.fault(op, kIllegalAddress, lane, text);
}

void left_variable(const Warp& warp, const Op* op, uint32_t lane, const VariableSite& site,
                   uint64_t address, uint64_t size) {
  FaultEvent event;
  event.kind = FaultKind::Bounds;
  event.code = kIllegalAddress;
  event.space = ptx::Space::Shared;
  event.access = site.kind;
  event.address = address;
  event.bytes = site.bytes;
  event.limit = size;
  event.variable = &site.variable;
  recovered(warp, op, lane, event);
}

const Op* index_out_of_bounds(Warp& warp, const Op* op, uint32_t lane, int64_t index, int64_t size,
                              int64_t dimension, uint64_t data) {
  FaultEvent event;
  event.kind = FaultKind::Index;
  event.code = kIllegalAddress;
  event.address = data;
  event.index = index;
  event.size = size;
  event.dimension = dimension;
  if (recovered(warp, op, lane, event)) return op;
  return warp.fault(
      op, kIllegalAddress, lane,
      fmt::format("Index out of bounds: index {} of {} in dimension {} of {}\n{}", index, size,
                  dimension, view_text(warp, data), where(warp, *op, lane)));
}

const Op* misaligned(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, Access access,
                     uint64_t address, uint32_t bytes) {
  FaultEvent event;
  event.kind = FaultKind::Alignment;
  event.code = kMisalignedAddress;
  event.space = space;
  event.access = kind_of(access);
  event.address = address;
  event.bytes = bytes;
  if (recovered(warp, op, lane, event)) return op;
  return warp.fault(
      op, kMisalignedAddress, lane,
      fmt::format("Invalid {} {} of size {} bytes\n{}\n  Address 0x{:x} is misaligned",
                  space_name(space), access_name(access), bytes, where(warp, *op, lane), address));
}

}  // namespace kiln::engine
