// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/doctor.h"

namespace kiln::report {
namespace {

struct DoctorMark {
  std::string_view verdict, of_area, of_check, color;
};
constexpr DoctorMark kDoctorMarks[] = {
    {"fault", "[x]", "x", "\x1b[1;31m"},
    {"warning", "[!]", "!", "\x1b[1;33m"},
    {"ok", "[ok]", ".", "\x1b[1;32m"},
    {"skip", "[-]", "-", "\x1b[2m"},
};

const DoctorMark& mark_of_verdict(std::string_view verdict) {
  const auto* found = std::find_if(std::begin(kDoctorMarks), std::end(kDoctorMarks),
                                   [&](const DoctorMark& mark) { return mark.verdict == verdict; });
  return found == std::end(kDoctorMarks) ? kDoctorMarks[3] : *found;
}

bool is_trouble(const results::DoctorCheck& check) {
  return check.verdict == "fault" || check.verdict == "warning";
}

std::string painted_mark(std::string_view verdict, const DoctorStyle& style) {
  const DoctorMark& mark = mark_of_verdict(verdict);
  std::string padded = fmt::format("{:<4}", mark.of_area);
  return style.color ? fmt::format("{}{}\x1b[0m", mark.color, padded) : padded;
}

std::string counts_line(const std::vector<results::DoctorCheck>& checks) {
  auto count = [&](std::string_view verdict) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const auto& check) { return check.verdict == verdict; });
  };
  const auto faults = count("fault"), warnings = count("warning");
  if (!faults && !warnings) return "no faults found\n";
  const auto fixable = std::count_if(checks.begin(), checks.end(), [](const auto& check) {
    return is_trouble(check) && check.fixes_itself;
  });
  return fmt::format(
      "{} {}, {} {}{}\n", faults, faults == 1 ? "fault" : "faults", warnings,
      warnings == 1 ? "warning" : "warnings",
      fixable ? fmt::format("; {} can be fixed with kiln doctor --fix", fixable) : "");
}

}  // namespace

std::string doctor_text(const results::DoctorReport& report, const DoctorStyle& style) {
  std::string out;
  for (const results::DoctorArea& area : report.areas) {
    out +=
        fmt::format("{} {:<15} {}\n", painted_mark(area.verdict, style), area.name, area.summary);
    for (const results::DoctorCheck& check : report.checks) {
      if (check.area != area.name || !(is_trouble(check) || style.verbose)) continue;
      out += fmt::format("       {} {}: {}\n", mark_of_verdict(check.verdict).of_check, check.name,
                         check.reason);
      if (is_trouble(check) && !check.fix.empty())
        out += fmt::format("         fix: {}\n", check.fix);
    }
  }
  if (style.verbose) {
    out += "\n";
    for (const auto& [name, value] : report.facts) out += fmt::format("{:<22} {}\n", name, value);
    out += "\n";
  }
  return out + counts_line(report.checks);
}

}  // namespace kiln::report
