// SPDX-License-Identifier: Apache-2.0
// How does tuning go on after it was killed? Every outcome is a line of JSON, appended and flushed
// when it is known.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/files.h"
#include "tune/space.h"

namespace kiln::tune {

// What became of a configuration. Checked: right, and not timed, for there was no GPU.
enum class Fate { Timed, Checked, Forbidden, Unbuildable, Pruned, Wrong, Crashed, Hung };
std::string_view name_of(Fate fate);

struct Outcome {
  std::vector<std::string> defines;
  Fate fate = Fate::Timed;
  double time_us = 0;  // of a timed one: the median
  double low_us = 0, high_us = 0;
  std::string reason;           // why it was not timed
  Json facts = Json::object();  // registers, shared bytes, spills, seconds to build, ...
};

Json to_json(const Outcome& outcome);
Result<Outcome> outcome_from_json(const Json& line);

class Journal {
 public:
  // `subject` says what is tuned on what: sources, op, arguments, GPU, versions. A journal of
  // another subject is refused, naming the first member that differs; a last line that was cut off
  // is dropped.
  static Result<Journal> open(sys::Files& files, const sys::fs::path& path, const Json& subject);

  // What the file had when it was opened, then what was added.
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  // Runs over other values of the same defines share a file, so that nothing is timed twice. From
  // here on outcomes() has only those of this space.
  void keep_those_of(const Space& space);
  Status add(Outcome outcome);

 private:
  sys::fs::path path_;
  std::ofstream out_;
  std::vector<Outcome> outcomes_;
};

}  // namespace kiln::tune
