// SPDX-License-Identifier: Apache-2.0
// What does `kiln doctor` report? The results of its checks by area, with the facts behind them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "doctor/check.h"
#include "results/doctor.h"

namespace kiln::doctor {

results::DoctorReport report_of(const Facts& facts, const std::vector<CheckResult>& found);

// "ninja", "1.13.0 at /usr/bin/ninja": what was found, for people.
std::vector<std::pair<std::string, std::string>> list_facts(const Facts& facts);

// docs/guide/troubleshooting.md: every check by the words of its symptom.
std::string troubleshooting_page();

}  // namespace kiln::doctor
