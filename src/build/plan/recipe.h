// SPDX-License-Identifier: Apache-2.0
// Which programs does nvcc start for given flags? From `nvcc --dryrun`, so that kiln can start
// them itself: the host chain and each architecture's device chain side by side.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kiln::build {

using Words = std::vector<std::string>;

// In the words of a recipe a file is kFile + its role: "ii" (host code, preprocessed), "cpp" (what
// cudafe++ makes of it), "stub.c", "fatbin.c", "module_id", "o", and for an architecture "90a.ii",
// "90a.ptx", "90a.sm_90a.cubin", "90a.stub.c", "90a.c", "90a.gpu".
inline constexpr std::string_view kFile = "\x02";
// Stands for the source's path.
inline constexpr std::string_view kSource = "\x03";
// What the dry run is asked about: no such file needs to be there.
inline constexpr std::string_view kDryRunSource = "/kiln/source.cu";
inline constexpr std::string_view kDryRunObject = "/kiln/source.o";

struct Assembly {
  std::string sm;  // "90a"
  Words ptxas;
};

struct DeviceRecipe {
  std::string compute;  // "90a"
  Words preprocess, cicc;
  std::vector<Assembly> assemblies;
};

struct Recipe {
  std::vector<std::pair<std::string, std::string>> env;  // what nvcc sets for the programs
  Words preprocess, cudafe;                              // of the host code
  std::vector<DeviceRecipe> devices;
  std::string stub_compute;  // the architecture whose stub the host code includes
  Words fatbinary, compile;
};

// Nothing when the dry run holds a program or a file of an unknown kind: then nvcc has to do it by
// itself.
std::optional<Recipe> parse_dryrun(std::string_view text);

std::string write_recipe(const Recipe& recipe);
std::optional<Recipe> read_recipe(std::string_view text);

}  // namespace kiln::build
