// SPDX-License-Identifier: Apache-2.0
// `kiln sanitize`: what is wrong with this code, though its results may look right? It runs in a
// process of its own, on the engine, whose checkers write what they find into a folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/watched_process.h"
#include "cli/options.h"
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

// The names of the checks that can be asked for.
std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const auto& row : results::rules()) {
    const std::string name(results::name_of(row.check));
    if (name != "always" && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

// Each word of `given` is one of `known`, or an error says which was meant.
Status check_list(const char* option, const std::string& given, const char* kind,
                  const std::vector<std::string>& known, const std::string& fix) {
  for (const std::string& name : split(given)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto meant = text::closest(name, known);
    return Error{Fault::Usage, fmt::format("invalid value for {}", option),
                 fmt::format("unknown {} '{}'{}", kind, name,
                             meant ? fmt::format("; did you mean {}?", *meant) : ""),
                 fix};
  }
  return {};
}

// Wrong words are reported before anything is built.
Status check_words(const Options& options) {
  std::vector<std::string> checks = check_names(), kinds = checks;
  checks.insert(checks.end(), {"all", "default"});
  CHECK_OK(check_list("--only", options.only, "check", checks,
                      "checks: memory, race, sync; on request api, leaks; or all"));
  kinds.insert(kinds.end(), {"error", "note", "none"});
  for (const auto& row : results::rules()) kinds.emplace_back(row.name);
  return check_list("--fail-on", options.fail_on, "rule or check", kinds,
                    "use error, note, none, a check such as race, or a rule such as shared-race");
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

// "Nothing found" in a kernel that was never launched would look like an answer.
Status check_kernel(const Findings& findings, const std::string& kernel) {
  const auto has_text = [&](const std::string& name) { return name.find(kernel) != name.npos; };
  const std::vector<std::string>& launched = findings.kernels;
  if (kernel.empty() || launched.empty() || launched.size() >= Findings::kMostKernels ||
      std::ranges::any_of(launched, has_text))
    return {};
  constexpr size_t kShown = 5;
  std::vector<std::string> some;
  for (const std::string& name : launched) {
    std::string shown = name.substr(0, name.find('('));
    if (some.size() < kShown && std::ranges::find(some, shown) == some.end())
      some.push_back(std::move(shown));
  }
  return Error{Fault::Usage, fmt::format("no kernel has '{}' in its name", kernel),
               fmt::format("launched were {}{}", text::join(some, ", "),
                           some.size() == kShown ? ", ..." : ""),
               "give a part of a kernel's name to --kernel"};
}

void keep_kernel(Findings& findings, const std::string& kernel, const Context& context) {
  if (kernel.empty()) return;
  const size_t others = std::erase_if(findings.findings, [&](const Finding& finding) {
    return std::ranges::none_of(finding.places, [&](const auto& place) {
      return place.kernel.find(kernel) != std::string::npos;
    });
  });
  if (others > 0)
    context.note(fmt::format("note: left out {} finding{} in other kernels (--kernel {})", others,
                             others == 1 ? "" : "s", kernel));
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
  auto text = sys::real_files().read(context.directory / options.suppress);
  if (!text) {
    text.error().what = "cannot read " + options.suppress;
    return text.error();
  }
  return results::parse_suppressions(*text, options.suppress);
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
  const fs::path target = (context.directory / options.target).lexically_normal();
  const std::string folder = context.directory.string();
  CHECK_OK(write_output(options.sarif, report::findings_sarif(findings, folder, target.string()),
                        context));
  show_paths_as_written(options, context, findings);
  return write_output(options.html,
                      report::findings_page(findings, "kiln sanitize " + options.target), context);
}

void add_watch(const Options& options, const fs::path& folder, const Context& context,
               sys::ProcessSpec& spec) {
  spec.env->set("KILN_DEVICE", "engine");
  if (context.verbose && !spec.env->get("KILN_ENGINE_FIDELITY"))
    spec.env->set("KILN_ENGINE_FIDELITY", "1");
  spec.env->set("KILN_SANITIZE", options.only.empty() ? "default" : options.only);
  spec.env->set("KILN_SANITIZE_FOLDER", folder.string());
  if (options.schedule) spec.env->set("KILN_ENGINE_SCHEDULE", std::to_string(options.schedule));
  spec.limit_s = options.limit_s;
}

// The exit code, once the findings are printed.
int verdict(const Findings& findings, const Options& options, const std::optional<Error>& failure,
            bool killed, Context& context) {
  const auto some = [&](const auto& what) { return std::ranges::any_of(findings.findings, what); };
  const std::vector<std::string> on = split(options.fail_on);
  const bool found = some([&](const Finding& one) { return fails(one, on); });
  // A fault that was found explains why the process failed.
  const bool explained = some([](const Finding& one) { return one.severity == "error"; });
  if (failure && (killed || !explained)) context.warn(format(*failure));
  if (findings.checks.empty())
    context.warn(
        fmt::format("warning: {} ran nothing on the engine: nothing was checked", options.target));
  if (found) return static_cast<int>(Fault::Work);
  return failure && !explained ? static_cast<int>(failure->fault) : 0;
}

Result<int> run(const Options& options, Context& context) {
  CHECK_OK(check_words(options));
  TRY(const bool quiet_for_file,
      check_outputs({{"--html", options.html}, {"--sarif", options.sarif}}, context));
  TRY(const Suppressions suppressions, read_suppressions(options, context));
  const WatchTarget target{"sanitize", "sanitize", options.target, options.words, options.request};
  TRY(WatchedProcess process, watched_process(target, context));
  TRY(fs::path made, sys::make_temporary_folder("kiln-sanitize"));
  const Folder folder(std::move(made));
  add_watch(options, folder.path, context, process.spec);
  // A program talks to its user itself, and then no line of progress may come between.
  const bool is_op = process.kind == WatchedProcess::Kind::Op;
  process.spec.capture = is_op || context.json || quiet_for_file;
  process.spec.capture ? context.doing("checking " + options.target) : context.end_progress();
  TRY(const sys::ProcessResult done, sys::real_processes().run(process.spec));
  std::optional<Error> failure;
  if (has_failed(done)) failure = failure_of(target, process.kind, done, options.limit_s);
  TRY(Findings findings, read_folder(folder.path));
  if (failure && findings.checks.empty()) {
    if (!is_op && !done.out.empty()) context.warn(text::trim(done.out));
    return *failure;
  }
  // What a failed call says is a finding, or said at the end.
  const bool repeats = is_op && failure && !context.verbose;
  if (!done.out.empty() && !repeats) context.note(text::trim(done.out));
  CHECK_OK(check_kernel(findings, options.kernel));
  keep_kernel(findings, options.kernel, context);
  apply_suppressions(options, suppressions, findings, context);
  CHECK_OK(write_files(options, findings, context));
  if (context.json)
    context.print_json(to_json(findings));
  else if (!quiet_for_file && !findings.checks.empty())
    context.print(report::findings_text(findings));
  return verdict(findings, options, failure, done.timed_out || done.signal, context);
}

void add_file(CLI::App& app, const char* name, std::string& to, const char* text) {
  app.add_option(name, to, text)->type_name("FILE");
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
         "TARGET", options->target,
         "A .cu file with ops or with main, a project folder, a library, a built program, or a "
         "script (.py)")
      ->required()
      ->option_text(" ");
  add_op_arguments(app, options->words,
                   "The op and its arguments, as for kiln call; after --, those of a program; "
                   "everything after a script is for the script");
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
           "Accept the findings that this file lists: RULE KERNEL FILE:LINE REASON");
  add_file(app, "--sarif", options->sarif, "Write SARIF 2.1.0 to this file, for code hosts");
  add_file(app, "--html", options->html, "Write one self-contained page to this file");
  app.add_option("--schedule", options->schedule,
                 "Run blocks and warps in another order, the same for each N (default: 0)")
      ->type_name("N");
  add_limit(app, options->limit_s, "a run");
  add_build_options(app, options->request);
  app.footer("Runs on the CPU engine: no GPU is needed. Exit code: 0: nothing found, 1: findings.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace sanitize_cli

const Command sanitize_command = {"sanitize",
                                  "Find memory errors, races and barrier mistakes without a GPU",
                                  sanitize_cli::setup, Passes::ToScript};

}  // namespace kiln::cli
