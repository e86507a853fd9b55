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

std::vector<double> samples_of(const results::Contender& contender) {
  std::vector<double> samples;
  for (double ns : contender.cold.samples_ns)
    if (ns > 0) samples.push_back(ns);
  return samples;
}

}  // namespace

std::vector<results::BenchResult> read_results(std::string_view text, int* skipped) {
  std::vector<results::BenchResult> results;
  for (std::string_view line : text::lines(text)) {
    if (text::trim(line).empty()) continue;
    const auto value = parse_json(line, "a line of the history");
    if (auto result = value ? results::read_bench(*value, "a line of the history") : value.error())
      results.push_back(std::move(*result));
    else if (skipped)
      ++*skipped;
  }
  return results;
}

Status append_result(sys::Files& files, const sys::fs::path& path,
                     const results::BenchResult& result) {
  // Read and written whole: appears by rename, as everything that kiln keeps.
  std::string text;
  if (files.state(path).exists) {
    TRY(text, files.read(path));
    if (!text.empty() && !text.ends_with('\n'))
      text += '\n';  // a line that was cut short stays alone
  }
  return files.write(path, text + dump(to_json(result)) + "\n", sys::Durable::No);
}

std::string key_of(const results::BenchResult& result, const results::Contender& contender) {
  std::string key = result.title.value_or("") + " / " + contender.name;
  for (const std::string& define : result.defines.value_or(std::vector<std::string>()))
    key += " -D" + define;
  return key;
}

std::string incomparable(const results::BenchResult& now, const results::BenchResult& then) {
  if (now.time != then.time)
    return fmt::format("another kind of device (now {}, then {})", now.time, then.time);
  const std::string &gpu_now = now.device.name, &gpu_then = then.device.name;
  if (gpu_now != gpu_then)
    return fmt::format("another device (now {}, then {})", gpu_now, gpu_then);
  const std::string host_now = results::fact_of(now.machine, "host"),
                    host_then = results::fact_of(then.machine, "host");
  if (host_now != host_then)
    return fmt::format("another machine (now {}, then {})", host_now, host_then);
  return "";
}

std::string differences(const results::BenchResult& now, const results::BenchResult& then) {
  std::vector<std::string> found;
  const auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      found.push_back(
          fmt::format("{} now {}, then {}", what, a.empty() ? "none" : a, b.empty() ? "none" : b));
  };
  compare("driver", now.device.driver, then.device.driver);
  compare("kiln", now.kiln.value_or(""), then.kiln.value_or(""));
  for (const char* name : {"torch", "nvcc", "python"})
    compare(name, results::fact_of(now.versions, name), results::fact_of(then.versions, name));
  compare("source", now.source_hash.value_or("").substr(0, 12),
          then.source_hash.value_or("").substr(0, 12));
  return text::join(found, "; ");
}

std::vector<Change> compare_with(const std::vector<results::BenchResult>& now,
                                 const std::vector<results::BenchResult>& then) {
  std::vector<Change> changes;
  for (const results::BenchResult& result : now) {
    const results::Contender& contender = result.contenders.front();
    const std::string key = key_of(result, contender);
    for (const results::BenchResult& old : then) {
      const results::Contender& before = old.contenders.front();
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
        "  {:<9} {}: {} now, {} then, {:.3f}x ({:.3f} to {:.3f}; noise floor {:.1f} %)\n",
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
