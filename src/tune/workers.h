// SPDX-License-Identifier: Apache-2.0
// Who builds variants and who measures them? Builders side by side, and lanes that measure one
// variant at a time each: processes of this machine (local_workers.h), of several machines
// (ray_workers.h), or what a test makes up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::tune {

struct WorkEvent {
  enum class Kind { Built, Measured, LaneEnded };
  Kind kind = Kind::Built;
  uint64_t id = 0;    // of the variant; of a lane that ended: what it was at, 0 for anything
  size_t lane = 0;    // of a measurement
  Json answer = {};   // Built: {"library", "seconds"} or {"error"}; Measured: measure/lane.h
  std::string words;  // LaneEnded: how and with which last words
};

class Workers {
 public:
  virtual ~Workers() = default;
  // How many builds may go on at a time.
  virtual size_t builders() const = 0;
  // What each lane measures on: measure::DeviceFacts as JSON.
  virtual const std::vector<Json>& lanes() const = 0;
  virtual Status build(uint64_t id, const std::vector<std::string>& defines) = 0;
  virtual Status measure(size_t lane, uint64_t id, const Json& request) = 0;
  // What happened, or nothing after that time.
  virtual Result<std::vector<WorkEvent>> wait(double seconds) = 0;
  // Ends what the lane does; a new one takes its place and shows that the device can be used.
  virtual Status restart_lane(size_t lane) = 0;
  virtual void stop_build(uint64_t id) = 0;
  // Its library is not needed any more.
  virtual void forget(uint64_t id) = 0;
};

// "" when all lanes measure on the same kind of GPU; else why their times cannot be compared.
std::string mixed_lanes(const std::vector<Json>& lanes);

}  // namespace kiln::tune
