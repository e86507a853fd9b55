// SPDX-License-Identifier: Apache-2.0
// How does a fat binary get into a library without a compiler? As an object file of one section and
// one symbol.
#pragma once

#include <string>
#include <string_view>

namespace kiln::build {

// An ELF64 relocatable of this machine: `fat_binary` in .nv_fatbin, at `symbol`, hidden.
std::string fat_object(std::string_view fat_binary, std::string_view symbol);

}  // namespace kiln::build
