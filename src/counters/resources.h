// SPDX-License-Identifier: Apache-2.0
// What does ptxas say about the kernels of a run? Registers, spills and occupancy, from the cubin
// beside the PTX that ran.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "counters/gpus.h"
#include "results/counter_report.h"

namespace kiln::counters {

// Reads each file once.
class CubinReader {
 public:
  explicit CubinReader(const Gpu& gpu) : gpu_(gpu) {}
  // Fills in resources, or why there are none; changes the counts of the launch to what its SASS
  // does (sass.h). `program` is the kernel's own, or null.
  void add_resources(const results::CounterProgram* program, results::CounterLaunch* launch,
                     results::LaunchReport* report);

 private:
  struct File;
  File& open(const std::string& path);

  const Gpu& gpu_;
  std::map<std::string, std::shared_ptr<File>> files_;
};

}  // namespace kiln::counters
