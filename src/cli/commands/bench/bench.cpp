// SPDX-License-Identifier: Apache-2.0
// `kiln bench`: how long does an op take, and can the figure be believed?
#include "report/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>

#include "base/hash.h"
#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_bound.h"
#include "cli/commands/bench/bench_cases.h"
#include "cli/commands/bench/bench_cold.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/options.h"
#include "measure/history.h"
#include "measure/trust.h"
#include "project/manifest.h"
#include "sys/clock.h"
#include "sys/machine.h"

namespace kiln::cli {
namespace bench_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  build::Request request;
  std::string target = ".", device, baseline, new_baseline, history, markdown, csv, html, output,
              gpu;
  BenchPlan plan;
  std::vector<std::string> axes, vary, process, cold_process;
  double limit_s = 120, precision = 0, min_seconds = 0, seconds = 0;
  uint64_t seed = 0;
  bool naive_times = false, across_machines = false, update = false, no_history = false,
       quick = false;
  bool cold = false, bound = false;
  int cold_runs = 10;
};

bool is_library(const fs::path& target) {
  const std::string name = target.filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// What was built, and how long that took.
struct Built {
  fs::path library, folder;  // the folder in which results are kept
  double seconds = 0;
  std::string source_hash;
};

std::string hash_of_sources(const fs::path& target) {
  const sys::Files& files = sys::real_files();
  Hasher hasher;
  std::vector<fs::path> sources = {target};
  if (files.state(target).is_directory) {
    sources.clear();
    if (auto manifest = project::read_manifest(files, target / project::kManifestName))
      for (const std::string& source : manifest->sources) sources.push_back(target / source);
  }
  for (const fs::path& source : sources)
    if (auto text = files.read(source)) hasher.add_field(*text);
  return hasher.hex();
}

Result<Built> build_case(const Options& options, const BenchCase& one, Context& context) {
  const fs::path target = context.directory / options.target;
  if (is_library(target))
    return Built{target, target.parent_path() / "kiln-bench", 0, hash_of_sources(target)};
  build::Request request = options.request;
  request.targets = {options.target};
  request.defines.insert(request.defines.end(), one.defines.begin(), one.defines.end());
  TRY(const build::Outcome outcome, build_for(context, request));
  return Built{outcome.file, outcome.build_dir / "bench", outcome.seconds, hash_of_sources(target)};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string cpu_name() {
  const auto text = sys::real_files().read("/proc/cpuinfo");
  if (!text) return "";
  for (const char* label : {"model name", "CPU part"})
    for (std::string_view line : text::lines(*text))
      if (line.starts_with(label)) return std::string(text::trim(line.substr(line.find(':') + 1)));
  return "";
}

void add_facts(const Options& options, const BenchCase& one, const Built& built,
               results::BenchResult& result) {
  if (!result.date) result.date = utc_now();
  result.kiln = KILN_VERSION_STRING;
  if (!result.machine) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    result.machine =
        Json{{"host", host}, {"cpu", cpu_name()}, {"cores", sys::usable_cores(sys::real_files())}};
  }
  if (!result.versions) result.versions = Json::object();
  result.source_hash = built.source_hash;
  std::vector<std::string> defines = options.request.defines;
  defines.insert(defines.end(), one.defines.begin(), one.defines.end());
  result.defines = defines;
  Json values = Json::object();
  for (const auto& [name, value] : one.values) values[name] = value;
  result.axes = values;
  if (!result.start) result.start = Json::object();
  (*result.start)["build_s"] = built.seconds;
}

Json core_options(const Options& options) {
  Json json = Json::object();
  if (options.precision > 0) json["precision_percent"] = options.precision;
  if (options.min_seconds > 0) json["min_time_s"] = options.min_seconds;
  if (options.seconds > 0) json["max_time_s"] = options.seconds;
  if (options.seed) json["seed"] = options.seed;
  if (options.quick)
    json.update({{"min_warm_up_s", 0.02},
                 {"max_warm_up_s", 0.1},
                 {"min_time_s", 0.05},
                 {"max_time_s", 1},
                 {"side_s", 0.01},
                 {"precision_percent", 2}});
  return json;
}

Result<results::BenchResult> run_case(const Options& options, const BenchCase& one,
                                      const Built& built, Context& context) {
  measure::OpRequest request;
  request.library = built.library;
  request.op = one.op;
  request.arguments = one.arguments;
  request.against = one.against;
  request.expect = one.expect;
  request.device = options.device;
  request.seed = options.seed;
  request.bytes = one.bytes;
  request.flops = one.flops;
  request.options = core_options(options);
  TRY(results::BenchResult result, run_bench_process(request, options.limit_s, context));
  add_facts(options, one, built, result);
  if (options.bound)
    CHECK_OK(add_bound({built.library, one.op, one.arguments, options.seed, options.limit_s},
                       options.gpu, context, result));
  return result;
}

// The first result of a case that was refused, as an error.
Status check_refused(const results::BenchResult& result) {
  if (!result.refused) return {};
  for (const results::BenchFinding& finding : result.findings)
    if (finding.weight == "refusal")
      return Error{Fault::Work, fmt::format("{} cannot be timed", finding.contender),
                   fmt::format("{}: {}", finding.trap, finding.text),
                   "fix the op first; kiln docs bench says how each trap is found"};
  return {};
}

// Over a sweep the time must grow with the bytes.
void check_growth(const std::vector<results::BenchResult>& results, Context& context) {
  std::vector<double> bytes, ns;
  for (const results::BenchResult& result : results) {
    if (result.on_engine()) return;
    bytes.push_back(result.contenders.front().bytes);
    ns.push_back(result.contenders.front().cold.median_ns);
  }
  if (const std::string text = measure::growth_finding(bytes, ns); !text.empty())
    context.note("warning (launch-only timing): " + text);
}

fs::path baseline_path(const Options& options, const fs::path& folder, const Context& context) {
  if (options.baseline.ends_with(".jsonl")) return context.directory / options.baseline;
  return folder / "baselines" / (options.baseline + ".jsonl");
}

// Saves what has no baseline, compares what has one. The exit code.
Result<int> use_baseline(const Options& options, const std::vector<results::BenchResult>& results,
                         const fs::path& folder, bool prints, Context& context, Json& said) {
  const fs::path path = baseline_path(options, folder, context);
  sys::Files& files = sys::real_files();
  if (options.update || !files.state(path).is_file()) {
    std::string text;
    for (const results::BenchResult& result : results) text += dump(to_json(result)) + "\n";
    CHECK_OK(files.write(path, text));
    context.note(fmt::format("{}saved the baseline {}: {}",
                             options.update ? "" : "nothing to compare with yet; ",
                             options.baseline, path.string()));
    return 0;
  }
  TRY(const std::string text, files.read(path));
  int skipped = 0;
  const std::vector<results::BenchResult> then = measure::read_results(text, &skipped);
  if (then.empty())
    return Error{Fault::Work, fmt::format("cannot compare with the baseline {}", options.baseline),
                 fmt::format("{} has no result in it", path.string()),
                 fmt::format("--save-baseline {} writes it again", options.baseline)};
  if (skipped)
    context.note(fmt::format("warning: {} lines of {} are not results and were skipped", skipped,
                             path.string()));
  if (const std::string why = measure::incomparable(results.front(), then.front()); !why.empty()) {
    if (!options.across_machines)
      return Error{Fault::Work,
                   fmt::format("cannot compare with the baseline {}", options.baseline),
                   fmt::format("it was measured on {}", why),
                   fmt::format("--across-machines compares anyway; --save-baseline {} replaces it",
                               options.baseline)};
    context.note(
        fmt::format("warning: the baseline was measured on {}; the verdicts mean little", why));
  }
  if (const std::string what = measure::differences(results.front(), then.front()); !what.empty())
    context.note("since the baseline: " + what);
  const std::vector<measure::Change> changes = measure::compare_with(results, then);
  if (changes.empty())
    return Error{Fault::Work, fmt::format("cannot compare with the baseline {}", options.baseline),
                 "it has none of these benchmarks",
                 fmt::format("--save-baseline {} replaces it", options.baseline)};
  if (prints && !context.json)
    context.print(fmt::format("against the baseline {}\n{}", options.baseline,
                              measure::changes_text(changes)));
  for (const measure::Change& change : changes)
    said.push_back({{"what", change.what},
                    {"verdict", measure::name_of(change.verdict)},
                    {"ratio", change.ratio.value},
                    {"low", change.ratio.interval.low},
                    {"high", change.ratio.interval.high}});
  return measure::has_regression(changes) ? 1 : 0;
}

Json results_json(const std::vector<results::BenchResult>& results) {
  Json all = Json::array();
  for (const results::BenchResult& result : results) all.push_back(to_json(result));
  return all;
}

Status write_files(const Options& options, const std::vector<results::BenchResult>& results,
                   const fs::path& history, Context& context) {
  CHECK_OK(write_output(options.markdown, report::bench_markdown(results), context));
  CHECK_OK(write_output(options.csv, report::bench_csv(results), context));
  CHECK_OK(write_output(options.output, dump(results_json(results), 1) + "\n", context));
  if (options.html.empty()) return {};
  // The page also draws how the same benchmarks did before.
  std::vector<results::BenchResult> past;
  if (const auto text = sys::real_files().read(history)) past = measure::read_results(*text);
  return write_output(options.html, report::bench_page(results, past), context);
}

Result<std::vector<BenchCase>> all_cases(Options& options, Context& context) {
  std::vector<BenchPlan> plans;
  if (!options.plan.op.empty()) {
    for (const std::string& text : options.axes) {
      TRY(measure::Axis axis, measure::parse_axis(text));
      options.plan.axes.push_back(std::move(axis));
    }
    for (const std::string& text : options.vary) {
      TRY(measure::Axis axis, measure::parse_vary(text));
      options.plan.axes.push_back(std::move(axis));
    }
    plans.push_back(options.plan);
  } else {
    const fs::path manifest_path = context.directory / options.target / project::kManifestName;
    if (!sys::real_files().state(manifest_path).is_file())
      return Error{Fault::Usage, fmt::format("no op to time in {}", options.target),
                   fmt::format("no op was named, and there is no {} with benchmarks",
                               project::kManifestName),
                   "kiln bench FILE.cu OP ARGS"};
    TRY(const project::Manifest manifest, project::read_manifest(sys::real_files(), manifest_path));
    std::vector<std::string> notes;
    TRY(plans, plans_of(manifest.bench, manifest_path.string(), notes));
    for (const std::string& note : notes) context.note(note);
    if (plans.empty())
      return Error{Fault::Usage, fmt::format("no benchmark in {}", manifest_path.string()),
                   "it has no table [bench.NAME]",
                   "kiln docs bench shows one; or name an op: kiln bench FILE.cu OP ARGS"};
  }
  std::vector<BenchCase> cases;
  for (const BenchPlan& plan : plans) {
    TRY(const std::vector<BenchCase> some, cases_of(plan));
    cases.insert(cases.end(), some.begin(), some.end());
  }
  return cases;
}

Result<int> run(Options& options, Context& context) {
  if (!options.process.empty())
    return be_bench_process(options.process.at(0), options.process.at(1));
  if (!options.cold_process.empty())
    return be_cold_process(options.cold_process.at(0), options.cold_process.at(1));
  TRY(const std::vector<BenchCase> cases, all_cases(options, context));
  TRY(const bool out_taken, check_outputs({{"--markdown", options.markdown},
                                           {"--csv", options.csv},
                                           {"--html", options.html},
                                           {"-o", options.output}},
                                          context));
  // Before anything is timed: it would be lost.
  if (!options.gpu.empty()) CHECK_OK(counters::find_gpu(options.gpu));
  if (!options.new_baseline.empty()) {
    options.baseline = options.new_baseline;
    options.update = true;
  }
  if (options.cold) {
    TRY(const Built built, build_case(options, cases.front(), context));
    return bench_cold({built.library, cases.front().op, cases.front().arguments, options.device,
                       options.cold_runs, options.limit_s, options.html,
                       context.directory / options.target, options.request},
                      context);
  }
  std::vector<results::BenchResult> results;
  fs::path folder;
  for (const BenchCase& one : cases) {
    TRY(const Built built, build_case(options, one, context));
    folder = built.folder;
    context.doing(cases.size() == 1 ? "timing " + one.op
                                    : fmt::format("timing {} ({} of {})", one.op,
                                                  results.size() + 1, cases.size()));
    TRY(results::BenchResult result, run_case(options, one, built, context));
    if (!context.json && !out_taken) {
      context.print((results.empty() ? "" : "\n") +
                    report::bench_text(result, context.terminal.color_out));
      if (options.naive_times) context.print(report::naive_times_text(result));
    }
    CHECK_OK(check_refused(result));
    if (!options.no_history)
      CHECK_OK(measure::append_result(
          sys::real_files(),
          options.history.empty() ? folder / "history.jsonl" : context.directory / options.history,
          result));
    results.push_back(std::move(result));
  }
  check_growth(results, context);
  Json changes = Json::array();
  int code = 0;
  if (!options.baseline.empty()) {
    TRY(code, use_baseline(options, results, folder, !out_taken, context, changes));
  }
  const fs::path history =
      options.history.empty() ? folder / "history.jsonl" : context.directory / options.history;
  CHECK_OK(write_files(options, results, history, context));
  if (context.json) {
    context.print_json({{"results", results_json(results)}, {"baseline", changes}});
  }
  return code;
}

// What becomes of the results.
void add_records(CLI::App& app, Options& options) {
  app.add_option(
         "--baseline", options.baseline,
         "Save the results under this name, or compare with those saved; exit 1 if one is slower")
      ->type_name("NAME");
  app.add_option("--save-baseline", options.new_baseline,
                 "Save the results under this name, in place of those saved before")
      ->type_name("NAME")
      ->excludes("--baseline");
  app.add_flag("--update", options.update, "Replace the baseline")->group("");
  app.add_flag("--across-machines", options.across_machines,
               "Compare with a baseline from another machine");
  app.add_option("--history", options.history,
                 "Append results to this file (default: next to the build)")
      ->type_name("FILE");
  app.add_flag("--no-history", options.no_history, "Keep no record");
  app.add_option("--markdown", options.markdown, "Write a table to this file; - for stdout")
      ->type_name("FILE");
  app.add_option("--csv", options.csv, "Write rows to this file; - for stdout")->type_name("FILE");
  app.add_option("--html", options.html, "Write one self-contained page to this file")
      ->type_name("FILE");
  app.add_option("-o,--output", options.output, "Write everything as JSON; - for stdout")
      ->type_name("FILE");
}

// How long is sampled, and when it is enough.
void add_patience(CLI::App& app, Options& options) {
  app.add_option("--precision", options.precision,
                 "Stop when the 95 % interval is within this (default: 0.5)")
      ->type_name("PERCENT")
      ->check(positive_number());
  app.add_option("--time", options.seconds,
                 "Stop sampling after SECONDS even if not converged (default: 15)")
      ->type_name("SECONDS")
      ->check(positive_number());
  app.add_option("--min-time", options.min_seconds, "Sample for at least SECONDS (default: 0.5)")
      ->type_name("SECONDS")
      ->check(positive_number());
  app.add_flag("--quick", options.quick, "A rough figure in a tenth of the time");
  add_limit(app, options.limit_s, "a benchmark");
  app.add_option("--seed", options.seed,
                 "Seed for tensors and for the order of samples (default: 0)")
      ->type_name("N");
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A .cu file, a project folder, or a library that kiln build made")
      ->type_name("");
  app.add_option("OP", options->plan.op, "The op; without it the benchmarks of kiln.toml are run")
      ->type_name("");
  add_op_arguments(app, options->plan.arguments,
                   "Its arguments, as for kiln call; {NAME} is replaced by the value of an axis");
  add_list(app, "--against", options->plan.against, "EXPR",
           "Time this too, in alternation, and compare: torch.add (needs torch)");
  add_list(app, "--expect", options->plan.expect, "TENSOR",
           "The expected result, when there is no --against");
  add_list(app, "--axis", options->axes, "NAME=A,B",
           "Run for each value of {NAME} in the arguments (repeatable)");
  add_list(app, "--vary", options->vary, "NAME=A,B",
           "Build with -DNAME=A, then with -DNAME=B, and time each (repeatable)");
  app.add_option("--bytes", options->plan.bytes,
                 "Bytes that a call must move, a formula: '3 * n * size(t)'")
      ->type_name("FORMULA");
  app.add_option("--flops", options->plan.flops, "Operations that a call must do")
      ->type_name("FORMULA");
  app.add_flag("--naive-times", options->naive_times,
               "Show what naive timers would have reported, and why they differ");
  app.add_flag("--bound", options->bound,
               "Count one call on the engine, and show the least time that a GPU needs for it");
  app.add_option("--gpu", options->gpu, "The GPU of --bound (default: the one measured on)")
      ->type_name("NAME")
      ->needs("--bound");
  app.add_flag("--cold", options->cold,
               "Time the first call instead, in fresh processes, stage by stage");
  app.add_option("--cold-runs", options->cold_runs,
                 "How many processes --cold starts (default: 10)")
      ->type_name("N")
      ->check(whole_number(1, 1000));
  add_patience(app, *options);
  add_device(app, options->device);
  add_records(app, *options);
  app.add_option("--process", options->process, "Internal: the process that measures")
      ->expected(2)
      ->group("");
  app.add_option("--cold-process", options->cold_process, "Internal: a process of --cold")
      ->expected(2)
      ->group("");
  add_build_options(app, options->request);
  app.footer(
      "kiln bench add.cu my_add randn:f32:2^24 randn:f32:2^24 --against torch.add\n"
      "kiln bench add.cu my_add randn:{t}:{n} randn:{t}:{n} --axis n=2^20,2^24 --axis t=f32,bf16\n"
      "kiln bench add.cu my_add randn:f32:2^24 randn:f32:2^24 --vary BLOCK=128,256");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace bench_cli

const Command bench_command = {"bench", "Time an op with results that can be trusted",
                               bench_cli::setup};

}  // namespace kiln::cli
