// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/memory_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "watch/sanitize/objects.h"

namespace kiln::watch {

using namespace engine;
using results::Finding;
using results::FindingObject;
using results::Rule;

void FreedMemory::add(Freed freed) {
  order_.push_back(freed.begin);
  by_begin_[freed.begin] = std::move(freed);
  if (order_.size() <= kMost) return;
  by_begin_.erase(order_.front());
  order_.pop_front();
}

void FreedMemory::allocated(uint64_t begin, uint64_t bytes) {
  auto at = by_begin_.upper_bound(begin);
  if (at != by_begin_.begin() && begin - std::prev(at)->first < std::prev(at)->second.bytes) --at;
  while (at != by_begin_.end() && at->first < begin + bytes) at = by_begin_.erase(at);
}

const FreedMemory::Freed* FreedMemory::find(uint64_t address) const {
  const auto above = by_begin_.upper_bound(address);
  if (above == by_begin_.begin()) return nullptr;
  const Freed& candidate = std::prev(above)->second;
  return address - candidate.begin < std::max<uint64_t>(candidate.bytes, 1) ? &candidate : nullptr;
}

namespace {

std::string_view verb(AccessKind kind) {
  return kind == AccessKind::Load ? "read" : kind == AccessKind::Store ? "write" : "atomic access";
}

std::string action_of(const FaultEvent& fault) {
  return fmt::format("{} of {} byte{}", verb(fault.access), fault.bytes,
                     fault.bytes == 1 ? "" : "s");
}

std::string_view space_text(ptx::Space space) {
  switch (space) {
    case ptx::Space::Shared:
      return "shared";
    case ptx::Space::Local:
      return "local";
    case ptx::Space::Const:
      return "constant";
    case ptx::Space::Param:
      return "parameter";
    default:
      return "global";
  }
}

uint32_t lane_of(const FaultEvent& fault) {
  return static_cast<uint32_t>(std::countr_zero(fault.by.mask));
}

std::string bytes_text(uint64_t bytes) {
  return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

// Where an address is, seen from the nearest region.
std::string distance_text(const FindingObject& object, const Region& region, uint64_t address,
                          uint32_t bytes) {
  const std::string what = text_of(object);
  if (address < region.begin)
    return fmt::format("it is {} before the start of {}", bytes_text(region.begin - address), what);
  const uint64_t over = address - region.begin, size = region.end - region.begin;
  if (address < region.end)
    return fmt::format("it runs {} over the end of {}", bytes_text(address + bytes - region.end),
                       what);
  if (bytes && over % bytes == 0 && over < 2 * size)
    return fmt::format("it is element {} of {}, which has {} of this size", over / bytes, what,
                       size / bytes);
  return fmt::format("it is {} behind the end of {}", bytes_text(address - region.end), what);
}

}  // namespace

bool MemoryChecker::recovers(const FaultEvent& fault) {
  if (!collector_.launch()) return false;
  switch (fault.kind) {
    case FaultKind::Index:
      bad_index(fault);
      break;
    case FaultKind::Alignment:
      bad_alignment(fault);
      break;
    case FaultKind::ReadOnly:
      bad_write(fault);
      break;
    case FaultKind::Bounds:
      bad_address(fault);
      break;
    default:
      break;
  }
  return false;
}

void MemoryChecker::bad_index(const FaultEvent& fault) {
  const SiteId site = collector_.sites().id_of(fault.by);
  index_lines_.insert(collector_.sites()[site].line_id);
  Finding* finding = collector_.found(Rule::IndexOutOfBounds, site);
  if (!finding) return;
  const LaunchEvent& launch = *collector_.launch();
  std::string what = "a View";
  const uint64_t tag = fault.address >> 56;
  if (tag == kSharedTag) {
    what = "a View of shared memory";
  } else if (tag != kLocalTag) {
    finding->object = global_object(*launch.memory, fault.address, 0);
    if (!finding->object->name.empty()) what = text_of(*finding->object);
  }
  finding->message = fmt::format("index {} is outside dimension {} of {}, which has {} elements",
                                 fault.index, fault.dimension, what, fault.size);
  finding->places.push_back(
      collector_.place(site, who(launch.number, fault.by, lane_of(fault)),
                       fmt::format("index {} of {}", fault.index, fault.size)));
  finding->advice =
      fault.index < 0
          ? "guard the access with `if (index >= 0)`, or begin one element later"
          : fmt::format("guard the access with `if (index < x.size({}))`", fault.dimension);
}

void MemoryChecker::bad_alignment(const FaultEvent& fault) {
  const SiteId site = collector_.sites().id_of(fault.by);
  Finding* finding = collector_.found(Rule::Misaligned, site);
  if (!finding) return;
  const LaunchEvent& launch = *collector_.launch();
  finding->object = fault.space == ptx::Space::Shared
                        ? shared_object(launch, fault.address, fault.bytes)
                        : global_object(*launch.memory, fault.address, fault.bytes);
  finding->message = fmt::format("address of {} in {} memory is not a multiple of {}",
                                 action_of(fault), space_text(fault.space), fault.bytes);
  if (!finding->object->kind.empty())
    finding->notes.push_back(fmt::format("the address is {} + {} bytes", text_of(*finding->object),
                                         finding->object->offset_bytes));
  finding->places.push_back(
      collector_.place(site, who(launch.number, fault.by, lane_of(fault)), action_of(fault)));
  finding->advice =
      "use an access of the element's own size where the address is not aligned, or align the data";
}

void MemoryChecker::bad_write(const FaultEvent& fault) {
  const SiteId site = collector_.sites().id_of(fault.by);
  const LaunchEvent& launch = *collector_.launch();
  const FindingObject object = global_object(*launch.memory, fault.address, fault.bytes);
  // Memory without a name that is not to be written has the kernel's own parameters: a pointer that
  // leads there was not meant to.
  const bool astray = object.name.empty();
  Finding* finding = collector_.found(astray ? Rule::OutOfBounds : Rule::WriteToInput, site);
  if (!finding) return;
  if (astray) {
    finding->message = fmt::format("{} in global memory is out of bounds", action_of(fault));
    finding->notes.push_back("the address is inside the kernel's parameters");
  } else {
    finding->object = object;
    finding->message = fmt::format("write to {}, which the op may only read", text_of(object));
  }
  finding->places.push_back(
      collector_.place(site, who(launch.number, fault.by, lane_of(fault)), action_of(fault)));
  finding->advice =
      astray ? "compare the index with the size before the access"
             : "write to a tensor that the op makes, or declare the parameter as `Tensor&`";
}

void MemoryChecker::bad_address(const FaultEvent& fault) {
  const SiteId site = collector_.sites().id_of(fault.by);
  // The View's own index check of this line has already reported it, in better words.
  if (index_lines_.contains(collector_.sites()[site].line_id)) return;
  const bool global = fault.space != ptx::Space::Shared && fault.space != ptx::Space::Local;
  const FreedMemory::Freed* freed = global ? freed_.find(fault.address) : nullptr;
  Finding* finding = collector_.found(freed ? Rule::UseAfterFree : Rule::OutOfBounds, site);
  if (!finding) return;
  const LaunchEvent& launch = *collector_.launch();
  finding->message =
      fmt::format("{} in {} memory is out of bounds", action_of(fault), space_text(fault.space));
  if (freed) {
    finding->message = fmt::format("{} in memory that was freed", action_of(fault));
    finding->notes.push_back(fmt::format("byte {} of an allocation of {}, which {} gave back",
                                         fault.address - freed->begin, bytes_text(freed->bytes),
                                         freed->by));
    finding->advice = "free the memory after the last kernel that uses it";
  } else if (fault.variable) {
    left_variable(fault, *finding);
  } else if (!global) {
    finding->object = shared_object(launch, fault.address, fault.bytes);
    if (fault.space == ptx::Space::Local) finding->object.reset();
    finding->notes.push_back(fmt::format(
        "address {} of {} memory, and {} has {}", fault.address, space_text(fault.space),
        fault.space == ptx::Space::Shared ? "the block" : "the thread", bytes_text(fault.limit)));
    finding->advice = launch.dynamic_shared_bytes == 0 && fault.limit == 0
                          ? "ask for shared memory at the launch: the third argument of <<<>>>"
                          : "compare the index with the size of the array before the access";
  } else if (const auto region = launch.memory->nearest(fault.address)) {
    finding->object = global_object(*launch.memory, region->begin, fault.bytes);
    finding->object->index.clear();
    finding->notes.push_back(distance_text(*finding->object, *region, fault.address, fault.bytes));
    finding->advice = "compare the index with the size before the access";
  }
  if (global && fault.address < 4096) {
    finding->object.reset();
    finding->notes = {fmt::format("the pointer is null, or an offset of {} from null",
                                  bytes_text(fault.address))};
    finding->advice = "pass memory that was allocated";
  }
  finding->places.push_back(
      collector_.place(site, who(launch.number, fault.by, lane_of(fault)), action_of(fault)));
}

// The bytes are those of another variable of the block.
void MemoryChecker::left_variable(const FaultEvent& fault, Finding& finding) {
  const LaunchEvent& launch = *collector_.launch();
  const FindingObject hit = shared_object(launch, fault.address, fault.bytes);
  const bool dynamic = fault.variable->bytes == 0;
  const uint64_t begin =
      dynamic ? launch.shared_bytes - launch.dynamic_shared_bytes : fault.variable->offset;
  finding.object = shared_object(launch, begin, fault.bytes);
  finding.object->index.clear();
  finding.notes.push_back(distance_text(*finding.object, {begin, begin + fault.limit, true, ""},
                                        fault.address, fault.bytes));
  if (!hit.name.empty() && hit.name != finding.object->name)
    finding.notes.push_back(fmt::format("there lies {}", indexed_text_of(hit)));
  finding.advice = "compare the index with the size of the array before the access";
}

void MemoryChecker::on(const HostEvent& event) {
  switch (event.kind) {
    case HostKind::Allocate:
      if (event.code) break;
      freed_.allocated(event.to.at, event.width);
      live_[event.to.at] = event.width;
      break;
    case HostKind::Free:
      if (event.code) {
        bad_free(event);
        break;
      }
      freed_.add({event.to.at, event.width, event.call});
      live_.erase(event.to.at);
      break;
    case HostKind::Failed:
      last_failure_ = event.text;
      break;
    case HostKind::Copy:
    case HostKind::Fill:
      if (event.code) bad_copy(event);
      break;
    default:
      break;
  }
}

bool MemoryChecker::is_inside(uint64_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return false;
  --after;
  return address - after->first < after->second;
}

// Frees of the host have no line: what is wrong distinguishes those of one call.
void MemoryChecker::bad_free(const HostEvent& event) {
  const FreedMemory::Freed* freed = freed_.find(event.to.at);
  const bool twice = freed && freed->begin == event.to.at;
  const bool on_device = event.by.program != nullptr;
  const bool other_kind = !twice && event.width != 0;
  const bool inside = !twice && !other_kind && is_inside(event.to.at);
  const SiteId site = on_device ? collector_.sites().id_of(event.by) : kNoSite;
  const std::string message = fmt::format("{} of {}", event.call,
                                          twice        ? "memory that was freed before"
                                          : other_kind ? "memory that another call must free"
                                          : inside     ? "a pointer inside an allocation"
                                                       : "a pointer that was not allocated");
  Finding* finding = collector_.found(twice ? Rule::DoubleFree : Rule::InvalidFree, site, kNoSite,
                                      on_device ? "" : message);
  if (!finding) return;
  finding->message = message;
  if (on_device && collector_.launch()) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(event.by.mask));
    finding->places.push_back(
        collector_.place(site, who(collector_.launch()->number, event.by, lane), event.call));
  } else {
    finding->places.push_back(collector_.host_place(event.call, event.stream));
  }
  if (twice)
    finding->notes.push_back(
        fmt::format("{} gave it back first; it had {}", freed->by, bytes_text(freed->bytes)));
  else
    finding->notes.push_back(fmt::format("the pointer is 0x{:x}", event.to.at));
  finding->advice =
      twice ? "free it once; set the pointer to null behind the free"
      : other_kind
          ? "cudaMallocHost and cudaHostAlloc go with cudaFreeHost, the others with cudaFree"
      : inside ? "free the pointer that the allocation gave, not one inside it"
               : "free what an allocation of CUDA gave, and nothing else";
}

void MemoryChecker::bad_copy(const HostEvent& event) {
  const bool fill = event.kind == HostKind::Fill;
  Finding* finding =
      collector_.found(Rule::HostCopyOutOfBounds, kNoSite, kNoSite,
                       fmt::format("{} {} {}", fill, event.width * event.height, last_failure_));
  if (!finding) return;
  const FreedMemory::Freed* freed = freed_.find(event.to.at);
  if (!freed && !fill) freed = freed_.find(event.from.at);
  finding->message = last_failure_.empty() ? "a copy or fill was refused" : last_failure_;
  if (freed) finding->notes.push_back(fmt::format("the memory was freed by {}", freed->by));
  finding->places.push_back(
      collector_.host_place(fmt::format("{} of {}", fill ? "fill" : "copy",
                                        bytes_text(event.width * event.height * event.depth)),
                            event.stream));
  finding->advice = "give the copy as many bytes as both sides have, counted in bytes";
}

}  // namespace kiln::watch
