// SPDX-License-Identifier: Apache-2.0
// How does a person read a result?
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "base/units.h"
#include "measure/result.h"

namespace kiln::measure {
namespace {

double number(const Json& json, const char* key, double otherwise = 0) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string words(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& part(const Json& json, const char* key) {
  static const Json kNothing;
  const auto found = json.find(key);
  return found != json.end() ? *found : kNothing;
}

double half_width_percent(const Json& summary) {
  const double median = number(summary, "median_ns");
  return median > 0 ? 50 * (number(summary, "high_ns") - number(summary, "low_ns")) / median : 0;
}

std::string headline(const Json& result) {
  const Json& device = part(result, "device");
  const bool engine = time_kind(result) == "engine time";
  return fmt::format("{}: {} on {}\n",
                     words(result, "title").empty() ? "benchmark" : words(result, "title"),
                     engine ? "engine time (no GPU time)" : "GPU time", words(device, "name"));
}

std::string first_line(const Json& contender, bool engine) {
  const Json& cold = part(contender, "cold");
  std::string line = fmt::format("  {:<24} {:>9}  +-{:.1f} %", words(contender, "name"),
                                 time_text(number(cold, "median_ns")), half_width_percent(cold));
  if (!part(cold, "converged").is_boolean() || !part(cold, "converged").get<bool>())
    line += " (not converged)";
  line += fmt::format(", {} samples", static_cast<int64_t>(number(cold, "count")));
  if (const Json& kernel = part(contender, "kernel"); kernel.is_object() && !engine)
    line += fmt::format(", its kernels {}", time_text(number(kernel, "median_ns")));
  if (!engine && contender.contains("gb_per_s")) {
    line += fmt::format(", {}", rate_text(number(contender, "gb_per_s")));
    if (contender.contains("of_copy"))
      line += fmt::format(" = {:.0f} % of a copy", 100 * number(contender, "of_copy"));
  }
  if (!engine && contender.contains("tflop_per_s")) {
    line += fmt::format(", {:.3g} TFLOP/s", number(contender, "tflop_per_s"));
    if (contender.contains("of_gemm"))
      line += fmt::format(" = {:.0f} % of a matrix product", 100 * number(contender, "of_gemm"));
  }
  return line + "\n";
}

struct Row {
  std::string name;
  std::function<std::string(const Json&)> cell;
};

std::string median_cell(const Json& contender, const char* key) {
  const Json& summary = part(contender, key);
  return summary.is_object() ? time_text(number(summary, "median_ns")) : "-";
}

std::string table(const Json& result, bool engine) {
  const Json& contenders = part(result, "contenders");
  std::vector<Row> rows;
  const auto add = [&](std::string name, const char* key) {
    const bool any = std::any_of(contenders.begin(), contenders.end(),
                                 [&](const Json& one) { return part(one, key).is_object(); });
    if (any)
      rows.push_back({std::move(name), [key](const Json& one) { return median_cell(one, key); }});
  };
  if (engine) {
    add("a call", "cold");
    add("in a row", "batched");
    add("its kernels (engine)", "kernel");
  } else {
    add("isolated, cold L2", "cold");
    add("isolated, hot L2", "hot");
    add("in a row", "batched");
    add("in a CUDA graph", "graph");
    add("its kernels (CUPTI)", "kernel");
    add("launch (host)", "launch");
    add("call and wait (host)", "host_sync");
  }
  rows.push_back(
      {"first call (host)", [](const Json& one) { return time_text(number(one, "first_ns")); }});
  std::string out = fmt::format("  {:<24}", "");
  for (const Json& one : contenders) out += fmt::format(" {:>14.14}", words(one, "name"));
  out += "\n";
  for (const Row& row : rows) {
    out += fmt::format("  {:<24}", row.name);
    for (const Json& one : contenders) out += fmt::format(" {:>14}", row.cell(one));
    out += "\n";
  }
  return out;
}

// What the engine ran for one call: the same on every machine, as its time is not.
std::string engine_counts(const Json& contender) {
  const Json &kernels = part(contender, "kernels"), &counts = part(contender, "counts");
  if (!counts.is_object()) return "";
  const auto launches = static_cast<int64_t>(number(counts, "launches"));
  std::string out = fmt::format("  {} on the engine, a call: {} launch{} of {} threads in all\n",
                                words(contender, "name"), launches, launches == 1 ? "" : "es",
                                static_cast<int64_t>(number(counts, "threads")));
  for (const Json& kernel : kernels) {
    const auto size = [&](const char* key) {
      std::string text;
      for (const Json& one : part(kernel, key))
        text += fmt::format("{}{}", text.empty() ? "" : "x", one.get<int64_t>());
      while (text.ends_with("x1")) text.resize(text.size() - 2);
      return text;
    };
    out += fmt::format("    {}: {} blocks of {}, {}\n", words(kernel, "name"), size("grid"),
                       size("block"), time_text(number(kernel, "ns")));
  }
  return out;
}

std::string comparison_line(const Json& c, bool color) {
  const Json &ratio = part(c, "ratio"), &self = part(c, "a_against_a");
  std::string verdict = words(c, "verdict");
  if (color && verdict == "SLOWER") verdict = "\x1b[31m" + verdict + "\x1b[0m";
  if (color && verdict == "FASTER") verdict = "\x1b[32m" + verdict + "\x1b[0m";
  return fmt::format(
      "  {} against {}: {}, {:.3f}x its time ({:.3f} to {:.3f}; A against A {:.3f}; below {:.1f} % "
      "counts as equal)\n",
      words(c, "a"), words(c, "b"), verdict, number(ratio, "value", 1), number(ratio, "low", 1),
      number(ratio, "high", 1), number(self, "value", 1), 100 * number(c, "threshold"));
}

std::string machine_lines(const Json& result, bool engine) {
  std::string out;
  const Json &clocks = part(result, "clocks"), &roof = part(result, "roof");
  if (clocks.is_object()) {
    out += fmt::format("  clock {:.0f} MHz ({:.0f} to {:.0f})", number(clocks, "median_mhz"),
                       number(clocks, "least_mhz"), number(clocks, "greatest_mhz"));
    if (number(clocks, "watts") > 0)
      out +=
          fmt::format(", {:.0f} W, {:.0f} C", number(clocks, "watts"), number(clocks, "celsius"));
    out += "\n";
  }
  if (engine) return out;
  if (number(roof, "copy_gb_per_s") > 0) {
    out += fmt::format("  roof of this run: a copy {}", rate_text(number(roof, "copy_gb_per_s")));
    if (number(roof, "copy_same_size_gb_per_s") > 0)
      out += fmt::format(" ({} at this size)", rate_text(number(roof, "copy_same_size_gb_per_s")));
    if (number(roof, "gemm_tflop_per_s") > 0)
      out +=
          fmt::format(", a bf16 matrix product {:.0f} TFLOP/s", number(roof, "gemm_tflop_per_s"));
    out += "\n";
  }
  out +=
      fmt::format("  two events with nothing between: {} (in every time above, not subtracted)\n",
                  time_text(number(result, "empty_pair_ns")));
  return out;
}

}  // namespace

std::string result_text(const Json& result, bool color) {
  const bool engine = time_kind(result) == "engine time";
  std::string out = headline(result);
  if (!words(result, "correct").empty()) out += "  correct: " + words(result, "correct") + "\n";
  for (const Json& contender : part(result, "contenders")) out += first_line(contender, engine);
  out += table(result, engine);
  if (engine)
    for (const Json& contender : part(result, "contenders")) out += engine_counts(contender);
  for (const Json& c : part(result, "comparisons")) out += comparison_line(c, color);
  out += machine_lines(result, engine);
  for (const Json& finding : part(result, "findings")) {
    std::string weight = words(finding, "weight");
    if (color && weight != "note") weight = "\x1b[33m" + weight + "\x1b[0m";
    const std::string who = words(finding, "contender");
    out += fmt::format("  {} ({}{}): {}\n", weight, words(finding, "trap"),
                       who.empty() ? "" : ", " + who, words(finding, "text"));
  }
  return out;
}

std::string results_markdown(const Json& results) {
  std::string out =
      "| benchmark | contender | time | +- | hot L2 | in a row | graph | GB/s | of copy | TFLOP/s "
      "| against | verdict "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& result : results)
    for (const Json& one : part(result, "contenders")) {
      const Json& cold = part(one, "cold");
      std::string against, verdict;
      for (const Json& c : part(result, "comparisons"))
        if (words(c, "b") == words(one, "name")) {
          against = fmt::format("{:.3f}x", 1 / number(part(c, "ratio"), "value", 1));
          verdict = words(c, "verdict");
        }
      const auto optional = [&](const char* key, double factor, int digits) {
        return one.contains(key) ? fmt::format("{:.{}f}", factor * number(one, key), digits)
                                 : std::string();
      };
      out += fmt::format(
          "| {} | {} | {} | {:.1f} % | {} | {} | {} | {} | {} | {} | {} | {} |\n",
          words(result, "title"), words(one, "name"), time_text(number(cold, "median_ns")),
          half_width_percent(cold), median_cell(one, "hot"), median_cell(one, "batched"),
          median_cell(one, "graph"), optional("gb_per_s", 1, 0), optional("of_copy", 100, 0),
          optional("tflop_per_s", 1, 1), against, verdict);
    }
  if (!results.empty()) {
    const Json &result = results.front(), &device = part(result, "device");
    out += fmt::format("\n{} on {}; driver {}; {}; kiln {}\n", time_kind(result),
                       words(device, "name"),
                       words(device, "driver").empty() ? "none" : words(device, "driver"),
                       words(result, "date"), words(result, "kiln"));
  }
  return out;
}

namespace {

std::string csv_cell(std::string text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return "\"" + text::replace_all(text, "\"", "\"\"") + "\"";
}

}  // namespace

std::string results_csv(const Json& results) {
  std::string out =
      "date,benchmark,contender,time_kind,device,median_ns,low_ns,high_ns,samples,hot_ns,batched_"
      "ns,graph_ns,kernel_ns,"
      "launch_ns,first_ns,bytes,flops,gb_per_s,tflop_per_s,converged,refused\n";
  for (const Json& result : results)
    for (const Json& one : part(result, "contenders")) {
      const Json& cold = part(one, "cold");
      const auto median_of = [&](const char* key) {
        const Json& summary = part(one, key);
        return summary.is_object() ? fmt::format("{:.1f}", number(summary, "median_ns"))
                                   : std::string();
      };
      const auto optional = [&](const char* key) {
        return one.contains(key) ? fmt::format("{:.6g}", number(one, key)) : std::string();
      };
      out += fmt::format(
          "{},{},{},{},{},{:.1f},{:.1f},{:.1f},{},{},{},{},{},{},{:.1f},{},{},{},{},{},{}\n",
          words(result, "date"), csv_cell(words(result, "title")), csv_cell(words(one, "name")),
          time_kind(result), csv_cell(words(part(result, "device"), "name")),
          number(cold, "median_ns"), number(cold, "low_ns"), number(cold, "high_ns"),
          static_cast<int64_t>(number(cold, "count")), median_of("hot"), median_of("batched"),
          median_of("graph"), median_of("kernel"), median_of("launch"), number(one, "first_ns"),
          optional("bytes"), optional("flops"), optional("gb_per_s"), optional("tflop_per_s"),
          part(cold, "converged") == true, part(result, "refused") == true);
    }
  return out;
}

}  // namespace kiln::measure
