// SPDX-License-Identifier: Apache-2.0
// `kiln counters`: what did the kernels do, line by line, and what limits them? Nsight Compute's
// numbers without a GPU: a process runs the code on the engine and writes counts to a file.
#include "report/counters.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/counted_op.h"
#include "cli/commands/watched_process.h"
#include "cli/options.h"
#include "counters/baseline.h"
#include "counters/gpus.h"
#include "counters/report.h"
#include "counters/require.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::cli {
namespace counters_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  build::Request request;
  std::string target;
  std::vector<std::string> words;  // an op and its arguments, or those of a program or script
  std::string gpu = "H200", kernel, html, markdown, csv, output, baseline, new_baseline, line;
  std::vector<std::string> require;
  bool list_gpus = false;
  uint64_t schedule = 0;
  double limit_s = 0;
};

bool is_saved_run(const fs::path& path) {
  return path.extension() == ".json" || path.extension() == ".jsonl";
}

// The text of the run: of a file, or of the process that makes it.
struct Counted {
  std::string text;
  std::optional<Error> failure;  // of the process, after some launches
};

Result<Counted> saved_run(const Options& options, const Context& context) {
  const fs::path path = context.directory / options.target;
  if (!sys::real_files().state(path).is_file())
    return Error{Fault::Usage, "cannot read counts from " + options.target, "there is no such file",
                 "make it: kiln counters ... -o " + options.target};
  TRY(std::string text, sys::real_files().read(path));
  return Counted{std::move(text), {}};
}

Result<Counted> counted(const Options& options, const counters::Gpu& gpu, Context& context) {
  if (is_saved_run(options.target)) return saved_run(options, context);
  WatchTarget target{"counters", "count the kernels of", options.target, options.words,
                     options.request};
  // The cubin of the chosen GPU has the registers and the occupancy.
  if (target.request.arch.empty()) target.request.arch = gpu.arch_text() + "+PTX";
  TRY(WatchedProcess process, watched_process(target, context));
  process.spec.limit_s = options.limit_s;
  // Words of the program stay apart from the one value on stdout.
  const bool quiet = context.json || process.kind != WatchedProcess::Kind::Script;
  process.spec.capture = quiet;
  quiet ? context.doing("counting the kernels of " + options.target) : context.end_progress();
  TRY(CountedProcess run, run_counted(std::move(process.spec), gpu, options.schedule));
  Counted out;
  if (has_failed(run.done))
    out.failure = failure_of(target, process.kind, run.done, options.limit_s);
  const bool is_op = process.kind == WatchedProcess::Kind::Op;
  if (!run.done.out.empty() && ((out.failure && !is_op) || context.verbose))
    context.warn(text::trim(run.done.out));
  if (!run.counts && out.failure) return *out.failure;
  if (!run.counts)
    return Error{Fault::Work, target.cannot(), "it launched no kernel on the engine",
                 "check that it reaches a kernel: kiln call, kiln run"};
  out.text = std::move(*run.counts);
  return out;
}

// Files of the source page: by the names that line tables use.
report::SourceTexts sources_of(const results::CounterRun& run, const Options& options,
                               const Context& context) {
  report::SourceTexts out;
  for (const results::CounterProgram& program : run.programs) {
    for (const results::CounterInstruction& instruction : program.instructions) {
      const std::string name = instruction.at.substr(0, instruction.at.rfind(':'));
      if (name.empty() || out.count(name)) continue;
      const fs::path beside = (context.directory / options.target).parent_path() / name;
      for (const fs::path& path : {context.directory / name, beside}) {
        auto text = sys::real_files().read(path);
        if (!text) continue;
        for (std::string_view line : text::lines(*text)) out[name].emplace_back(line);
        break;
      }
    }
  }
  return out;
}

Status write_files(const Options& options, const std::string& text, const results::CounterRun& run,
                   const results::CounterReport& report, Context& context) {
  CHECK_OK(write_output(options.output, text, context));
  CHECK_OK(write_output(options.csv, report::counters_csv(report), context));
  CHECK_OK(write_output(options.markdown, report::counters_markdown(report), context));
  if (options.html.empty()) return {};
  return write_output(
      options.html, report::counters_page(report, run, sources_of(run, options, context)), context);
}

std::string number_text(double value) { return fmt::format("{:g}", value); }

// The number of requirements that do not hold.
Result<size_t> check_requirements(const std::vector<counters::Requirement>& wanted,
                                  const results::CounterReport& report, Context& context) {
  size_t missed = 0;
  for (const counters::Requirement& one : wanted) {
    TRY(const std::vector<counters::Miss> misses, counters::check(report, one));
    for (const counters::Miss& miss : misses)
      context.note(
          fmt::format("{}: '{}' does not hold: {}", miss.where, miss.text, number_text(miss.seen)));
    missed += !misses.empty();
  }
  return missed;
}

// The number of metrics that got worse; saves where there is nothing to compare with.
Result<size_t> check_baseline(const Options& options, const results::CounterReport& report,
                              Context& context) {
  const bool replaces = !options.new_baseline.empty();
  const std::string& name = replaces ? options.new_baseline : options.baseline;
  if (name.empty()) return size_t{0};
  const fs::path path = counters::baseline_path(context.directory, name);
  const auto text = sys::real_files().read(path);
  if (!text || replaces) {
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    CHECK_OK(sys::real_files().write(path, counters::baseline_text(report)));
    context.note("saved the baseline " + path.lexically_relative(context.directory).string());
    return size_t{0};
  }
  TRY(const std::vector<counters::Change> changes,
      counters::compare_with_baseline(report, *text, name));
  size_t worse = 0;
  for (const counters::Change& change : changes) {
    worse += change.worse;
    const std::string percent =
        change.before > 0 ? fmt::format(" ({:+.1f} %)", 100 * (change.now / change.before - 1))
                          : "";
    context.note(fmt::format("{}. {}: {}{} {} -> {}{}, {}", change.launch, change.kernel,
                             change.at.empty() ? "" : change.at + ": ", change.metric,
                             number_text(change.before), number_text(change.now), percent,
                             change.worse ? "worse" : "better"));
  }
  if (changes.empty()) context.note("equal to the baseline " + name);
  return worse;
}

// Names and caches, for programs that choose one.
Result<int> list_gpus(Context& context) {
  Json all = Json::array();
  std::string text;
  for (const counters::Gpu& gpu : counters::gpus()) {
    all.push_back({{"name", gpu.name},
                   {"arch", gpu.arch_text()},
                   {"caches", fmt::format("{}:{}", gpu.multiprocessors, gpu.l2_bytes())},
                   {"source", gpu.source}});
    text += fmt::format(
        "{:<10} sm_{:<4} {:>4} multiprocessors, {:>4.0f} GB/s, L2 {:>3.0f} MB  {}\n", gpu.name,
        gpu.arch, gpu.multiprocessors, gpu.dram_gb_per_s, gpu.l2_mb, gpu.source);
  }
  context.json ? context.print_json(all) : context.print(text);
  return 0;
}

// The PTX of one line, with the addresses of the costliest warp of each access.
Result<std::string> line_text(const results::CounterRun& run, const std::string& at) {
  std::string out;
  for (const results::CounterLaunch& launch : run.launches) {
    for (const results::CounterSite& site : launch.sites) {
      for (const results::CounterProgram& program : run.programs) {
        if (program.id != site.program || site.instruction >= program.instructions.size()) continue;
        const results::CounterInstruction& instruction = program.instructions[site.instruction];
        if (instruction.at != at) continue;
        out +=
            fmt::format("{}  {}\n", site.counts[results::Metric::inst_executed], instruction.ptx);
        if (site.sample) out += report::warp_picture_text(*site.sample);
      }
    }
    if (!out.empty()) return launch.kernel + "\n" + out;
  }
  return Error{Fault::Usage, "cannot show " + at, "no instruction of this line ran",
               "kiln counters without --line lists the lines that did"};
}

void note_missing_lines(const Options& options, const results::CounterRun& run, Context& context) {
  for (const results::CounterProgram& program : run.programs) {
    if (program.instructions.empty() || !program.instructions.front().at.empty()) continue;
    const bool none =
        std::ranges::all_of(program.instructions,
                            [](const results::CounterInstruction& one) { return one.at.empty(); });
    if (!none) continue;
    context.note(
        fmt::format("note: lines of {} are those of its PTX\n  why: {} has no line information\n"
                    "  fix: build it with kiln build without --release, or with nvcc -lineinfo",
                    program.name, options.target));
    return;
  }
}

Result<int> run(const Options& options, Context& context) {
  if (options.list_gpus) return list_gpus(context);
  if (options.target.empty())
    return Error{Fault::Usage, "kiln counters needs TARGET",
                 "it is missing: a .cu file, a project, a library, a script (.py) or saved counts",
                 "kiln counters FILE.cu OP ARGS"};
  TRY(const bool out_taken, check_outputs({{"--csv", options.csv},
                                           {"--markdown", options.markdown},
                                           {"--html", options.html},
                                           {"-o", options.output}},
                                          context));
  std::vector<counters::Requirement> wanted;
  for (const std::string& text : options.require) {
    TRY(counters::Requirement one, counters::parse_requirement(text));
    wanted.push_back(std::move(one));
  }
  TRY(const counters::Gpu* const gpu, counters::find_gpu(options.gpu));
  TRY(const Counted run, counted(options, *gpu, context));
  TRY(results::CounterRun counts, results::read_counter_run(run.text, options.target));
  if (run.failure && counts.launches.empty()) return *run.failure;
  if (run.failure)
    context.warn(format(*run.failure) + "\nnote: the counts are those of the launches before");
  TRY(const results::CounterReport report, counters::make_report(counts, *gpu, options.kernel));
  note_missing_lines(options, counts, context);
  CHECK_OK(write_files(options, run.text, counts, report, context));
  if (!options.line.empty()) {
    TRY(const std::string text_of_line, line_text(counts, options.line));
    context.print(text_of_line);
  } else if (context.json) {
    context.print_json(to_json(report));
  } else if (!out_taken) {
    context.print(report::counters_text(report));
  }
  TRY(const size_t missed, check_requirements(wanted, report, context));
  TRY(const size_t worse, check_baseline(options, report, context));
  if (run.failure) return static_cast<int>(run.failure->fault);
  return missed + worse ? static_cast<int>(Fault::Work) : 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
         "TARGET", options->target,
         "A .cu file with ops or with main, a project folder, a library, a built program, a "
         "script (.py), or a file of -o")
      ->option_text(" ");
  add_op_arguments(app, options->words,
                   "The op and its arguments, as for kiln call; after --, those of a program; "
                   "everything after a script is for the script");
  const auto file = [&](const char* name, std::string& to, const char* text) {
    app.add_option(name, to, text)->type_name("FILE");
  };
  app.add_option("--gpu", options->gpu, "The GPU of caches, occupancy and bound (default: H200)")
      ->type_name("NAME");
  app.add_option("--kernel", options->kernel, "Only kernels whose name contains TEXT")
      ->type_name("TEXT");
  file("--html", options->html,
       "Write one self-contained page to this file: source with heat, PTX");
  file("--markdown", options->markdown, "Write tables to this file; - for stdout");
  file("--csv", options->csv, "Write one row per launch to this file; - for stdout");
  file("-o,--output", options->output,
       "Keep the counts in this file, for another report; - for stdout");
  app.add_option("--line", options->line,
                 "Show the PTX of FILE:LINE and the addresses of a warp instead of the tables")
      ->type_name("FILE:LINE");
  app.add_option("--require", options->require,
                 "Exit 1 unless this holds: 'sectors_per_request[add.cu:12] <= 4' (repeatable)")
      ->type_name("EXPR")
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
  app.add_option("--baseline", options->baseline,
                 "Save the counts under this name, or compare with those saved; exit 1 if one is "
                 "worse")
      ->type_name("NAME");
  app.add_option("--save-baseline", options->new_baseline,
                 "Save the counts under this name, in place of those saved before")
      ->type_name("NAME")
      ->excludes("--baseline");
  app.add_flag("--gpus", options->list_gpus, "List the GPUs that --gpu knows");
  app.add_option("--schedule", options->schedule,
                 "Run blocks and warps in another order, the same for each N (default: 0)")
      ->type_name("N");
  add_limit(app, options->limit_s, "a run");
  add_build_options(app, options->request, {.watch = false});
  app.footer("Runs on the CPU engine: no GPU is needed. kiln docs counters has the rules.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace counters_cli

const Command counters_command = {"counters",
                                  "Count what kernels do, line by line, and what limits them",
                                  counters_cli::setup, Passes::ToScript};

}  // namespace kiln::cli
