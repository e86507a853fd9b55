// SPDX-License-Identifier: Apache-2.0
#include "measure/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "measure/result.h"

namespace kiln::measure {
namespace {

const Json& part(const Json& json, const char* key) {
  static const Json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(key);
  return found != json.end() ? *found : kNothing;
}

std::string words(const Json& json, const char* key) {
  const Json& value = part(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

bool is_result(const Json& value) {
  const Json& contenders = part(value, "contenders");
  if (part(value, "format") != kResultFormat || !contenders.is_array() || contenders.empty())
    return false;
  return std::all_of(contenders.begin(), contenders.end(), [](const Json& one) {
    const Json& cold = part(one, "cold");
    return part(one, "name").is_string() && part(cold, "median_ns").is_number() &&
           part(cold, "samples_ns").is_array();
  });
}

std::vector<double> samples_of(const Json& contender) {
  std::vector<double> samples;
  for (const Json& value : part(part(contender, "cold"), "samples_ns"))
    if (value.is_number() && value.get<double>() > 0) samples.push_back(value.get<double>());
  return samples;
}

}  // namespace

std::vector<Json> read_results(std::string_view text, int* skipped) {
  std::vector<Json> results;
  for (std::string_view line : text::lines(text)) {
    if (text::trim(line).empty()) continue;
    auto value = parse_json(line, "a line of the history");
    if (value && is_result(*value))
      results.push_back(std::move(*value));
    else if (skipped)
      ++*skipped;
  }
  return results;
}

Status append_result(sys::Files& files, const sys::fs::path& path, const Json& result) {
  // Read and written whole: appears by rename, as everything that kiln keeps.
  std::string text;
  if (files.state(path).exists) {
    TRY(text, files.read(path));
    if (!text.empty() && !text.ends_with('\n'))
      text += '\n';  // a line that was cut short stays alone
  }
  return files.write(path, text + dump(result) + "\n", sys::Durable::No);
}

std::string key_of(const Json& result, const Json& contender) {
  std::string key = words(result, "title") + " / " + words(contender, "name");
  for (const Json& define : part(result, "defines"))
    if (define.is_string()) key += " -D" + define.get<std::string>();
  return key;
}

std::string incomparable(const Json& now, const Json& then) {
  if (time_kind(now) != time_kind(then))
    return fmt::format("one is {}, the other {}", time_kind(now), time_kind(then));
  const std::string gpu_now = words(part(now, "device"), "name"),
                    gpu_then = words(part(then, "device"), "name");
  if (gpu_now != gpu_then) return fmt::format("another device ({}, then {})", gpu_now, gpu_then);
  const std::string host_now = words(part(now, "machine"), "host"),
                    host_then = words(part(then, "machine"), "host");
  if (host_now != host_then)
    return fmt::format("another machine ({}, then {})", host_now, host_then);
  return "";
}

std::string differences(const Json& now, const Json& then) {
  std::vector<std::string> found;
  const auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      found.push_back(
          fmt::format("{} {}, then {}", what, a.empty() ? "none" : a, b.empty() ? "none" : b));
  };
  compare("driver", words(part(now, "device"), "driver"), words(part(then, "device"), "driver"));
  compare("kiln", words(now, "kiln"), words(then, "kiln"));
  for (const char* name : {"torch", "nvcc", "python"})
    compare(name, words(part(now, "versions"), name), words(part(then, "versions"), name));
  compare("source", words(now, "source_hash").substr(0, 12),
          words(then, "source_hash").substr(0, 12));
  return text::join(found, "; ");
}

std::vector<Change> compare_with(const std::vector<Json>& now, const std::vector<Json>& then) {
  std::vector<Change> changes;
  for (const Json& result : now) {
    const Json& contender = part(result, "contenders").front();
    const std::string key = key_of(result, contender);
    for (const Json& old : then) {
      const Json& before = part(old, "contenders").front();
      if (key_of(old, before) != key) continue;
      const std::vector<double> a = samples_of(contender), b = samples_of(before);
      if (a.empty() || b.empty()) continue;
      Change change;
      change.what = key;
      change.ratio = unpaired_ratio(a, b);
      change.now_ns = median(a);
      change.then_ns = median(b);
      // Not taken together: windows of equal kernels differ by up to 3 %, noisy ones by their own
      // spread.
      const double spread = relative_half_width(sorted(a)) + relative_half_width(sorted(b));
      change.threshold = std::max(kLeastDifferenceAcrossRuns, 2 * spread);
      change.verdict = verdict_of(change.ratio, change.threshold);
      changes.push_back(std::move(change));
      break;
    }
  }
  return changes;
}

std::string changes_text(const std::vector<Change>& changes) {
  std::string out;
  for (const Change& change : changes)
    out += fmt::format(
        "  {:<9} {}: {} now, {} then, {:.3f}x ({:.3f} to {:.3f}; below {:.1f} % counts as equal)\n",
        name_of(change.verdict), change.what, time_text(change.now_ns), time_text(change.then_ns),
        change.ratio.value, change.ratio.interval.low, change.ratio.interval.high,
        100 * change.threshold);
  return out;
}

bool has_regression(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.verdict == Verdict::Slower; });
}

}  // namespace kiln::measure
