// SPDX-License-Identifier: Apache-2.0
#include "watch/trace.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>

#include "base/json.h"
#include "engine/machine/fault.h"

namespace kiln::watch {
namespace {

using namespace engine;

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view name_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::Load:
      return "load";
    case AccessKind::Store:
      return "store";
    case AccessKind::Atomic:
      return "atomic";
    case AccessKind::Reduction:
      break;
  }
  return "reduction";
}

std::string_view name_of(Strength strength) {
  switch (strength) {
    case Strength::Weak:
      return "weak";
    case Strength::Relaxed:
      return "relaxed";
    case Strength::Acquire:
      return "acquire";
    case Strength::Release:
      return "release";
    case Strength::AcquireRelease:
      return "acq_rel";
    case Strength::Volatile:
      return "volatile";
    case Strength::Sequential:
      break;
  }
  return "sc";
}

// A generic address determines its space; `address` becomes one inside that space.
std::string_view space_of(const AccessEvent& event, uint64_t* address) {
  switch (event.space) {
    case ptx::Space::Shared:
      return "shared";
    case ptx::Space::Local:
      return "local";
    case ptx::Space::Generic:
      if (*address >> 56 == kSharedTag) {
        *address &= ~kSharedWindow;
        return "shared";
      }
      if (*address >> 56 == kLocalTag) {
        *address &= ~kLocalWindow;
        return "local";
      }
      return "global";
    case ptx::Space::Const:
      return "const";
    default:
      return "global";
  }
}

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

}  // namespace

std::string AccessTrace::region_text(const AccessEvent& event) {
  const uint64_t address = event.address(first_lane(event.by.mask));
  const auto region = memory_ ? memory_->owner(address) : std::nullopt;
  if (!region) return "";
  std::string out = fmt::format(",\"offset\":{}", address - region->begin);
  if (region->name && region->name[0]) out += fmt::format(",\"in\":{}", json_text(region->name));
  return out;
}

// Thousands of lines name one place, and finding its text took longer than the rest of a line.
const std::string& AccessTrace::place_text(const Actor& by) {
  std::vector<std::string>& of = places_[by.program];
  of.resize(by.program->sites.size());
  std::string& text = of[by.site];
  if (text.empty()) {
    Op op;
    op.site = by.site;
    text = json_text(place_of(*by.program, op));
  }
  return text;
}

void AccessTrace::on(const LaunchEvent& event) {
  if (!event.ended) {
    memory_ = event.memory;
    launch_ = event.number;
    write_(fmt::format("{{\"launch\":{},\"kernel\":{},\"grid\":[{},{},{}],\"block\":[{},{},{}]}}\n",
                       event.number, json_text(demangled(event.program->name)), event.grid.x,
                       event.grid.y, event.grid.z, event.block.x, event.block.y, event.block.z));
    return;
  }
  memory_ = nullptr;
  places_.clear();  // programs go away with their library
  write_(
      fmt::format("{{\"launch\":{},\"ended\":true,\"code\":{},\"written\":{},\"left_out\":{}}}\n",
                  event.number, event.code, written_, left_out_));
  launch_ended_();
}

void AccessTrace::on(const AccessEvent& event) {
  if (event.by.mask == 0) return;
  if (written_ == most_) {
    ++left_out_;
    return;
  }
  ++written_;
  uint64_t first = event.address(first_lane(event.by.mask));
  const std::string_view space = space_of(event, &first);
  std::string line = fmt::format(
      "{{\"launch\":{},\"block\":{},\"warp\":{},\"lanes\":\"{:08x}\",\"kind\":\"{}\","
      "\"space\":\"{}\",\"bytes\":{},\"at\":{},\"ptx_line\":{}",
      launch_, event.by.block, event.by.warp, event.by.mask, name_of(event.kind), space,
      event.bytes, place_text(event.by), event.by.program->sites[event.by.site].ptx_line);
  auto out = std::back_inserter(line);
  if (event.strength != Strength::Weak)
    fmt::format_to(out, ",\"order\":\"{}\"", name_of(event.strength));
  if (event.async) line += ",\"async\":true";
  if (event.shape == AddressShape::Lanes || event.shape == AddressShape::Rows) {
    line += ",\"addresses\":[";
    for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
      uint64_t address = event.address(first_lane(rest));
      space_of(event, &address);
      fmt::format_to(out, "{}{}", rest == event.by.mask ? "" : ",", address);
    }
    line += "]";
  } else {
    fmt::format_to(out, ",\"address\":{},\"step\":{}", first,
                   event.shape == AddressShape::Run ? static_cast<int64_t>(event.step) : 0);
  }
  if (space == "global") line += region_text(event);
  line += "}\n";
  write_(line);
}

}  // namespace kiln::watch
