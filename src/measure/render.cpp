// SPDX-License-Identifier: Apache-2.0
#include "measure/render.h"

#include <fmt/format.h>

#include "report/bench.h"
#include "report/charts/lanes.h"
#include "report/cold.h"
#include "report/profile.h"
#include "report/tune.h"

namespace kiln::measure {

namespace {

constexpr const char* kSource = "the result";

Result<std::string> render_bench(std::string_view kind, const Json& value) {
  TRY(const std::vector<results::BenchResult> list, results::read_benches(value, kSource));
  if (kind == "markdown") return report::bench_markdown(list);
  if (kind == "csv") return report::bench_csv(list);
  if (kind == "html") {
    std::vector<results::BenchResult> history;
    if (value.is_object() && value.contains("history")) {
      TRY(history, results::read_benches(value["history"], "the history"));
    }
    return report::bench_page(list, history);
  }
  std::string out;
  for (const results::BenchResult& result : list) {
    out += (out.empty() ? "" : "\n") + report::bench_text(result);
    if (kind == "explain") out += report::naive_times_text(result);
  }
  return out;
}

}  // namespace

Result<std::string> render(std::string_view kind, const Json& value) {
  for (const char* one : {"text", "explain", "markdown", "csv", "html"})
    if (kind == one) return render_bench(kind, value);
  if (kind == "profile-text" || kind == "profile-html") {
    TRY(const results::Profile profile, results::read_profile(value, "the profile"));
    return kind == "profile-text" ? report::profile_text(profile) : report::profile_page(profile);
  }
  if (kind == "cold-text" || kind == "cold-html") {
    TRY(const results::ColdResult cold, results::read_cold(value, kSource));
    return kind == "cold-text" ? report::cold_text(cold) : report::cold_page(cold);
  }
  if (kind == "tune-html") {
    TRY(const results::TuneResult tune, results::read_tune(value, kSource));
    return report::tune_page(tune);
  }
  if (kind == "lanes-text" || kind == "lanes-svg") {
    TRY(const results::LaneAccess access, results::read_lane_access(value, "the access"));
    return kind == "lanes-text" ? report::lanes_text(access) : report::lanes_picture(access);
  }
  return Error{Fault::Usage, fmt::format("cannot show a result as '{}'", kind),
               "the forms are text, explain, markdown, csv, html, profile-text, profile-html, "
               "cold-text, cold-html, tune-html, lanes-text, lanes-svg",
               "choose one of these"};
}

namespace {

// One option: where it goes.
struct Option {
  const char* name;
  void (*set)(RunOptions&, const Json&);
};

bool is_true(const Json& value) {
  return value.is_boolean() ? value.get<bool>() : value.get<double>() != 0;
}

constexpr Option kOptions[] = {
    {"precision_percent",
     [](RunOptions& o, const Json& v) { o.patience.precision = v.get<double>() / 100; }},
    {"min_warm_up_s",
     [](RunOptions& o, const Json& v) { o.patience.min_warm_up_s = v.get<double>(); }},
    {"max_warm_up_s",
     [](RunOptions& o, const Json& v) { o.patience.max_warm_up_s = v.get<double>(); }},
    {"min_samples",
     [](RunOptions& o, const Json& v) { o.patience.min_samples = v.get<int64_t>(); }},
    {"min_time_s", [](RunOptions& o, const Json& v) { o.patience.min_time_s = v.get<double>(); }},
    {"max_time_s", [](RunOptions& o, const Json& v) { o.patience.max_time_s = v.get<double>(); }},
    {"in_flight", [](RunOptions& o, const Json& v) { o.limits.in_flight = v.get<int>(); }},
    {"trace_flush", [](RunOptions& o, const Json& v) { o.limits.trace_flush = is_true(v); }},
    {"call_limit_s", [](RunOptions& o, const Json& v) { o.limits.call_s = v.get<double>(); }},
    {"check_share", [](RunOptions& o, const Json& v) { o.check_share = v.get<double>(); }},
    {"side_s", [](RunOptions& o, const Json& v) { o.side_s = v.get<double>(); }},
    {"side", [](RunOptions& o, const Json& v) { o.side = is_true(v); }},
    {"kernels", [](RunOptions& o, const Json& v) { o.kernels = is_true(v); }},
    {"roof", [](RunOptions& o, const Json& v) { o.roof = is_true(v); }},
    {"seed", [](RunOptions& o, const Json& v) { o.seed = v.get<uint64_t>(); }},
};

}  // namespace

Result<RunOptions> run_options(const Json& options) {
  RunOptions out;
  for (const auto& [name, value] : options.items()) {
    if (name == "device" || name == "index" || name == "stream") continue;
    const Option* known = nullptr;
    for (const Option& option : kOptions)
      if (name == option.name) known = &option;
    if (!known)
      return Error{Fault::Usage, fmt::format("unknown benchmark option '{}'", name),
                   "kiln docs bench lists them", "correct it, or leave it out"};
    if (!value.is_number() && !value.is_boolean())
      return Error{Fault::Usage, fmt::format("option '{}' is {}", name, dump(value)),
                   "it must be a number", fmt::format("{}=1.0, for example", name)};
    if (known->set) known->set(out, value);
  }
  if (out.patience.min_time_s > out.patience.max_time_s)
    out.patience.min_time_s = out.patience.max_time_s;
  return out;
}

}  // namespace kiln::measure
