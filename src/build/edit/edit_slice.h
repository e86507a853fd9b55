// SPDX-License-Identifier: Apache-2.0
// What does NVRTC make of a source without what is the host's, and is it what nvcc makes of it?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build/edit/nvrtc.h"
#include "build/run/work.h"

namespace kiln::build {

inline constexpr std::string_view kRight = "right";

struct Made {
  std::vector<std::pair<std::string, std::string>> files;  // name -> content
  std::vector<std::string> findings;                       // of ptxas
};

// Why NVRTC cannot be asked at all; empty when it can.
std::string why_no_nvrtc(const Work& work, const Source& source);

// Every architecture's code of the slice. With `must_equal` it has to be nvcc's PTX of the linked
// code; else kernels, parameters and variables have to be the same.
Result<Made> compile_slice(const Work& work, const Source& source, const Nvrtc& nvrtc,
                           const std::string& slice, bool must_equal);

// Does NVRTC make of the linked source's slice what nvcc made of it? kRight, or why not. Found once
// for a source, its flags and a libnvrtc.
std::string slice_verdict(const Work& work, const Source& source, const Nvrtc& nvrtc);

// What slice_verdict found, if it was asked of the libnvrtc that is there now.
std::optional<std::string> known_verdict(const Work& work, const Source& source);

}  // namespace kiln::build
