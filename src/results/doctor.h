// SPDX-License-Identifier: Apache-2.0
// What did `kiln doctor` find? Checks by area, and the facts that they looked at.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "results/fields.h"

namespace kiln::results {

// A verdict is "skip" (there is nothing here that the check could be about), "ok", "warning" or
// "fault".
struct DoctorArea {
  std::string name;     // "Build tools"
  std::string verdict;  // the worst of its checks
  std::string summary;
};

struct DoctorCheck {
  int number = 0;
  std::string name;  // "ninja"
  std::string area;
  std::string verdict;
  std::string reason;
  std::string fix;            // a command where one does it
  bool fixes_itself = false;  // `kiln doctor --fix` does it
};

struct DoctorReport {
  std::string verdict;  // the worst of all
  std::vector<DoctorArea> areas;
  std::vector<DoctorCheck> checks;
  Named<std::string> facts;  // "ninja": "1.13.0 at /usr/bin/ninja"
};

Json to_json(const DoctorReport& report);

}  // namespace kiln::results
