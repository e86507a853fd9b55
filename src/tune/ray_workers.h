// SPDX-License-Identifier: Apache-2.0
// How are variants built and measured on several machines? By Ray's actors, behind one process of
// Python that speaks with them (python/kiln/_processes/tune_ray.py), line by line:
//   {"do": "open", "address", "target", "words", "folder", "device"}
//       {"ready": {"builders", "lanes"}} or {"error"}
//   {"do": "build", "id", "defines"}
//       {"built": id, "answer"}
//   {"do": "measure", "lane", "id", "request"}
//       {"measured": id, "lane", "answer"} or {"lane_ended": lane, "id", "words"}
//   {"do": "restart", "lane"}
//       {"restarted": lane, "device"} or {"error"}
// Libraries and right results travel as bytes: the machines share no disk.
#pragma once

#include <memory>

#include "build/plan/request.h"
#include "sys/children.h"
#include "tune/workers.h"

namespace kiln::tune {

struct RayPlan {
  std::vector<std::string> bridge;  // the command line of the process of Python
  sys::Environment env;
  std::string address;     // "local": a cluster of this machine alone, for as long as this takes
  build::Request request;  // its first target is a file or a project that goes to every machine
  sys::fs::path folder;    // libraries come here
  std::string device;      // "cuda", "engine" or "": the GPUs, if there is any
};

class RayWorkers final : public Workers {
 public:
  static Result<std::unique_ptr<RayWorkers>> open(RayPlan plan);

  build::Request& request() { return plan_.request; }
  size_t builders() const override { return builders_; }
  const std::vector<Json>& lanes() const override { return devices_; }
  Status build(uint64_t id, const std::vector<std::string>& defines) override;
  Status measure(size_t lane, uint64_t id, const Json& request) override;
  Result<std::vector<WorkEvent>> wait(double seconds) override;
  Status restart_lane(size_t lane) override;
  void stop_build(uint64_t) override {}
  void forget(uint64_t id) override;

 private:
  explicit RayWorkers(RayPlan plan) : plan_(std::move(plan)) {}
  // The first line for which `wanted` is true; the others are kept for wait().
  Result<Json> line_with(const char* key, double limit_s);

  RayPlan plan_;
  sys::Children children_;
  int bridge_ = 0;
  size_t builders_ = 0;
  std::vector<Json> devices_;
  std::vector<Json> early_;
};

}  // namespace kiln::tune
