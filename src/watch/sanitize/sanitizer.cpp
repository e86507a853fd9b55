// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/sanitizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/findings.h"
#include "watch/race/race.h"
#include "watch/sanitize/host_checkers.h"
#include "watch/sanitize/memory_checker.h"
#include "watch/sanitize/output.h"
#include "watch/sanitize/sync_checker.h"

namespace kiln::watch {
namespace {

template <class Checker>
std::unique_ptr<engine::Sink> make(Collector& collector) {
  return std::make_unique<Checker>(collector);
}

std::vector<std::string> names_of(const std::vector<const CheckerRow*>& rows) {
  std::vector<std::string> names;
  for (const CheckerRow* row : rows) names.emplace_back(row->name);
  return names;
}

}  // namespace

const std::vector<CheckerRow>& checker_rows() {
  static const std::vector<CheckerRow> kRows = {
      {"memory", true, &make<MemoryChecker>}, {"race", true, &make<RaceChecker>},
      {"sync", true, &make<SyncChecker>},     {"api", false, &make<ApiChecker>},
      {"leaks", false, &make<LeakChecker>},
  };
  return kRows;
}

std::vector<const CheckerRow*> checkers_named(std::string_view checks, std::string* problem) {
  std::vector<const CheckerRow*> rows;
  auto take = [&](auto wanted) {
    for (const CheckerRow& row : checker_rows()) {
      if (wanted(row) && std::ranges::find(rows, &row) == rows.end()) rows.push_back(&row);
    }
  };
  for (size_t at = 0; at <= checks.size();) {
    const size_t end = std::min(checks.find(',', at), checks.size());
    const std::string_view name = checks.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    const size_t before = rows.size();
    const bool group = name == "default" || name == "1" || name == "all";
    if (group)
      take([&](const CheckerRow& row) { return row.by_default || name == "all"; });
    else
      take([&](const CheckerRow& row) { return row.name == name; });
    const bool known =
        group || rows.size() > before ||
        std::ranges::any_of(rows, [&](const auto* row) { return row->name == name; });
    if (!known) {
      std::string all;
      for (const CheckerRow& row : checker_rows()) all += fmt::format("{}, ", row.name);
      *problem = fmt::format("there is no check '{}'; there are {}default and all", name, all);
    }
  }
  return rows;
}

namespace {

Collector& add_checkers(const std::vector<const CheckerRow*>& rows, Fanout& to) {
  auto made = std::make_unique<Collector>();
  Collector& collector = *made;
  collector.set_checks(names_of(rows));
  to.add(std::move(made));
  for (const CheckerRow* row : rows) to.add(row->make(collector));
  return collector;
}

}  // namespace

std::unique_ptr<SanitizedPart> SanitizedPart::begin(std::string_view checks, std::string* problem) {
  const auto rows = checkers_named(checks, problem);
  if (rows.empty() || !problem->empty()) return nullptr;
  auto part = std::make_unique<SanitizedPart>();
  part->collector_ = &add_checkers(rows, part->all_);
  return part;
}

std::string SanitizedPart::refusal(std::string_view text) { return dump(Json{{"error", text}}); }

std::string SanitizedPart::end() {
  collector_->end();
  results::Findings findings = collector_->findings();
  read_source_lines(findings);
  show_paths_of_here(findings);
  Json json = to_json(findings);
  json["report"] = report::findings_text(findings);
  return dump(json);
}

void add_sanitizer(const SanitizeRequest& request, Fanout& to, std::string* problem) {
  if (request.checks.empty() || request.checks == "0") return;
  std::string why;
  const auto rows = checkers_named(request.checks, &why);
  if (rows.empty() && why.empty()) why = "it names no check";
  if (!why.empty()) {
    *problem = fmt::format(
        "cannot sanitize with KILN_SANITIZE={}\n  why: {}\n  fix: name checks of that list, "
        "separated by commas",
        request.checks, why);
    return;
  }
  Collector& collector = add_checkers(rows, to);
  to.add(make_output(collector, request.folder));
}

}  // namespace kiln::watch
