// SPDX-License-Identifier: Apache-2.0
// What is in a journal? A first line {"kiln_tune": 1, "subject": {...}}, then one line an outcome.
#include "tune/journal.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace kiln::tune {

namespace {

constexpr std::array<std::pair<Fate, std::string_view>, 8> kFates = {
    {{Fate::Timed, "timed"},
     {Fate::Checked, "checked"},
     {Fate::Forbidden, "forbidden"},
     {Fate::Unbuildable, "unbuildable"},
     {Fate::Pruned, "pruned"},
     {Fate::Wrong, "wrong"},
     {Fate::Crashed, "crashed"},
     {Fate::Hung, "hung"}}};

Error bad_journal(const sys::fs::path& path, std::string why) {
  return {Fault::Work, fmt::format("cannot resume from {}", path.string()), std::move(why),
          "give another file with --journal, or remove this one to start over"};
}

// "gpu: NVIDIA H200, here NVIDIA A100"
std::string first_difference(const Json& before, const Json& now) {
  for (const auto& [name, value] : now.items()) {
    const Json old = before.contains(name) ? before[name] : Json();
    if (old != value)
      return fmt::format("it belongs to another run: {} was {}, now {}", name, dump(old),
                         dump(value));
  }
  return "it belongs to another run";
}

double number_of(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : 0.0;
}

}  // namespace

std::string_view name_of(Fate fate) {
  for (const auto& [value, name] : kFates)
    if (value == fate) return name;
  return "?";
}

Json to_json(const Outcome& outcome) {
  Json line = {{"defines", outcome.defines}, {"fate", name_of(outcome.fate)}};
  if (outcome.fate == Fate::Timed) {
    line["us"] = outcome.time_us;
    line["low_us"] = outcome.low_us;
    line["high_us"] = outcome.high_us;
  }
  if (!outcome.reason.empty()) line["reason"] = outcome.reason;
  if (!outcome.facts.empty()) line["facts"] = outcome.facts;
  return line;
}

Result<Outcome> outcome_from_json(const Json& line) {
  const auto bad = [&](std::string_view why) {
    return Error{Fault::Work, "cannot read an outcome", fmt::format("{}: {}", why, dump(line)), ""};
  };
  Outcome outcome;
  if (!line.is_object() || !line.contains("defines") || !line["defines"].is_array())
    return bad("it has no defines");
  for (const Json& define : line["defines"]) {
    if (!define.is_string()) return bad("a define is not a string");
    outcome.defines.push_back(define.get<std::string>());
  }
  const auto fate = line.find("fate");
  bool known = false;
  for (const auto& [value, name] : kFates) {
    if (fate == line.end() || !fate->is_string() || fate->get<std::string>() != name) continue;
    outcome.fate = value;
    known = true;
  }
  if (!known) return bad("its fate is unknown");
  outcome.time_us = number_of(line, "us");
  outcome.low_us = number_of(line, "low_us");
  outcome.high_us = number_of(line, "high_us");
  if (outcome.fate == Fate::Timed && !(outcome.time_us > 0))
    return bad("it was timed but has no time");
  if (const auto reason = line.find("reason"); reason != line.end() && reason->is_string())
    outcome.reason = reason->get<std::string>();
  if (const auto facts = line.find("facts"); facts != line.end() && facts->is_object())
    outcome.facts = *facts;
  return outcome;
}

Result<Journal> Journal::open(sys::Files& files, const sys::fs::path& path, const Json& subject) {
  Journal journal;
  journal.path_ = path;
  if (!files.state(path).exists) {
    const Json first = {{"kiln_tune", 1}, {"subject", subject}};
    CHECK_OK(files.write(path, dump(first) + "\n"));
  } else {
    TRY(const std::string content, files.read(path));
    const size_t whole = content.rfind('\n') + 1;  // 0 where there is no newline at all
    bool is_first = true;
    for (std::string_view line : text::lines(std::string_view(content).substr(0, whole))) {
      const Result<Json> json = parse_json(line, path.string());
      if (!json) return bad_journal(path, json.error().why);
      if (is_first) {
        if (!json->is_object() || !json->contains("kiln_tune"))
          return bad_journal(path, "it is not a journal of kiln tune");
        if ((*json)["kiln_tune"] != 1)
          return bad_journal(path, "it was written by another version of kiln");
        const Json before = json->contains("subject") ? (*json)["subject"] : Json::object();
        if (before != subject) return bad_journal(path, first_difference(before, subject));
        is_first = false;
        continue;
      }
      Result<Outcome> outcome = outcome_from_json(*json);
      if (!outcome) return bad_journal(path, outcome.error().why);
      journal.outcomes_.push_back(std::move(*outcome));
    }
    if (is_first) return bad_journal(path, "it is not a journal of kiln tune");
    if (whole != content.size())
      CHECK_OK(files.write(path, std::string_view(content).substr(0, whole)));
  }
  journal.out_.open(path, std::ios::app | std::ios::binary);
  if (!journal.out_) return sys::disk_error("cannot write", path, errno);
  return journal;
}

void Journal::keep_those_of(const Space& space) {
  std::erase_if(outcomes_, [&](const Outcome& outcome) {
    const std::optional<Point> point = space.find(outcome.defines);
    if (!point) return true;
    const auto forbidden = space.forbidden_by(*point);
    return forbidden && !forbidden->empty();
  });
}

Status Journal::add(Outcome outcome) {
  out_ << dump(to_json(outcome)) << '\n' << std::flush;
  if (!out_) return sys::disk_error("cannot write", path_, errno);
  outcomes_.push_back(std::move(outcome));
  return {};
}

}  // namespace kiln::tune
