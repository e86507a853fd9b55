// SPDX-License-Identifier: Apache-2.0
// Which ops ran, each under its caller, down to the kernels? python/kiln/profiling.py writes it;
// text and page are drawn from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

struct ProfileKernel {
  std::string name;
  double us = 0;
  std::optional<std::vector<int64_t>> grid, block;  // none for copies and fills
  std::optional<double> registers, shared_bytes, occupancy, bytes;
  Json stream;  // a number, or "engine"
};

struct ProfileNode {
  std::string name, shapes;
  double begin_us = 0, cpu_us = 0, cpu_self_us = 0, gpu_us = 0, gpu_self_us = 0;
  std::vector<ProfileKernel> kernels;
  std::vector<ProfileNode> children;
};

struct ProfileSpan {
  std::string kind, name, lane;  // "op" or "kernel"
  double begin_us = 0, us = 0;
};

struct Profile {
  std::string title, time, verdict;  // "GPU time" or "engine time"
  double wall_us = 0, gpu_us = 0;
  std::optional<double> gpu_idle;  // a share; none on the engine
  int64_t kernel_count = 0;
  std::vector<ProfileNode> tree;
  std::vector<ProfileSpan> timeline;

  bool on_gpu() const { return time == "GPU time"; }
};

Json to_json(const Profile& profile);
Result<Profile> read_profile(const Json& json, std::string_view source);

}  // namespace kiln::results
