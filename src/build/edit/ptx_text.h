// SPDX-License-Identifier: Apache-2.0
// Are two texts of PTX the same to the host, and the same code? Line information and comments do
// not count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

// The kernels, in their order: "_Z10add_kernelIfEvPT_".
std::vector<std::string> entry_names(std::string_view ptx);

// What a host that was compiled for `before` would find different in `after`: a kernel, its
// parameters, a variable.
std::string why_interface_differs(std::string_view before, std::string_view after);

// The same, and the instructions of every function that `before` has.
std::string why_code_differs(std::string_view before, std::string_view after);

}  // namespace kiln::build
