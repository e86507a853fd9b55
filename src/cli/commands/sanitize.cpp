// SPDX-License-Identifier: Apache-2.0
// `kiln sanitize`: what is wrong with this code, though its results may look right? It runs in a
// process of its own, on the engine, whose checkers write what they find into a folder.
#include <fmt/format.h>
#include <string.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>

#include "base/text.h"
#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/bench_process.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "report/findings.h"
#include "results/suppress.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::cli {
namespace sanitize_cli {
namespace {

namespace fs = std::filesystem;
using results::Finding;
using results::Findings;

struct Options {
  build::Request request;
  std::string target;
  std::vector<std::string> words;  // an op and its arguments, or those of a program or script
  std::string only, kernel, fail_on = "error", suppress, html, sarif;
  uint64_t schedule = 0;
  double limit_s = 0;
};

// Gone when it goes.
struct Folder {
  explicit Folder(fs::path made) : path(std::move(made)) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_check(const std::string& name) {
  return name != "always" && std::ranges::any_of(results::rules(), [&](const auto& row) {
           return results::name_of(row.check) == name;
         });
}

// Wrong words are reported before anything is built.
Status check_words(const Options& options) {
  for (const std::string& name : split(options.only)) {
    if (is_check(name) || name == "all" || name == "default") continue;
    return Error{Fault::Usage, "cannot sanitize with --only " + options.only,
                 "there is no check '" + name + "'",
                 "checks: memory, race, sync; on request api, leaks; or all"};
  }
  for (const std::string& name : split(options.fail_on)) {
    if (name == "error" || name == "note" || name == "none" || is_check(name) ||
        results::rule_named(name))
      continue;
    return Error{Fault::Usage, "cannot fail on '" + name + "'", "there is no such rule or check",
                 "error, note, none, a check such as race, or a rule such as shared-race"};
  }
  return {};
}

bool is_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// What `kiln build --program` made: it runs as it is, whatever sources it came from.
bool is_built_program(const fs::path& path) {
  const sys::FileState state = sys::real_files().state(path);
  if (!state.is_file() || !state.is_executable || is_library(path)) return false;
  std::ifstream file(path, std::ios::binary);
  char start[4] = {};
  file.read(start, sizeof start);
  return std::string_view(start, sizeof start) == "\177ELF";
}

// The words of the process to watch.
Result<sys::ProcessSpec> process_for(const Options& options, Context& context) {
  sys::ProcessSpec spec;
  const fs::path path = context.directory / options.target;
  if (options.target.ends_with(".py")) {
    TRY(Python python, find_python(context, "cannot sanitize " + options.target));
    spec.env = std::move(python.env);
    spec.arguments = {python.program, options.target};
    spec.arguments.insert(spec.arguments.end(), options.words.begin(), options.words.end());
    return spec;
  }
  TRY(spec.env, program_environment(context.env));
  bool program = is_built_program(path);
  const bool built_before = program || is_library(path);
  if (sys::real_files().state(path).is_file() && !built_before) {
    const build::SourceFacts facts = build::scan_source(sys::real_files(), path, {});
    program = facts.defines_main && !facts.defines_op;
  }
  fs::path built = path;
  if (!built_before) {
    build::Request request = options.request;
    request.targets = {options.target};
    request.program = program;
    TRY(const build::Outcome outcome, build_for(context, request));
    built = outcome.file;
  }
  if (program) {
    spec.arguments = {built.string()};
  } else {
    if (options.words.empty())
      return Error{Fault::Usage, "cannot sanitize " + options.target, "no op was named",
                   "kiln sanitize " + options.target + " OP ARGS"};
    TRY(const fs::path own, sys::own_executable());
    spec.arguments = {own.string(), "call", built.string(), "--print=0", "--"};
  }
  spec.arguments.insert(spec.arguments.end(), options.words.begin(), options.words.end());
  return spec;
}

// What the processes wrote, as one.
Result<Findings> read_folder(const fs::path& folder) {
  Findings all;
  for (const std::string& name : sys::real_files().list(folder)) {
    if (!name.ends_with(".json") || name.starts_with('.')) continue;
    TRY(const std::string text, sys::real_files().read(folder / name));
    TRY(const Json json, parse_json(text, name));
    TRY(const Findings one, results::read_findings(json, name));
    results::merge(all, one);
  }
  return all;
}

void keep_kernel(Findings& findings, const std::string& kernel) {
  if (kernel.empty()) return;
  std::erase_if(findings.findings, [&](const Finding& finding) {
    return std::ranges::none_of(finding.places, [&](const auto& place) {
      return place.kernel.find(kernel) != std::string::npos;
    });
  });
}

bool fails(const Finding& finding, const std::vector<std::string>& on) {
  if (finding.suppressed) return false;
  return std::ranges::any_of(on, [&](const std::string& name) {
    return name == finding.severity || name == finding.check || name == finding.rule ||
           (name == "note" && finding.severity == "error");
  });
}

using Suppressions = std::vector<results::Suppression>;

// Before anything runs: a mistake in the file must not cost a run.
Result<Suppressions> read_suppressions(const Options& options, const Context& context) {
  if (options.suppress.empty()) return Suppressions();
  TRY(const std::string text, sys::real_files().read(context.directory / options.suppress));
  return results::parse_suppressions(text, options.suppress);
}

void apply_suppressions(const Options& options, Suppressions suppressions, Findings& findings,
                        Context& context) {
  results::suppress(findings, suppressions);
  for (const auto& one : suppressions) {
    if (one.used == 0)
      context.note(fmt::format("note: {}:{} suppressed nothing", options.suppress, one.at));
  }
}

// As people wrote them: compilers write full paths. Code hosts want those of the repository, so
// SARIF is written before.
void show_paths_as_written(const Options& options, const Context& context, Findings& findings) {
  const fs::path written = fs::path(options.target).parent_path();
  if (!written.is_absolute() && !written.empty())
    results::shorten_paths(findings, (context.directory / written).lexically_normal().string(),
                           written.string());
  results::shorten_paths(findings, context.directory.string(), "");
}

Status write_files(const Options& options, Findings& findings, Context& context) {
  CHECK_OK(write_output(options.sarif, report::findings_sarif(findings, context.directory.string()),
                        context));
  show_paths_as_written(options, context, findings);
  return write_output(options.html,
                      report::findings_page(findings, "kiln sanitize " + options.target), context);
}

// How the process ended, where that is worth a word.
std::string ending(const sys::ProcessResult& done, const Options& options) {
  if (done.timed_out)
    return fmt::format("{} was killed after {:.0f} s (--limit); the findings are those so far",
                       options.target, options.limit_s);
  if (done.signal)
    return fmt::format("{} was ended by signal {} ({})", options.target, done.signal,
                       ::strsignal(done.signal));
  if (done.exit_code) return fmt::format("{} ended with code {}", options.target, done.exit_code);
  return "";
}

Result<int> run(const Options& options, Context& context) {
  CHECK_OK(check_words(options));
  TRY(const bool quiet_for_file,
      check_outputs({{"--html", options.html}, {"--sarif", options.sarif}}, context));
  TRY(const Suppressions suppressions, read_suppressions(options, context));
  TRY(sys::ProcessSpec spec, process_for(options, context));
  TRY(fs::path made, sys::make_temporary_folder("kiln-sanitize"));
  const Folder folder(std::move(made));
  spec.env->set("KILN_DEVICE", "engine");
  if (context.verbose && !spec.env->get("KILN_ENGINE_FIDELITY"))
    spec.env->set("KILN_ENGINE_FIDELITY", "1");
  spec.env->set("KILN_SANITIZE", options.only.empty() ? "default" : options.only);
  spec.env->set("KILN_SANITIZE_FOLDER", folder.path.string());
  if (options.schedule) spec.env->set("KILN_ENGINE_SCHEDULE", std::to_string(options.schedule));
  spec.limit_s = options.limit_s;
  const bool quiet = context.json || quiet_for_file;
  spec.capture = quiet;
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  if (quiet && !done.out.empty()) context.note(text::trim(done.out));
  TRY(Findings findings, read_folder(folder.path));
  keep_kernel(findings, options.kernel);
  apply_suppressions(options, suppressions, findings, context);
  CHECK_OK(write_files(options, findings, context));
  if (context.json)
    context.print_json(to_json(findings));
  else if (!quiet_for_file && !findings.checks.empty())
    context.print(report::findings_text(findings));
  if (const std::string text = ending(done, options); !text.empty()) context.note(text);
  if (findings.checks.empty() && !done.timed_out)
    context.note(
        fmt::format("note: {} ran nothing on the engine: nothing was checked", options.target));
  const std::vector<std::string> on = split(options.fail_on);
  if (std::ranges::any_of(findings.findings, [&](const auto& each) { return fails(each, on); }))
    return static_cast<int>(Fault::Work);
  // Without an error that explains it, the failure of the process is the command's own.
  const bool failed = done.exit_code || done.signal || done.timed_out;
  const bool explained = std::ranges::any_of(
      findings.findings, [](const auto& one) { return one.severity == "error"; });
  if (!failed || explained) return 0;
  return done.timed_out ? static_cast<int>(Fault::Work) : std::max(done.exit_code, 1);
}

void add_file(CLI::App& app, const char* name, std::string& to, const char* text) {
  app.add_option(name, to, text)->type_name("FILE");
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A .cu file with ops or with main, a project folder, a library, a program that "
                 "kiln built, or a script (.py)")
      ->required()
      ->option_text(" ");
  app.add_option("WORDS", options->words,
                 "The op and its arguments, as kiln call takes them; or, after --, the arguments "
                 "of the program or script")
      ->take_all()
      ->expected(1 << 20, -1)
      ->allow_extra_args(false)
      ->option_text(" ");
  app.add_option("--only", options->only,
                 "Checks to run, separated by commas: memory, race, sync (default: these three), "
                 "api, leaks, all")
      ->type_name("CHECKS");
  app.add_option("--kernel", options->kernel, "Only findings in kernels whose name contains TEXT")
      ->type_name("TEXT");
  app.add_option("--fail-on", options->fail_on,
                 "Exit 1 only for these: error (default), note, none, checks or rules")
      ->type_name("KINDS");
  add_file(app, "--suppress", options->suppress,
           "Accepted findings, one per line: RULE KERNEL FILE:LINE REASON");
  add_file(app, "--sarif", options->sarif, "Write SARIF 2.1.0 there, for code hosts");
  add_file(app, "--html", options->html, "Write one self-contained page there");
  app.add_option("--schedule", options->schedule,
                 "Run blocks and warps in another order, the same for each N (default: 0)")
      ->type_name("N");
  app.add_option("--limit", options->limit_s, "Kill it when it takes longer (default: no limit)")
      ->type_name("SECONDS");
  add_build_options(app, options->request);
  app.footer("Runs on the CPU engine: no GPU is needed. Exit code: 0 nothing found, 1 findings.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace sanitize_cli

const Command sanitize_command = {"sanitize",
                                  "Find memory errors, races and barrier mistakes without a GPU",
                                  sanitize_cli::setup};

}  // namespace kiln::cli
