// SPDX-License-Identifier: Apache-2.0
// How are variants built and measured on this machine? By one `kiln build` a variant, as many side
// by side as cores and memory allow, behind one process that measures.
#pragma once

#include <map>
#include <memory>

#include "build/plan/request.h"
#include "sys/children.h"
#include "tune/workers.h"

namespace kiln::tune {

struct LocalPlan {
  sys::fs::path kiln;      // the command
  build::Request request;  // what is built; a variant's defines come after its own
  sys::fs::path folder;    // a folder of each variant goes below it
  sys::Environment env;    // of all children
  size_t builders = 1;
  std::vector<std::string> lane;  // the command line of a lane; the program's path first
};

// The words of a command line of `kiln build` that ask for this, without the first two.
std::vector<std::string> build_words(const build::Request& request);

class LocalWorkers final : public Workers {
 public:
  // Starts the lane, and fails where it cannot tell what it measures on.
  static Result<std::unique_ptr<LocalWorkers>> open(LocalPlan plan);

  // What later builds take; the architecture is known once a lane has said what it measures on.
  build::Request& request() { return plan_.request; }
  size_t builders() const override { return plan_.builders; }
  const std::vector<Json>& lanes() const override { return devices_; }
  Status build(uint64_t id, const std::vector<std::string>& defines) override;
  Status measure(size_t lane, uint64_t id, const Json& request) override;
  Result<std::vector<WorkEvent>> wait(double seconds) override;
  Status restart_lane(size_t lane) override;
  void stop_build(uint64_t id) override;
  void forget(uint64_t id) override;

 private:
  explicit LocalWorkers(LocalPlan plan) : plan_(std::move(plan)) {}
  Status start_lane();
  Status see_hello(const sys::ChildEvent& event);
  sys::fs::path folder_of(uint64_t id) const;

  LocalPlan plan_;
  sys::Children children_;
  std::map<int, uint64_t> builds_;  // child, variant
  int lane_ = 0;                    // child
  std::vector<Json> devices_;
  std::vector<sys::ChildEvent> early_;  // came while a lane was started
};

}  // namespace kiln::tune
