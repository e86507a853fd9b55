// SPDX-License-Identifier: Apache-2.0
// How is what `kiln doctor` found shown? One line an area; below it what is not right, why, and the
// command that fixes it.
#pragma once

#include <string>

#include "results/doctor.h"

namespace kiln::report {

struct DoctorStyle {
  bool color = false;
  bool verbose = false;  // every check, and the facts
};

std::string doctor_text(const results::DoctorReport& report, const DoctorStyle& style);

}  // namespace kiln::report
