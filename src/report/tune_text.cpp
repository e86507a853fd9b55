// SPDX-License-Identifier: Apache-2.0
// How does a person read a result of kiln tune, on a terminal and in Markdown?
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/text.h"
#include "report/tune.h"

namespace kiln::report {
namespace {

using results::TuneFinalist;
using results::TuneOutcome;
using results::TuneResult;

constexpr size_t kReasonsShown = 8;
constexpr size_t kVariantsShown = 20;

// Each reason once, the most frequent first.
std::vector<std::pair<std::string, uint64_t>> reasons_of(const std::vector<TuneOutcome>& outcomes) {
  using Reason = std::pair<std::string, uint64_t>;
  std::vector<Reason> reasons;
  for (const TuneOutcome& outcome : outcomes) {
    if (!outcome.reason) continue;
    const std::string text = fmt::format("{}: {}", outcome.fate, *outcome.reason);
    const auto found = std::ranges::find(reasons, text, &Reason::first);
    if (found == reasons.end())
      reasons.emplace_back(text, 1);
    else
      found->second++;
  }
  std::ranges::stable_sort(reasons, std::greater(), &Reason::second);
  return reasons;
}

std::string seconds_line(const results::TuneSeconds& seconds) {
  return fmt::format("{} in total: {} building, {} measuring, in parallel",
                     text::duration(seconds.total), text::duration(seconds.build),
                     text::duration(seconds.measure));
}

std::string tune_title(const TuneResult& result) {
  const std::string device = device_fact(result, "name");
  return fmt::format("{}({}) on {}", result.op, text::join(result.arguments, ", "),
                     device.empty() ? "?" : device);
}

std::string how_searched(const TuneResult& result) {
  const results::TuneSpace& space = result.space;
  return fmt::format(
      "{} of {} configuration{} tried{}{}{}", result.outcomes.size(),
      space.allowed.value_or(space.size), space.allowed.value_or(space.size) == 1 ? "" : "s",
      !space.allowed ? fmt::format(" ({} points, an unknown number forbidden)", space.size)
      : *space.allowed < space.size ? fmt::format(" ({} forbidden)", space.size - *space.allowed)
                                    : "",
      result.mode == "exhaustive" ? "" : ", a spread sample, then the most promising",
      result.time_is_over.value_or(false) ? "; time ran out before the search ended" : "");
}

std::string fact_cell(const TuneOutcome& outcome, const char* key) {
  return outcome.facts && outcome.facts->contains(key) ? dump((*outcome.facts)[key]) : "";
}

std::string markdown_outcome(const TuneOutcome& one) {
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", text::join(one.defines, " "),
                     one.us ? fmt::format("{:.2f}", *one.us) : "", fact_cell(one, "registers"),
                     fact_cell(one, "shared_bytes"), fact_cell(one, "blocks"),
                     one.us ? "" : one.fate + (one.reason ? ": " + *one.reason : ""));
}

double fact(const TuneOutcome& outcome, const char* key, double otherwise) {
  if (!outcome.facts || !outcome.facts->contains(key)) return otherwise;
  const Json& value = (*outcome.facts)[key];
  return value.is_number() ? value.get<double>() : otherwise;
}

// What is known of each variant where none was timed: what the compiler made of it. The most
// hopeful first: high occupancy, no spills, few registers; what cannot run comes last.
std::string variants_table(const TuneResult& result) {
  std::vector<TuneOutcome> rows;
  for (const TuneOutcome& one : result.outcomes)
    if (one.facts && one.facts->contains("registers")) rows.push_back(one);
  if (rows.empty()) return "";
  const auto rank = [](const TuneOutcome& one) {
    return std::tuple(one.fate != "checked", -fact(one, "occupancy", 0),
                      fact(one, "spill_bytes", 0), fact(one, "registers", 0));
  };
  std::ranges::stable_sort(rows, {}, rank);
  std::string out = fmt::format("  {:>9}  {:>9}  {:>7}  {:>7}  {:>10}  {:<9}  {}\n", "registers",
                                "shared", "spilled", "blocks", "occupancy", "outcome", "defines");
  for (size_t i = 0; i < std::min(rows.size(), kVariantsShown); ++i) {
    const TuneOutcome& one = rows[i];
    const double occupancy = fact(one, "occupancy", -1);
    out += fmt::format("  {:>9}  {:>7} B  {:>5} B  {:>7}  {:>10}  {:<9}  {}\n",
                       fact_cell(one, "registers"), fact_cell(one, "shared_bytes"),
                       fact_cell(one, "spill_bytes"), fact_cell(one, "blocks"),
                       occupancy < 0 ? "" : fmt::format("{:.0f} %", 100 * occupancy), one.fate,
                       text::join(one.defines, " "));
  }
  if (rows.size() > kVariantsShown)
    out += fmt::format("  ... and {} more: --html FILE, --markdown FILE or --json show all\n",
                       rows.size() - kVariantsShown);
  return out;
}

}  // namespace

std::string fine_time(double us) {
  return us < 1000 ? fmt::format("{:.2f} us", us) : fmt::format("{:.3f} ms", us / 1e3);
}

std::string fates_text(const TuneResult& result) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : result.counts)
    parts.push_back(fmt::format("{} {}", count, name));
  return text::join(parts, ", ");
}

std::string tune_text(const TuneResult& result) {
  std::string out =
      tune_title(result) + "\n  " + how_searched(result) + "\n  " + fates_text(result) + "\n";
  if (!result.finalists.empty()) {
    out += "  the fastest, timed in alternation:\n";
    const double best_us = result.finalists.front().us;
    for (const TuneFinalist& one : result.finalists)
      out += fmt::format("    {:>11}  {:6.3f}x  {}\n", fine_time(one.us), one.us / best_us,
                         text::join(one.defines, " "));
  }
  if (!result.timed)
    out +=
        "  nothing was timed: there is no GPU; the variants were built, pruned and checked on the "
        "engine\n" +
        variants_table(result);
  size_t shown = 0;
  for (const auto& [reason, count] : reasons_of(result.outcomes)) {
    if (shown++ == kReasonsShown) {
      out += "  ...\n";
      break;
    }
    out += fmt::format("  {}{}\n", count > 1 ? fmt::format("{} x ", count) : "", reason);
  }
  for (const std::string& finding : said_once(result.findings.value_or(std::vector<std::string>())))
    out += "  warning: " + finding + "\n";
  return out + "  " + seconds_line(result.seconds) + "\n";
}

std::string tune_markdown(const TuneResult& result) {
  std::string out = fmt::format("# {}\n\n{}: {}. {}.\n\n", tune_title(result), how_searched(result),
                                fates_text(result), seconds_line(result.seconds));
  if (!result.finalists.empty()) {
    out += "| the fastest, timed in alternation | us | 95 % | vs. the first |\n|---|---|---|---|\n";
    const double best_us = result.finalists.front().us;
    for (const TuneFinalist& one : result.finalists)
      out +=
          fmt::format("| {} | {:.2f} | {:.2f} to {:.2f} | {:.3f} |\n", text::join(one.defines, " "),
                      one.us, one.low_us, one.high_us, one.us / best_us);
    out += "\n";
  }
  std::vector<TuneOutcome> all = result.outcomes;
  std::ranges::stable_sort(all, {}, [](const TuneOutcome& one) { return one.us.value_or(1e300); });
  out += "| configuration | us | registers | shared | blocks | |\n|---|---|---|---|---|---|\n";
  for (const TuneOutcome& one : all) out += markdown_outcome(one);
  return out;
}

}  // namespace kiln::report
