// SPDX-License-Identifier: Apache-2.0
// Which GPU is a bound computed for?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kiln::counters {

struct Gpu {
  std::string_view name;
  uint32_t arch = 0;  // 90
  uint32_t multiprocessors = 0;
  double clock_mhz = 0;  // the highest that its datasheet names
  double dram_gb_per_s = 0;
  double l2_mb = 0;
  double l2_bytes_per_clock = 0;  // 0 here and below: not known
  double fp32_tflops = 0, fp64_tflops = 0;
  double tensor_tflops = 0, tensor8_tflops = 0;
  double blocks_per_clock = 0;  // that it starts; 0: not measured
  std::string_view source;

  uint64_t l2_bytes() const { return static_cast<uint64_t>(l2_mb * 1024 * 1024); }
  // "9.0", as --arch takes it.
  std::string arch_text() const;
};

std::span<const Gpu> gpus();
// Upper and lower case are one. An unknown name is an error that lists those there are.
Result<const Gpu*> find_gpu(std::string_view name);

// By the name that a driver gives it: "NVIDIA A100-SXM4-80GB".
Result<const Gpu*> gpu_of_device(std::string_view device);

}  // namespace kiln::counters
