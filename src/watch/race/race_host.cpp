// SPDX-License-Identifier: Apache-2.0
// How do copies, fills and frees race with kernels of other streams? Where only the default stream
// is used nothing can, and nothing is looked at.
#include <algorithm>

#include "watch/race/race.h"

namespace kiln::watch {

using namespace engine;
using namespace race;

void RaceChecker::on(const HostEvent& event) {
  if (event.code != 0) return;
  switch (event.kind) {
    case HostKind::Allocate:
      global_.forget(event.to.at, event.width);
      return;
    case HostKind::Free:
      if (!event.by.program && !event.waits) check_free(event);
      global_.forget(event.to.at, event.width);
      return;
    case HostKind::Copy:
    case HostKind::Fill: {
      const HostOrder::Operation by = host_.begin(event.stream, 1, 0, event.waits);
      if (host_.single()) return;
      host_access(event, by, event.to, true);
      if (event.kind == HostKind::Copy) host_access(event, by, event.from, false);
      return;
    }
    default:
      host_.on(event);
  }
}

void RaceChecker::host_access(const HostEvent& event, const HostOrder::Operation& by,
                              const Rows& rows, bool writes) {
  Entry mine;
  mine.key = places_.host_key(writes, event.stream);
  mine.key.bits |= 2u << Key::kSizeShift;
  mine.block = by.first_uid;
  mine.warps = mine.lanes = 1;
  Accessor me;
  me.uid = me.launch_uid = by.first_uid;
  me.floor = host_.floor();
  // Whole slices and rows that follow each other are one range.
  const bool one = (event.height == 1 || rows.pitch == event.width) &&
                   (event.depth == 1 || rows.slice == rows.pitch * event.height);
  if (one) {
    host_range(rows.at, event.width * event.height * event.depth, mine, me);
    return;
  }
  for (uint64_t z = 0; z < event.depth; ++z) {
    for (uint64_t y = 0; y < event.height; ++y)
      host_range(rows.at + z * rows.slice + y * rows.pitch, event.width, mine, me);
  }
}

void RaceChecker::host_range(uint64_t address, uint64_t bytes, Entry mine, Accessor& me) {
  const uint64_t end = address + bytes;
  while (address < end) {
    const uint64_t in_word = address % kWordBytes;
    uint64_t step = std::min(end - address, kLineBytes - address % kLineBytes);
    if (in_word || step < kWordBytes) {
      step = std::min(step, kWordBytes - in_word);
      mine.key.bits = (mine.key.bits & ~15u) | static_cast<uint32_t>(((1u << step) - 1) << in_word);
    } else {
      step &= ~uint64_t{kWordBytes - 1};
      mine.key.bits |= 15u;
    }
    const uint64_t word = address % kLineBytes / kWordBytes;
    const uint64_t words = (in_word + step + kWordBytes - 1) / kWordBytes;
    mine.words = static_cast<uint32_t>(((uint64_t{1} << words) - 1) << word);
    if (Line* line = global_.line(address)) {
      me.line_address = address & ~uint64_t{kLineBytes - 1};
      checker_.access(*line, mine, me);
    }
    address += step;
  }
}

// A free that waits for nobody is a write of all its bytes, by the stream it is in.
void RaceChecker::check_free(const HostEvent& event) {
  const HostOrder::Operation by = host_.begin(event.stream, 1, 0, false);
  if (host_.single()) return;
  Entry mine;
  mine.key = places_.free_key(event.stream);
  mine.key.bits |= 2u << Key::kSizeShift | 15u;
  mine.block = by.first_uid;
  mine.warps = mine.lanes = 1;
  Accessor me;
  me.uid = me.launch_uid = by.first_uid;
  me.floor = host_.floor();
  const uint64_t end = event.to.at + event.width;
  mine.words = ~0u;
  for (uint64_t line = event.to.at & ~uint64_t{kLineBytes - 1}; line < end;) {
    Line* kept = global_.find(line);
    const uint64_t stop = std::min(end, (line | (GlobalShadow::kPageBytes - 1)) + 1);
    for (; kept && line < stop; line += kLineBytes, ++kept) {
      me.line_address = line;
      if (kept->is_touched()) checker_.access(*kept, mine, me);
    }
    line = std::max(line, stop);
  }
}

}  // namespace kiln::watch
