// SPDX-License-Identifier: Apache-2.0
// What does tuning leave behind? Every configuration that was tried and what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

inline constexpr int kTuneFormat = 1;

struct TuneSpace {
  std::vector<std::pair<std::string, std::vector<std::string>>> params;  // axes and their values
  Json where;                                                            // constraints, as written
  uint64_t size = 0;
  std::optional<uint64_t> allowed;  // none: not counted
};

struct TuneOutcome {
  std::vector<std::string> defines;  // "BLOCK=64"
  std::string fate;                  // "timed", "pruned", ...
  std::optional<double> us, low_us, high_us;
  std::optional<std::string> reason;  // it was not timed
  std::optional<Json> facts;          // registers, shared_bytes, seconds to build, ...
};

struct TuneFinalist {
  std::vector<std::string> defines;
  double us = 0, low_us = 0, high_us = 0;
  std::vector<double> ratio;  // to the first, with its interval
};

struct TuneSeconds {
  double total = 0, build = 0, measure = 0, total_over_longer_lane = 0;
};

struct TuneResult {
  int format = kTuneFormat;
  std::string name, op;
  std::vector<std::string> arguments, check;
  Json device;
  std::string date, kiln;
  TuneSpace space;
  std::string mode;  // "exhaustive" or "search"
  bool timed = false;
  std::optional<bool> time_is_over;
  std::vector<std::pair<std::string, int64_t>> counts;  // of each fate
  std::optional<TuneFinalist> best;
  std::vector<TuneFinalist> finalists;
  TuneSeconds seconds;
  std::optional<std::vector<std::string>> findings;
  std::vector<TuneOutcome> outcomes;
};

Json to_json(const TuneResult& result);
Result<TuneResult> read_tune(const Json& json, std::string_view source);

// A text of the device, such as "name" or "compute"; "" for what it does not have.
std::string device_fact(const TuneResult& result, const char* key);

}  // namespace kiln::results
