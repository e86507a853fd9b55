// SPDX-License-Identifier: Apache-2.0
// `kiln counters`: what did the kernels do, line by line, and what limits them? Nsight Compute's
// numbers without a GPU: a process runs the code on the engine and writes counts to a file.
#include "report/counters.h"

#include <fmt/format.h>
#include <string.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/bench_process.h"
#include "cli/commands/counted_op.h"
#include "cli/options.h"
#include "cli/programs.h"
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

bool is_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

bool is_saved_run(const fs::path& path) {
  return path.extension() == ".json" || path.extension() == ".jsonl";
}

bool defines_main(const fs::path& path) {
  if (!sys::real_files().state(path).is_file() || is_library(path)) return false;
  const build::SourceFacts facts = build::scan_source(sys::real_files(), path, {});
  return facts.defines_main && !facts.defines_op;
}

// The process that runs the code.
Result<sys::ProcessSpec> process_for(const Options& options, const counters::Gpu& gpu,
                                     Context& context) {
  sys::ProcessSpec spec;
  const fs::path path = context.directory / options.target;
  if (options.target.ends_with(".py")) {
    TRY(Python python, find_python(context, "cannot count what " + options.target + " does"));
    spec.env = std::move(python.env);
    spec.arguments = {python.program, path.string()};
  } else {
    TRY(spec.env, program_environment(context.env));
    const bool program = defines_main(path);
    fs::path built = path;
    if (!is_library(path)) {
      build::Request request = options.request;
      request.targets = {options.target};
      request.program = program;
      // The cubin of the chosen GPU has the registers and the occupancy.
      if (request.arch.empty()) request.arch = gpu.arch_text() + "+PTX";
      TRY(const build::Outcome outcome, build_for(context, request));
      built = outcome.file;
    }
    if (program) {
      spec.arguments = {built.string()};
    } else {
      if (options.words.empty())
        return Error{Fault::Usage, "cannot count what " + options.target + " does",
                     "no op was named", "kiln counters " + options.target + " OP ARGS"};
      TRY(const fs::path own, sys::own_executable());
      spec.arguments = {own.string(), "call", built.string(), "--print=0"};
    }
  }
  spec.arguments.insert(spec.arguments.end(), options.words.begin(), options.words.end());
  spec.arguments.insert(spec.arguments.end(), context.rest.begin(), context.rest.end());
  return spec;
}

Error ended_badly(const Options& options, const sys::ProcessResult& done) {
  const std::string what = "cannot count what " + options.target + " does";
  if (done.timed_out)
    return {Fault::Work, what, fmt::format("it did not finish in {:.0f} s", options.limit_s),
            "give it longer: --limit SECONDS; or take smaller inputs"};
  if (done.signal)
    return {Fault::Work, what,
            fmt::format("it was ended by signal {} ({})", done.signal, ::strsignal(done.signal)),
            "see that it runs by itself: kiln call, kiln run"};
  return {Fault::Work, what, fmt::format("it ended with code {}", done.exit_code),
          "see that it runs by itself: kiln call, kiln run; kiln sanitize finds faults"};
}

// The text of the run: of a file, or of the process that makes it.
struct Counted {
  std::string text;
  bool failed = false;  // the process did, after some launches
};
Result<Counted> counted(const Options& options, const counters::Gpu& gpu, Context& context) {
  if (is_saved_run(options.target)) {
    const fs::path path = context.directory / options.target;
    if (sys::real_files().state(path).is_file()) {
      TRY(std::string text, sys::real_files().read(path));
      return Counted{std::move(text)};
    }
    return Error{Fault::Usage, "cannot read counts from " + options.target, "there is no such file",
                 "make it: kiln counters ... -o " + options.target};
  }
  TRY(sys::ProcessSpec spec, process_for(options, gpu, context));
  spec.limit_s = options.limit_s;
  // Words of the program stay apart from the one value on stdout.
  const bool quiet = context.json || !options.target.ends_with(".py");
  spec.capture = quiet;
  TRY(CountedProcess process, run_counted(std::move(spec), gpu, options.schedule));
  const sys::ProcessResult& done = process.done;
  const bool failed = done.exit_code || done.signal || done.timed_out;
  if (quiet && !done.out.empty() && (failed || context.verbose)) context.note(text::trim(done.out));
  std::optional<std::string>& text = process.counts;
  if (!text && failed) return ended_badly(options, done);
  if (failed) {
    context.note("the counts below are those of the launches before");
    context.note(format(ended_badly(options, done)));
  }
  if (!text)
    return Error{Fault::Work, "there is nothing to count",
                 options.target + " launched no kernel on the engine",
                 "see that it reaches a kernel: kiln call, kiln run"};
  return Counted{std::move(*text), failed};
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
               "see the lines that did: kiln counters without --line"};
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
    return Error{Fault::Usage, "nothing to count", "no TARGET was named",
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
  return run.failed || missed + worse ? static_cast<int>(Fault::Work) : 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A .cu file with ops or with main, a project, a library, a script (.py), or a "
                 "file of -o")
      ->option_text(" ");
  app.add_option("WORDS", options->words,
                 "The op and its arguments, as kiln call takes them; or, after --, the arguments "
                 "of the program or script")
      ->take_all()
      ->expected(1 << 20, -1)
      ->allow_extra_args(false)
      ->option_text(" ");
  const auto file = [&](const char* name, std::string& to, const char* text) {
    app.add_option(name, to, text)->type_name("FILE");
  };
  app.add_option("--gpu", options->gpu, "The GPU of caches, occupancy and bound (default: H200)")
      ->type_name("NAME");
  app.add_option("--kernel", options->kernel, "Only kernels whose name contains TEXT")
      ->type_name("TEXT");
  file("--html", options->html, "Write one self-contained page there: source with heat, PTX");
  file("--markdown", options->markdown, "Write tables as Markdown there");
  file("--csv", options->csv, "Write one row per launch there");
  file("-o,--output", options->output, "Keep the counts there, for another report");
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
                 "Save the counts under this name, or exit 1 if they are worse than saved ones")
      ->type_name("NAME");
  app.add_option("--save-baseline", options->new_baseline,
                 "Save the counts under this name, also where some are saved already")
      ->type_name("NAME")
      ->excludes("--baseline");
  app.add_flag("--gpus", options->list_gpus, "List the GPUs that --gpu knows");
  app.add_option("--schedule", options->schedule,
                 "Run blocks and warps in another order, the same for each N (default: 0)")
      ->type_name("N");
  add_limit(app, options->limit_s, "a run");
  add_build_options(app, options->request, {.watch = false});
  app.footer("Runs on the CPU engine: no GPU is needed. docs/guide/counters.md has the rules.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace counters_cli

const Command counters_command = {"counters",
                                  "Count what kernels do, line by line, and what limits them",
                                  counters_cli::setup, Passes::ToScript};

}  // namespace kiln::cli
