// SPDX-License-Identifier: Apache-2.0
// Why did a build do what it did, and how long did each part take?
#include "build/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace kiln::build {

namespace {

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

// Steps that overlap in time go to lanes of their own.
std::vector<size_t> lanes_of(const std::vector<StepReport>& steps) {
  std::vector<size_t> lanes;
  std::vector<double> busy_until;
  for (const StepReport& step : steps) {
    double begin = static_cast<double>(step.begin_ns) / 1e9;
    size_t lane = 0;
    while (lane < busy_until.size() && busy_until[lane] > begin + 1e-4) ++lane;
    if (lane == busy_until.size()) busy_until.push_back(0);
    busy_until[lane] = begin + step.seconds;
    lanes.push_back(lane);
  }
  return lanes;
}

int64_t first_ns(const std::vector<StepReport>& steps) {
  int64_t first = steps.empty() ? 0 : steps[0].begin_ns;
  for (const StepReport& step : steps) first = std::min(first, step.begin_ns);
  return first;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<'   ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  return out;
}

constexpr const char* kPage =
    R"(<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>kiln build {title}</title>
<style>
body{{font:14px/1.4 system-ui,sans-serif;margin:24px;color:#1c1c1c;background:#fff}}
h1{{font-size:20px;margin:0 0 4px}} h2{{font-size:16px;margin:24px 0 4px}}
p{{margin:4px 0;color:#444}}
.wide{{overflow-x:auto}}
svg{{box-sizing:border-box;width:100%;min-width:1000px;height:auto;border:1px solid #ddd;
  margin-top:12px;background:#fafafa}}
.legend i{{display:inline-block;width:11px;height:11px;margin:0 5px 0 0;border-radius:2px}}
.legend span{{display:inline-block;margin-right:14px}}
text{{font:11px system-ui,sans-serif}} table{{border-collapse:collapse;margin-top:16px}}
td,th{{padding:3px 12px 3px 0;text-align:left;border-bottom:1px solid #eee}}
td.n{{text-align:right;font-variant-numeric:tabular-nums}}
@media (prefers-color-scheme:dark){{
body{{background:#181818;color:#ddd}} p{{color:#aaa}} svg{{background:#222;border-color:#444}}
text{{fill:#ddd}} td,th{{border-color:#333}}}}
</style>
<h1>kiln build {title}</h1>
<p>{summary}</p><p>{why}</p>
<div class="wide">{svg}</div>
<p class="legend">{legend}</p>
<div class="wide">{table}</div>
</html>
)";

struct Chart {
  double scale = 1;  // pixels a second
  std::string out;
};

constexpr int kWidth = 1200, kLeft = 10, kRow = 34;

void draw_bar(std::string& out, double x, double y, double width, double height,
              std::string_view color, std::string_view tip) {
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"{}\"><title>{}</title></rect>",
      x, y, std::max(width, 1.0), height, color, escaped(tip));
}

// The wide bars are steps, the narrow ones below them the programs that each ran.
struct Color {
  std::string_view of, color;
};
constexpr std::array<Color, 8> kColors = {{{"from the cache", "#8bc48b"},
                                           {"device code", "#e8923a"},
                                           {"pack and link", "#a78bd4"},
                                           {"host code", "#5b9bd5"},
                                           {"cicc, nvrtc", "#b8601a"},
                                           {"ptxas", "#d94f4f"},
                                           {"cudafe++", "#2f6da8"},
                                           {"other programs", "#7f8c99"}}};

std::string_view color_of(const StepReport& step) {
  if (step.answer == Answer::Direct || step.answer == Answer::Content) return kColors[0].color;
  if (step.kind == "device" || step.kind == "slice") return kColors[1].color;
  if (step.kind == "link" || step.kind == "fat") return kColors[2].color;
  return kColors[3].color;
}

std::string_view color_of_program(std::string_view program) {
  if (program == "cicc" || program == "nvrtc") return kColors[4].color;
  if (program == "ptxas") return kColors[5].color;
  if (program == "cudafe++") return kColors[6].color;
  return kColors[7].color;
}

std::string legend() {
  std::string out;
  for (const Color& one : kColors)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", one.color, one.of);
  return out;
}

std::string draw(const Outcome& outcome) {
  const auto& steps = outcome.steps;
  int64_t zero = first_ns(steps);
  double span = 1e-3;
  for (const StepReport& step : steps)
    span = std::max(span, static_cast<double>(step.begin_ns - zero) / 1e9 + step.seconds);
  double scale = (kWidth - 2 * kLeft) / span;
  std::vector<size_t> lanes = lanes_of(steps);
  size_t count = lanes.empty() ? 0 : *std::max_element(lanes.begin(), lanes.end()) + 1;
  int height = static_cast<int>(count) * kRow + 30;
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"steps over time\">", kWidth, height);
  for (int tick = 0; tick <= 10; ++tick) {
    double x = kLeft + (kWidth - 2 * kLeft) * tick / 10.0;
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"16\" y2=\"{1}\" stroke=\"#888\" "
        "stroke-opacity=\"0.4\" stroke-width=\"0.5\"/>"
        "<text x=\"{0:.1f}\" y=\"11\" text-anchor=\"{2}\">{3:.2f} s</text>",
        x, height,
        tick == 0    ? "start"
        : tick == 10 ? "end"
                     : "middle",
        span * tick / 10);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepReport& step = steps[i];
    double x = kLeft + static_cast<double>(step.begin_ns - zero) / 1e9 * scale;
    double y = 20 + static_cast<double>(lanes[i]) * kRow;
    std::string tip =
        fmt::format("{}: {} ({})", step.what, text::duration(step.seconds), cache_word(step));
    draw_bar(out, x, y, step.seconds * scale, 16, color_of(step), tip);
    for (const CommandRun& run : step.commands)
      draw_bar(out, kLeft + static_cast<double>(run.begin_ns - zero) / 1e9 * scale, y + 17,
               run.seconds * scale, 8, color_of_program(run.program),
               fmt::format("{}: {}, {} of CPU, {}", run.program, text::duration(run.seconds),
                           text::duration(run.cpu_seconds), megabytes(run.peak_bytes)));
    size_t room = static_cast<size_t>(std::max(0.0, step.seconds * scale / 6.5));
    if (room > 4)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"fill:#111\">{}</text>", x + 4,
                         y + 12, escaped(step.what.substr(0, room)));
  }
  return out + "</svg>";
}

std::string table(const Outcome& outcome) {
  std::string out =
      "<table><tr><th>step</th><th>seconds</th><th>cache</th><th>memory</th><th>programs</th></tr>";
  for (const StepReport& step : outcome.steps) {
    std::string programs;
    for (const CommandRun& run : step.commands)
      programs += fmt::format("{}{} {}", programs.empty() ? "" : ", ", run.program,
                              text::duration(run.seconds));
    out += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{:.3f}</td><td>{}</td><td "
        "class=\"n\">{}</td><td>{}</td></tr>",
        escaped(step.what), step.seconds, cache_word(step), megabytes(step.peak_bytes()),
        escaped(programs));
  }
  out += "</table>";
  if (outcome.headers.empty()) return out;
  out +=
      "<h2>Slow headers</h2><p>Of device code, timed by compiling it once "
      "more.</p><table><tr><th>header</th><th>seconds</th></tr>";
  for (const HeaderTime& header : outcome.headers)
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{:.3f}</td></tr>", escaped(header.name),
                       header.seconds);
  return out + "</table>";
}

}  // namespace

std::string explain(const Outcome& outcome) {
  const Explanation& e = outcome.explanation;
  std::string out = fmt::format("{:<14}{}\n", "because", e.trigger);
  out += fmt::format("{:<14}{}: {}\n", "lane", e.lane, e.why_lane);
  out += fmt::format("{:<14}{}{}\n", "architectures", project::describe(outcome.arch),
                     e.why_variant.empty() ? "" : ": " + e.why_variant);
  if (e.jobs > 0)
    out += fmt::format("{:<14}{} ({}); {} cores, {:.1f} GB of memory available\n", "jobs", e.jobs,
                       e.why_jobs, e.cores, static_cast<double>(e.available_bytes) / 1e9);
  for (const StepReport& step : outcome.steps) {
    std::string memory = step.peak_bytes() ? ", " + megabytes(step.peak_bytes()) : "";
    out += fmt::format("{:<14}{} {}{}\n", "step", step.what, text::duration(step.seconds), memory);
    bool hit = step.answer == Answer::Direct || step.answer == Answer::Content;
    std::string_view where = step.origin == Origin::Remote ? "shared cache" : "cache";
    if (step.answer == Answer::Off)
      out += fmt::format("{:<14}  no cache\n", "");
    else if (step.answer == Answer::Never)
      out += fmt::format("{:<14}  not cached: {}\n", "", step.why);
    else if (hit)
      out += fmt::format("{:<14}  hit in the {}{}: key {}\n", "", where,
                         step.answer == Answer::Content ? ", by the same preprocessed text" : "",
                         step.cache_key.substr(0, 12));
    else if (!step.why.empty())
      out += fmt::format("{:<14}  miss: {}\n", "", step.why);
    for (const CommandRun& run : step.commands)
      out += fmt::format("{:<14}  {} {}\n", "", run.program, text::duration(run.seconds));
  }
  for (const HeaderTime& header : outcome.headers)
    out += fmt::format("{:<14}{} {}\n", "header", header.name, text::duration(header.seconds));
  return out;
}

Json explain_json(const Outcome& outcome) {
  const Explanation& e = outcome.explanation;
  Json steps = Json::array();
  for (const StepReport& step : outcome.steps) steps.push_back(to_json(step));
  return {{"trigger", e.trigger},
          {"lane", e.lane},
          {"why_variant", e.why_variant},
          {"why_lane", e.why_lane},
          {"jobs", e.jobs},
          {"why_jobs", e.why_jobs},
          {"cores", e.cores},
          {"available_bytes", e.available_bytes},
          {"steps", steps}};
}

Json chrome_trace(const Outcome& outcome) {
  Json events = Json::array();
  int64_t zero = first_ns(outcome.steps);
  std::vector<size_t> lanes = lanes_of(outcome.steps);
  auto event = [&](const std::string& name, const std::string& kind, int64_t begin_ns,
                   double seconds, size_t lane, Json more) {
    events.push_back({{"name", name},
                      {"cat", kind},
                      {"ph", "X"},
                      {"ts", static_cast<double>(begin_ns - zero) / 1e3},
                      {"dur", seconds * 1e6},
                      {"pid", 1},
                      {"tid", lane + 1},
                      {"args", std::move(more)}});
  };
  for (size_t i = 0; i < outcome.steps.size(); ++i) {
    const StepReport& step = outcome.steps[i];
    event(step.what, step.kind, step.begin_ns, step.seconds, lanes[i],
          {{"cache", cache_word(step)}, {"why", step.why}, {"peak_bytes", step.peak_bytes()}});
    for (const CommandRun& run : step.commands)
      event(run.program, "program", run.begin_ns, run.seconds, lanes[i],
            {{"cpu_seconds", run.cpu_seconds}, {"peak_bytes", run.peak_bytes}});
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

std::string timeline_page(const Outcome& outcome) {
  const Explanation& e = outcome.explanation;
  std::string summary = fmt::format(
      "{} in {}, {}; {} jobs ({})", outcome.rebuilt ? "built" : "nothing changed",
      text::duration(outcome.seconds), project::describe(outcome.arch), e.jobs, e.why_jobs);
  return fmt::format(kPage, fmt::arg("title", escaped(outcome.name)),
                     fmt::arg("summary", escaped(summary)),
                     fmt::arg("why", escaped(fmt::format("{} lane: {}", e.lane, e.why_lane))),
                     fmt::arg("svg", draw(outcome)), fmt::arg("legend", legend()),
                     fmt::arg("table", table(outcome)));
}

}  // namespace kiln::build
