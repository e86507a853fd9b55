// SPDX-License-Identifier: Apache-2.0
// What does the file of tuned configurations contain? tuned.json, which builds and loads read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

inline constexpr int kTunedFormat = 1;

struct TunedEntry {
  std::string op;
  std::vector<std::string> arguments;  // "bf16 32x16x512x128", "is_causal=true"
  std::string gpu, compute;            // "NVIDIA H200", "9.0"
  std::vector<std::string> defines;
  double us = 0;
  std::string date, kiln;
  // The defines that every variant had: a load that serves this shape alone has them too.
  std::vector<std::string> with;
  std::string arch;  // that the variants were built for: "9.0a"
};

struct TunedFile {
  int format = kTunedFormat;
  std::vector<TunedEntry> entries;
};

Json to_json(const TunedEntry& entry);
Json to_json(const TunedFile& file);
// An error names `source`; one that says another version too.
Result<TunedFile> read_tuned(const Json& json, std::string_view source);

}  // namespace kiln::results
