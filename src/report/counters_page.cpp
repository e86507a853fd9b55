// SPDX-License-Identifier: Apache-2.0
// How do counters read on a page? Source with heat by any metric, PTX beside it, and the addresses
// of a warp. Everything is in the page's data; the script draws it.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <unordered_map>

#include "base/units.h"
#include "report/charts/charts.h"
#include "report/counters.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::LaunchReport;

constexpr size_t kMostLaunches = 20;  // of a page: a loop of a thousand launches has one shape

std::string bound_section(const LaunchReport& launch) {
  if (launch.bound.limits.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"resource", "least time", "work"}};
  for (const results::Limit& limit : launch.bound.limits)
    rows.push_back({escape(limit.resource), time_text(limit.us * 1e3), escape(limit.work)});
  return "<div class=\"wide\">" + table(rows, "tnt") + "</div>";
}

// Both axes are logarithmic: FLOP per byte of DRAM, and FLOP/s.
std::string roofline(const LaunchReport& launch) {
  const results::Bound& bound = launch.bound;
  if (bound.flops <= 0 || bound.dram_bytes <= 0 || bound.limits.empty()) return "";
  const double intensity = bound.flops / bound.dram_bytes;
  const double ridge = bound.peak_gflops / bound.peak_gb_per_s;
  const double left = std::min(intensity, ridge) / 8, right = std::max(intensity, ridge) * 8;
  const double best = bound.flops / bound.limits[0].us / 1e3;
  const Line roof{"roof",
                  {{left, left * bound.peak_gb_per_s, "DRAM"},
                   {ridge, bound.peak_gflops, "ridge"},
                   {right, bound.peak_gflops, "arithmetic"}}};
  const Line kernel{
      "this launch at its bound",
      {{intensity, best, fmt::format("{:.2f} FLOP per byte, {:.0f} GFLOP/s", intensity, best)}}};
  return "<h3>Roofline</h3>\n" +
         line_chart({roof, kernel},
                    {.x = "FLOP per byte of DRAM", .y = "GFLOP/s", .log_x = true, .log_y = true});
}

std::string launch_section(const LaunchReport& launch, const std::string& gpu, size_t index) {
  std::string out = fmt::format(
      "<section class=\"launch\" data-launch=\"{}\"{}>\n<p>Grid {} x {} x {}, block {} x {} x "
      "{}.",
      index, index ? " hidden" : "", launch.grid[0], launch.grid[1], launch.grid[2],
      launch.block[0], launch.block[1], launch.block[2]);
  if (launch.resources) {
    const results::KernelResources& used = *launch.resources;
    out += fmt::format(" {}: {} registers, {} static shared, occupancy {:.0f} % (limited by {}).",
                       used.arch, used.registers,
                       memory_text(static_cast<double>(used.static_shared_bytes)),
                       100 * used.occupancy, used.limiter);
  } else {
    out += " " + escape(launch.no_resources) + ".";
  }
  out += "</p>\n";
  if (!launch.bound.limits.empty())
    out += fmt::format("<p><b>Lower bound on {}: {} ({})</b></p>\n", escape(gpu),
                       time_text(launch.bound.limits[0].us * 1e3),
                       escape(launch.bound.limits[0].resource));
  if (!launch.advice.empty()) {
    out += "<ul>\n";
    for (const results::Advice& advice : launch.advice)
      out += fmt::format("<li>{}{}{}</li>\n", escape(advice.at), advice.at.empty() ? "" : ": ",
                         escape(advice.text));
    out += "</ul>\n";
  }
  return out + bound_section(launch) + roofline(launch) + "</section>\n";
}

// Samples that look the same are in the data once.
class Samples {
 public:
  int index_of(const std::optional<results::WarpSample>& sample) {
    if (!sample) return -1;
    Json json{{"space", sample->space},
              {"kind", sample->kind},
              {"bytes", sample->bytes},
              {"at", sample->addresses}};
    const auto [found, added] = known_.emplace(json.dump(), all_.size());
    if (added) all_.push_back(std::move(json));
    return static_cast<int>(found->second);
  }
  Json take() { return std::move(all_); }

 private:
  std::unordered_map<std::string, size_t> known_;
  Json all_ = Json::array();
};

Json counts_json(const results::Counts& counts) {
  Json out = Json::array();
  for (size_t i = 0; i < results::kMetricCount; ++i) {
    if (counts.of[i]) out.push_back(Json::array({i, counts.of[i]}));
  }
  return out;
}

Json launches_json(const results::CounterReport& report, const results::CounterRun& run,
                   Samples& samples, std::set<uint64_t>& used) {
  Json out = Json::array();
  size_t shown = 0;
  for (const results::CounterLaunch& launch : run.launches) {
    if (shown == report.launches.size() || shown == kMostLaunches) break;
    if (launch.kernel != report.launches[shown].kernel) continue;  // --kernel left it out
    ++shown;
    Json sites = Json::array();
    for (const results::CounterSite& site : launch.sites) {
      used.insert(site.program);
      sites.push_back(Json::array({site.program, site.instruction, counts_json(site.counts),
                                   samples.index_of(site.sample)}));
    }
    out.push_back(
        {{"name", fmt::format("{}. {}", shown, launch.kernel)}, {"sites", std::move(sites)}});
  }
  return out;
}

Json programs_json(const results::CounterRun& run, const std::set<uint64_t>& used) {
  Json out = Json::object();
  for (const results::CounterProgram& program : run.programs) {
    if (!used.count(program.id)) continue;
    Json instructions = Json::array();
    for (const results::CounterInstruction& each : program.instructions)
      instructions.push_back(Json::array({each.at, each.ptx_line, each.ptx, each.inlined_at}));
    out[std::to_string(program.id)] = {{"name", program.name},
                                       {"instructions", std::move(instructions)}};
  }
  return out;
}

// Whole files would carry headers of the toolkit along: only those that a launch has lines of.
Json sources_json(const SourceTexts& sources) {
  Json out = Json::object();
  for (const auto& [name, lines] : sources) out[name] = lines;
  return out;
}

}  // namespace

std::string counters_page(const results::CounterReport& report, const results::CounterRun& run,
                          const SourceTexts& sources) {
  Samples samples;
  std::set<uint64_t> used;
  Json launches = launches_json(report, run, samples, used);
  Json metrics = Json::array();
  for (const results::MetricName& metric : results::kMetrics)
    metrics.push_back(Json::array({std::string(metric.id), std::string(metric.meaning)}));
  std::string body = fmt::format(
      "<h1>Counters</h1>\n<p class=\"soft\">Counted on kiln's engine for {}; instructions are PTX. "
      "Counts are exact; L2, DRAM and the bound are modelled.</p>\n"
      "<p class=\"choose\"><label>launch <select id=\"launch\"></select></label>"
      "<label>heat <select id=\"metric\"></select></label></p>\n",
      escape(report.gpu));
  for (size_t i = 0; i < report.launches.size() && i < kMostLaunches; ++i)
    body += launch_section(report.launches[i], report.gpu, i);
  body +=
      "<h2>Source</h2>\n<p class=\"soft\">Choose a line for its PTX, an instruction for the "
      "addresses of its costliest warp.</p>\n"
      "<div class=\"panes\"><div class=\"pane\" id=\"source\"></div>"
      "<div class=\"pane\"><div id=\"ptx\"></div><div id=\"warp\"></div></div></div>\n";
  return page({.title = "kiln counters",
               .body = body,
               .style = kLook_counters_css,
               .script = kLook_counters_js,
               .data = {{"launches", std::move(launches)},
                        {"programs", programs_json(run, used)},
                        {"samples", samples.take()},
                        {"metrics", std::move(metrics)},
                        {"sources", sources_json(sources)}}});
}

}  // namespace kiln::report
