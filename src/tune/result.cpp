// SPDX-License-Identifier: Apache-2.0
// What does tuning leave behind?
#include "tune/result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace kiln::tune {

namespace {

std::string choice_text(const Choice& choice) {
  return fmt::format("{}({}) on {}: {}", choice.op, text::join(choice.arguments, ", "), choice.gpu,
                     text::join(choice.defines, " "));
}

results::TuneOutcome outcome_of(const Outcome& outcome) {
  results::TuneOutcome out;
  out.defines = outcome.defines;
  out.fate = name_of(outcome.fate);
  if (outcome.fate == Fate::Timed) {
    out.us = outcome.time_us;
    out.low_us = outcome.low_us;
    out.high_us = outcome.high_us;
  }
  if (!outcome.reason.empty()) out.reason = outcome.reason;
  if (!outcome.facts.empty()) out.facts = outcome.facts;
  return out;
}

}  // namespace

results::TuneResult result_of(const Space& space, const Search& search, const Json& where,
                              const std::vector<Outcome>& outcomes, const Tuned& tuned) {
  results::TuneResult out;
  for (const Axis& axis : space.axes()) out.space.params.emplace_back(axis.name, axis.values);
  out.space.where = where;
  out.space.size = space.size();
  out.space.allowed = search.allowed();
  out.mode = search.exhaustive() ? "exhaustive" : "search";
  out.timed = tuned.timed;
  if (tuned.time_is_over) out.time_is_over = true;
  for (Fate fate : {Fate::Timed, Fate::Checked, Fate::Forbidden, Fate::Unbuildable, Fate::Pruned,
                    Fate::Wrong, Fate::Crashed, Fate::Hung})
    if (const auto count = std::ranges::count(outcomes, fate, &Outcome::fate))
      out.counts.emplace_back(name_of(fate), count);
  for (const Finalist& one : tuned.finalists)
    out.finalists.push_back(
        {one.defines, one.us, one.low_us, one.high_us, {one.ratio, one.ratio_low, one.ratio_high}});
  if (!out.finalists.empty()) out.best = out.finalists.front();
  const double longer = std::max(tuned.build_s, tuned.measure_s);
  out.seconds = {tuned.total_s, tuned.build_s, tuned.measure_s,
                 longer > 0 ? tuned.total_s / longer : 0};
  if (!tuned.findings.empty()) out.findings = tuned.findings;
  for (const Outcome& outcome : outcomes) out.outcomes.push_back(outcome_of(outcome));
  return out;
}

std::string progress_text(const Progress& progress) {
  std::string out = fmt::format("[{}/{}]", progress.done, progress.trials);
  std::vector<std::string> parts;
  for (const auto& [fate, count] : progress.counts)
    parts.push_back(fmt::format("{} {}", count, name_of(fate)));
  if (!parts.empty()) out += " " + text::join(parts, ", ");
  if (progress.best)
    out += fmt::format("; best {}: {}", time_text(1e3 * progress.best->time_us),
                       text::join(progress.best->defines, " "));
  if (!progress.doing.empty()) return out + "; " + progress.doing;
  if (progress.left_s > 0) out += fmt::format("; {} left", text::duration(progress.left_s));
  return out;
}

Result<Choices> parse_choices(std::string_view text, std::string_view source) {
  TRY(const Json json, parse_json(text, source));
  return results::read_tuned(json, source);
}

std::string write_choices(const Choices& choices) {
  return dump(results::to_json(choices), 1) + "\n";
}

void put(Choices& choices, Choice choice) {
  for (Choice& known : choices.entries) {
    if (known.op != choice.op || known.arguments != choice.arguments || known.gpu != choice.gpu)
      continue;
    known = std::move(choice);
    return;
  }
  choices.entries.push_back(std::move(choice));
}

Result<std::vector<std::string>> choose(const Choices& choices,
                                        const std::vector<std::string>& computes,
                                        std::string_view part, std::string_view source) {
  std::vector<const Choice*> found;
  std::vector<std::string> all;
  for (const Choice& choice : choices.entries) {
    all.push_back(choice_text(choice));
    const bool serves = std::ranges::find(computes, choice.compute) != computes.end();
    if (serves && all.back().find(part) != std::string::npos) found.push_back(&choice);
  }
  const std::string listed = all.empty() ? "it has no entry" : "it has " + text::join(all, "; ");
  if (found.empty())
    return Error{Fault::Usage, fmt::format("no tuned configuration in {}", source),
                 fmt::format("none is for {}{}; {}", text::join(computes, ", "),
                             part.empty() ? "" : fmt::format(" with '{}'", part), listed),
                 "kiln tune on such a GPU, or --arch for one that was tuned"};
  for (const Choice* choice : found)
    if (choice->defines != found.front()->defines)
      return Error{Fault::Usage, fmt::format("several tuned configurations in {}", source), listed,
                   "choose one by a part of its text: --tuned-for TEXT; kiln.load(..., tuned=True) "
                   "picks by shape"};
  return found.front()->defines;
}

}  // namespace kiln::tune
