// SPDX-License-Identifier: Apache-2.0
#include "results/lane_access.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, LaneAddress& one) {
  field("lane", one.lane);
  field("address", one.address);
}

template <class Fields>
static void describe(Fields& field, LaneAccess& access) {
  field("kind", access.kind);
  field("space", access.space);
  field("where", access.where);
  field("line", access.line);
  field("bytes", access.bytes);
  field("turns", access.turns);
  field("lanes", access.lanes);
}

Result<LaneAccess> read_lane_access(const Json& json, std::string_view source) {
  TRY(LaneAccess access, read<LaneAccess>(json, source));
  const auto wrong = [&](std::string_view why) {
    return Error{Fault::Work, fmt::format("cannot read {}", source), std::string(why),
                 "make the trace again with kiln call --accesses"};
  };
  if (access.bytes < 1 || access.bytes > 256)
    return wrong("a lane accesses between 1 and 256 bytes");
  for (const LaneAddress& one : access.lanes)
    if (one.lane < 0 || one.lane > 31) return wrong("a warp has lanes 0 to 31");
  return access;
}

}  // namespace kiln::results
