// SPDX-License-Identifier: Apache-2.0
// How does a result of kiln tune look? Heat maps: a cell is the best time over all other axes, and
// a reader chooses the two axes that are shown.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "report/look.h"
#include "report/page.h"
#include "report/tune.h"

namespace kiln::report {
namespace {

using results::TuneFinalist;
using results::TuneOutcome;
using results::TuneResult;

std::string defines_code(const std::vector<std::string>& defines) {
  return "<code>" + escape(text::join(defines, " ")) + "</code>";
}

// The value of each axis in the defines of an outcome.
Json axis_values(const TuneOutcome& outcome, const Json& params) {
  Json at = Json::object();
  for (const std::string& define : outcome.defines) {
    const size_t equals = define.find('=');
    if (equals != std::string::npos && params.contains(define.substr(0, equals)))
      at[define.substr(0, equals)] = define.substr(equals + 1);
  }
  return at;
}

// The keys are those of look/tune.js.
Json heat_data(const TuneResult& result) {
  Json params = Json::object(), outcomes = Json::array();
  for (const auto& [name, values] : result.space.params) params[name] = values;
  for (const TuneOutcome& outcome : result.outcomes) {
    Json one{{"text", text::join(outcome.defines, " ")},
             {"fate", outcome.fate},
             {"at", axis_values(outcome, params)}};
    if (outcome.us) one["us"] = *outcome.us;
    if (outcome.reason) one["reason"] = *outcome.reason;
    if (outcome.facts) one["facts"] = *outcome.facts;
    outcomes.push_back(std::move(one));
  }
  return {{"params", std::move(params)}, {"outcomes", std::move(outcomes)}};
}

std::string fact_text(const TuneOutcome& outcome, const char* key) {
  if (!outcome.facts || !outcome.facts->is_object()) return "";
  const auto found = outcome.facts->find(key);
  if (found == outcome.facts->end() || !found->is_number()) return "";
  return found->is_number_float() ? fmt::format("{:.2f}", found->get<double>()) : dump(*found);
}

std::string finalists_table(const std::vector<TuneFinalist>& finalists) {
  if (finalists.size() < 2) return "";
  std::vector<std::vector<std::string>> rows = {
      {"the fastest, timed in alternation", "time", "95 %", "vs. the first"}};
  for (const TuneFinalist& one : finalists)
    rows.push_back({defines_code(one.defines), fine_time(one.us),
                    fine_time(one.low_us) + " to " + fine_time(one.high_us),
                    fmt::format("{:.3f}", one.us / finalists.front().us)});
  return "<h2>Finalists</h2>\n" + table(rows);
}

std::string outcomes_table(std::vector<TuneOutcome> all) {
  std::ranges::stable_sort(all, {}, [](const TuneOutcome& one) { return one.us.value_or(1e300); });
  std::vector<std::vector<std::string>> rows = {{"configuration", "us", "registers", "shared bytes",
                                                 "blocks", "occupancy", "spill bytes", "build s",
                                                 ""}};
  for (const TuneOutcome& one : all)
    rows.push_back({defines_code(one.defines), one.us ? fmt::format("{:.2f}", *one.us) : "",
                    fact_text(one, "registers"), fact_text(one, "shared_bytes"),
                    fact_text(one, "blocks"), fact_text(one, "occupancy"),
                    fact_text(one, "spill_bytes"), fact_text(one, "build_s"),
                    one.us ? "" : escape(one.fate + (one.reason ? ": " + *one.reason : ""))});
  return "<h2>All configurations</h2>\n<div id=\"all\">" + table(rows, "", "sortable") + "</div>\n";
}

}  // namespace

std::string tune_page(const TuneResult& result) {
  const std::string title = fmt::format("{}({})", result.op, text::join(result.arguments, ", "));
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}, {}. {}.</p>\n", escape(title),
                                 escape(device_fact(result, "name")), escape(result.date),
                                 escape(fates_text(result)));
  if (result.best)
    body += fmt::format("<p class=\"card\" id=\"best\"><b>{}</b><br>{}</p>\n",
                        time_text(1e3 * result.best->us),
                        escape(text::join(result.best->defines, " ")));
  else
    body += fmt::format("<p class=\"card\" id=\"best\">{}</p>\n",
                        result.timed ? "No variant could be timed; the table says why."
                                     : "Nothing was timed: there is no GPU. The variants were "
                                       "built, pruned and checked.");
  if (!result.space.params.empty())
    body +=
        "<h2>Heat map</h2>\n<p class=\"soft\">A cell shows the best over all other defines; hover "
        "for details.</p>\n"
        "<p class=\"choose\"><label>rows <select id=\"rows\"></select></label><label>columns "
        "<select id=\"columns\"></select></label><label>colour by <select "
        "id=\"by\"></select></label></p>\n<div class=\"wide\" id=\"heat\"></div>\n";
  body += finalists_table(result.finalists) + outcomes_table(result.outcomes);
  return page({.title = "kiln tune: " + title,
               .body = body,
               .style = kLook_tune_css,
               .script = result.space.params.empty() ? std::string_view() : kLook_tune_js,
               .data = heat_data(result)});
}

}  // namespace kiln::report
