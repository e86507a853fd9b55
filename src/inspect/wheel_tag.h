// SPDX-License-Identifier: Apache-2.0
// How old a system can a library run on? The newest versions of glibc and libstdc++ that it needs,
// and the wheel tag they allow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "binary/symbols.h"

namespace kiln::inspect {

struct SystemFloor {
  std::string glibc, glibcxx, cxxabi;  // "2.34"; empty when none is needed
  std::string tag;  // "manylinux_2_34_aarch64", "linux_aarch64" when no tag allows it
  std::vector<std::string> reasons;  // the versions that keep it from the next older tag
  // Libraries that no manylinux promises: a wheel has to bring them, or leave them to a package it
  // depends on.
  std::vector<std::string> outside;
};

SystemFloor system_floor(const std::vector<binary::NeededVersion>& versions,
                         const std::vector<std::string_view>& needed, std::string_view machine);

// -1, 0 or 1: versions of numbers and dots.
int compare_versions(std::string_view a, std::string_view b);

}  // namespace kiln::inspect
