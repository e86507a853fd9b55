// SPDX-License-Identifier: Apache-2.0
// What does tuning leave behind?
#include "tune/result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tune/reasons.h"

namespace kiln::tune {

namespace {

constexpr size_t kReasonsShown = 8;

std::string words(const Json& defines) {
  return text::join(defines.get<std::vector<std::string>>(), " ");
}

std::string time_text(double us) {
  return us < 1000 ? fmt::format("{:.2f} us", us) : fmt::format("{:.3f} ms", us / 1e3);
}

std::string counts_text(const Json& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts.items())
    parts.push_back(fmt::format("{} {}", count.get<uint64_t>(), name));
  return text::join(parts, ", ");
}

// Each reason once, the most frequent first.
std::vector<std::pair<std::string, uint64_t>> reasons_of(const Json& outcomes) {
  std::vector<std::pair<std::string, uint64_t>> reasons;
  for (const Json& outcome : outcomes) {
    if (!outcome.contains("reason")) continue;
    const std::string text =
        fmt::format("{}: {}", outcome.value("fate", ""), outcome.value("reason", ""));
    const auto found = std::ranges::find(reasons, text, &std::pair<std::string, uint64_t>::first);
    if (found == reasons.end())
      reasons.emplace_back(text, 1);
    else
      found->second++;
  }
  std::ranges::stable_sort(reasons, std::greater(), &std::pair<std::string, uint64_t>::second);
  return reasons;
}

std::string lanes_text(const Json& seconds) {
  return fmt::format("{} in all: {} of building, {} of measuring, side by side",
                     text::duration(seconds.value("total", 0.0)),
                     text::duration(seconds.value("build", 0.0)),
                     text::duration(seconds.value("measure", 0.0)));
}

std::string title(const Json& result) {
  return fmt::format("{}({}) on {}", result.value("op", ""),
                     text::join(result.value("arguments", std::vector<std::string>()), ", "),
                     result.contains("device") ? result["device"].value("name", "?") : "?");
}

std::string how(const Json& result) {
  const Json& space = result["space"];
  const std::string size = dump(space["size"]),
                    allowed = space["allowed"].is_null() ? size : dump(space["allowed"]);
  return fmt::format(
      "{} of {} configurations tried ({} points, {} forbidden){}{}", result["outcomes"].size(),
      allowed, size,
      space["allowed"].is_null()
          ? "an unknown part"
          : dump(space["size"].get<uint64_t>() - space["allowed"].get<uint64_t>()),
      result.value("mode", "") == "exhaustive" ? "" : ", a sample, then the most hopeful",
      result.value("time_is_over", false) ? "; the time was over before the search" : "");
}

std::string choice_text(const Choice& choice) {
  return fmt::format("{}({}) on {}: {}", choice.op, text::join(choice.arguments, ", "), choice.gpu,
                     text::join(choice.defines, " "));
}

}  // namespace

Json result_json(const Space& space, const Search& search, const Json& params,
                 const std::vector<Outcome>& outcomes, const Tuned& tuned) {
  Json result{{"kiln_tune_result", 1}};
  result["space"] = params;
  result["space"]["size"] = space.size();
  result["space"]["allowed"] = search.allowed() ? Json(*search.allowed()) : Json();
  result["mode"] = search.exhaustive() ? "exhaustive" : "search";
  result["timed"] = tuned.timed;
  if (tuned.time_is_over) result["time_is_over"] = true;
  Json counts = Json::object(), list = Json::array(), finalists = Json::array();
  for (Fate fate : {Fate::Timed, Fate::Checked, Fate::Forbidden, Fate::Unbuildable, Fate::Pruned,
                    Fate::Wrong, Fate::Crashed, Fate::Hung})
    if (const auto count = std::ranges::count(outcomes, fate, &Outcome::fate))
      counts[std::string(name_of(fate))] = count;
  for (const Outcome& outcome : outcomes) list.push_back(to_json(outcome));
  for (const Finalist& one : tuned.finalists)
    finalists.push_back({{"defines", one.defines},
                         {"us", one.us},
                         {"low_us", one.low_us},
                         {"high_us", one.high_us},
                         {"ratio", {one.ratio, one.ratio_low, one.ratio_high}}});
  result["counts"] = std::move(counts);
  result["best"] = finalists.empty() ? Json() : finalists.front();
  result["finalists"] = std::move(finalists);
  const double longer = std::max(tuned.build_s, tuned.measure_s);
  result["seconds"] = {{"total", tuned.total_s},
                       {"build", tuned.build_s},
                       {"measure", tuned.measure_s},
                       {"total_over_longer_lane", longer > 0 ? tuned.total_s / longer : 0}};
  if (!tuned.findings.empty()) result["findings"] = tuned.findings;
  result["outcomes"] = std::move(list);
  return result;
}

std::string result_text(const Json& result) {
  std::string out =
      title(result) + "\n  " + how(result) + "\n  " + counts_text(result["counts"]) + "\n";
  if (!result["finalists"].empty()) {
    out += "  the fastest, timed in turns:\n";
    const double best_us = result["finalists"][0]["us"].get<double>();
    for (const Json& one : result["finalists"])
      out += fmt::format("    {:>11}  {:6.3f}x  {}\n", time_text(one["us"].get<double>()),
                         one["us"].get<double>() / best_us, words(one["defines"]));
  }
  if (!result.value("timed", false))
    out +=
        "  nothing was timed: there is no GPU; the variants were built, pruned and checked on the "
        "engine\n";
  size_t shown = 0;
  for (const auto& [reason, count] : reasons_of(result["outcomes"])) {
    if (shown++ == kReasonsShown) {
      out += "  ...\n";
      break;
    }
    out += fmt::format("  {}{}\n", count > 1 ? fmt::format("{} x ", count) : "", reason);
  }
  for (const std::string& finding : said_once(result.value("findings", std::vector<std::string>())))
    out += "  warning: " + finding + "\n";
  return out + "  " + lanes_text(result["seconds"]) + "\n";
}

std::string result_markdown(const Json& result) {
  std::string out = fmt::format("# {}\n\n{}: {}. {}.\n\n", title(result), how(result),
                                counts_text(result["counts"]), lanes_text(result["seconds"]));
  if (!result["finalists"].empty()) {
    out += "| the fastest, timed in turns | us | 95 % | to the first |\n|---|---|---|---|\n";
    const double best_us = result["finalists"][0]["us"].get<double>();
    for (const Json& one : result["finalists"])
      out += fmt::format("| {} | {:.2f} | {:.2f} to {:.2f} | {:.3f} |\n", words(one["defines"]),
                         one["us"].get<double>(), one["low_us"].get<double>(),
                         one["high_us"].get<double>(), one["us"].get<double>() / best_us);
    out += "\n";
  }
  std::vector<Json> all(result["outcomes"].begin(), result["outcomes"].end());
  std::ranges::stable_sort(all, {}, [](const Json& one) { return one.value("us", 1e300); });
  out += "| configuration | us | registers | shared | blocks | |\n|---|---|---|---|---|---|\n";
  for (const Json& one : all) {
    const Json facts = one.contains("facts") ? one["facts"] : Json::object();
    const auto fact = [&](const char* key) {
      return facts.contains(key) ? dump(facts[key]) : std::string();
    };
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", words(one["defines"]),
                       one.contains("us") ? fmt::format("{:.2f}", one["us"].get<double>()) : "",
                       fact("registers"), fact("shared_bytes"), fact("blocks"),
                       one.contains("us")
                           ? ""
                           : one.value("fate", "") +
                                 (one.contains("reason") ? ": " + one.value("reason", "") : ""));
  }
  return out;
}

std::string progress_text(const Progress& progress) {
  std::string out = fmt::format("[{}/{}]", progress.done, progress.trials);
  std::vector<std::string> parts;
  for (const auto& [fate, count] : progress.counts)
    parts.push_back(fmt::format("{} {}", count, name_of(fate)));
  if (!parts.empty()) out += " " + text::join(parts, ", ");
  if (progress.best)
    out += fmt::format("; best {}: {}", time_text(progress.best->time_us),
                       text::join(progress.best->defines, " "));
  if (!progress.doing.empty()) return out + "; " + progress.doing;
  if (progress.left_s > 0) out += fmt::format("; {} left", text::duration(progress.left_s));
  return out;
}

Json to_json(const Choice& choice) {
  return {{"op", choice.op},           {"arguments", choice.arguments}, {"gpu", choice.gpu},
          {"compute", choice.compute}, {"defines", choice.defines},     {"us", choice.us},
          {"date", choice.date},       {"kiln", choice.kiln},           {"with", choice.with},
          {"arch", choice.arch}};
}

Result<Choices> parse_choices(std::string_view text, std::string_view source) {
  const auto bad = [&](std::string why) {
    return Error{Fault::Usage, fmt::format("cannot read {}", source), std::move(why),
                 "kiln tune writes it anew"};
  };
  TRY(const Json json, parse_json(text, source));
  if (!json.is_object() || !json.contains("kiln_tuned")) return bad("it is no file of kiln tune");
  if (json["kiln_tuned"] != 1) return bad("it was written by another version of kiln");
  Choices choices;
  try {
    for (const Json& entry : json.at("entries")) {
      Choice choice;
      choice.op = entry.at("op");
      choice.arguments = entry.at("arguments").get<std::vector<std::string>>();
      choice.gpu = entry.at("gpu");
      choice.compute = entry.at("compute");
      choice.defines = entry.at("defines").get<std::vector<std::string>>();
      choice.us = entry.value("us", 0.0);
      choice.date = entry.value("date", "");
      choice.kiln = entry.value("kiln", "");
      choice.with = entry.value("with", std::vector<std::string>());
      choice.arch = entry.value("arch", "");
      choices.entries.push_back(std::move(choice));
    }
  } catch (const Json::exception& e) {
    return bad(e.what());
  }
  return choices;
}

std::string write_choices(const Choices& choices) {
  Json entries = Json::array();
  for (const Choice& choice : choices.entries) entries.push_back(to_json(choice));
  return dump({{"kiln_tuned", 1}, {"entries", std::move(entries)}}, 1) + "\n";
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
