// SPDX-License-Identifier: Apache-2.0
// Where are the programs that `kiln setup` installed? Everybody who needs one looks there too,
// without its env file.
#pragma once

#include "sys/env.h"
#include "sys/files.h"

namespace kiln::project {

// XDG_DATA_HOME or ~/.local/share, then "kiln". Empty where neither is set.
sys::fs::path setup_folder(const sys::Environment& env);

// Programs in it.
inline constexpr const char* kSetupNinja = "ninja/bin/ninja";
inline constexpr const char* kSetupNvcc = "cuda/nvidia/cu13/bin/nvcc";
inline constexpr const char* kSetupNvdisasm = "nvdisasm/nvidia/cu13/bin/nvdisasm";
// One of them that is there; else empty.
sys::fs::path setup_program(const sys::Files& files, const sys::Environment& env,
                            const char* program);

}  // namespace kiln::project
