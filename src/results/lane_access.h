// SPDX-License-Identifier: Apache-2.0
// Which bytes did each lane of a warp touch in one instruction? One row of an access trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

struct LaneAddress {
  int64_t lane = 0, address = 0;  // from the start of the tensor, or of the block's shared memory
};

struct LaneAccess {
  std::string kind, space;         // "load", "shared"
  std::string where;               // the tensor; may be empty
  int64_t line = 0;                // of the source
  int64_t bytes = 0;               // of each lane
  int64_t turns = 0;               // of shared memory: how often it has to serve the access
  std::vector<LaneAddress> lanes;  // those that take part
};

Result<LaneAccess> read_lane_access(const Json& json, std::string_view source);

}  // namespace kiln::results
