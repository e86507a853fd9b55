// SPDX-License-Identifier: Apache-2.0
// Which checks are there, and what do they say of these facts?
#include "doctor/check.h"

#include <algorithm>

namespace kiln::doctor {

std::span<const Check> checks() {
  static constexpr Check kChecks[] = {
#define KILN_CHECK(number, name, area, function, symptom, looks_at, fix) \
  {number, name, Area::area, function, symptom, looks_at, fix},
#include "doctor/checks.def"
#undef KILN_CHECK
  };
  return kChecks;
}

const Check* find_check(std::string_view name) {
  auto all = checks();
  auto found =
      std::find_if(all.begin(), all.end(), [&](const Check& check) { return check.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<CheckResult> run_checks(const Facts& facts) {
  std::vector<CheckResult> results;
  for (const Check& check : checks()) results.push_back({&check, check.run(facts)});
  return results;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Skip:
      return "skip";
    case Verdict::Ok:
      return "ok";
    case Verdict::Warn:
      return "warning";
    case Verdict::Fail:
      return "fault";
  }
  return "";
}

std::string_view name_of(Area area) {
  switch (area) {
    case Area::Tools:
      return "Build tools";
    case Area::Cuda:
      return "CUDA compiler";
    case Area::Torch:
      return "Python, torch";
    case Area::Gpu:
      return "GPU, driver";
    case Area::Memory:
      return "Memory, jobs";
    case Area::Caches:
      return "Caches";
    case Area::Library:
      return "Library";
    case Area::Project:
      return "Project";
    case Area::Timed:
      return "Timed compile";
  }
  return "";
}

Verdict worst(const std::vector<CheckResult>& results) {
  Verdict verdict = Verdict::Skip;
  for (const CheckResult& result : results) verdict = std::max(verdict, result.finding.verdict);
  return verdict;
}

Finding ok(std::string reason) { return {Verdict::Ok, std::move(reason), "", Cure::None}; }
Finding skip(std::string reason) { return {Verdict::Skip, std::move(reason), "", Cure::None}; }
Finding warn(std::string reason, std::string fix, Cure cure) {
  return {Verdict::Warn, std::move(reason), std::move(fix), cure};
}
Finding fail(std::string reason, std::string fix, Cure cure) {
  return {Verdict::Fail, std::move(reason), std::move(fix), cure};
}

}  // namespace kiln::doctor
