// SPDX-License-Identifier: Apache-2.0
// What is a check? A row of checks.def: a pure function of facts, with the words a user meets the
// fault by.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"

namespace kiln::doctor {

// Skip: there is nothing here that it could be about.
enum class Verdict { Skip, Ok, Warn, Fail };

enum class Area { Tools, Cuda, Torch, Gpu, Memory, Caches, Library, Project, Timed };

// What `kiln setup` can do about it by itself.
enum class Cure { None, Ninja, Nvcc, Environment, RemoveLocks, CacheFolder };

struct Finding {
  Verdict verdict = Verdict::Skip;
  std::string reason;
  std::string fix;  // a command where one does it
  Cure cure = Cure::None;
};

struct Check {
  int number = 0;
  std::string_view name;  // "ninja"
  Area area = Area::Tools;
  Finding (*run)(const Facts& facts) = nullptr;
  std::string_view symptom;  // as the user sees it
  std::string_view looks_at;
  std::string_view fix;
};

std::span<const Check> checks();
const Check* find_check(std::string_view name);

struct CheckResult {
  const Check* check = nullptr;
  Finding finding;
};
std::vector<CheckResult> run_checks(const Facts& facts);

std::string_view name_of(Verdict verdict);  // "ok"
std::string_view name_of(Area area);        // "Build tools"
Verdict worst(const std::vector<CheckResult>& results);

// Makers of findings.
Finding ok(std::string reason);
Finding skip(std::string reason);
Finding warn(std::string reason, std::string fix, Cure cure = Cure::None);
Finding fail(std::string reason, std::string fix, Cure cure = Cure::None);

#define KILN_CHECK(number, name, area, function, symptom, looks_at, fix) \
  Finding function(const Facts& facts);
#include "doctor/checks.def"
#undef KILN_CHECK

}  // namespace kiln::doctor
