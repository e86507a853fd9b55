// SPDX-License-Identifier: Apache-2.0
// `kiln tune`: which values of its defines make an op fastest?
#include "report/tune.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>

#include "base/text.h"
#include "build/run/jobs.h"
#include "build/run/unused_defines.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/commands/tune/tune_plan.h"
#include "cli/commands/tune/tune_predict.h"
#include "cli/commands/tune/tune_subject.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/progress.h"
#include "host/generate.h"
#include "host/npy.h"
#include "measure/lane.h"
#include "project/manifest.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/machine.h"
#include "sys/printable.h"
#include "sys/process.h"
#include "tune/local_workers.h"
#include "tune/ray_workers.h"
#include "tune/replay.h"
#include "tune/result.h"
#include "tune/tuner.h"

namespace kiln::cli {
namespace tune_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  build::Request request;
  std::string target, journal, html, markdown, output, save, device, ray, replay, gpu = "H200";
  TuneWords words;
  uint64_t trials = 0, seed = 0;
  double seconds = 0, limit_s = 60;
  size_t finalists = 5;
  bool dry_run = false, predict = false, no_save = false, lane = false;
};

// About a quarter of a second a variant: enough for half a percent where a kernel runs for a tenth
// of a millisecond.
const Json kTiming = {{"min_warm_up_s", 0.02}, {"max_warm_up_s", 0.1}, {"min_samples", 20},
                      {"min_time_s", 0.04},    {"max_time_s", 0.6},    {"precision_percent", 0.5},
                      {"side", false},         {"kernels", false},     {"roof", false},
                      {"call_limit_s", 20}};
const Json kRacing = {{"min_warm_up_s", 0.1}, {"max_warm_up_s", 0.5}, {"min_samples", 100},
                      {"min_time_s", 1},      {"max_time_s", 8},      {"precision_percent", 0.2},
                      {"side", false},        {"kernels", false},     {"roof", false},
                      {"call_limit_s", 20}};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Result<size_t> builders(const Context& context) {
  const sys::Files& files = sys::real_files();
  const int cores = sys::usable_cores(files);
  const std::vector<uint64_t> peaks(static_cast<size_t>(cores),
                                    build::assumed_peak_bytes(build::StepKind::Device));
  TRY(const build::JobLimit limit, build::job_limit(context.env.get("MAX_JOBS"), cores,
                                                    sys::available_memory_bytes(files), peaks));
  return static_cast<size_t>(limit.jobs);
}

// What serves the GPU: the project's own entry for it ("9.0a"), or the plain one. Without a GPU one
// is enough.
std::string arch_for(const Json& device, const std::string& manifest_arch) {
  const auto list = manifest_arch.empty() ? Result<project::ArchList>(Error{})
                                          : project::parse_arch_list(manifest_arch);
  std::string compute = device.value("compute", "");
  if (compute.empty()) return list && !list->sass.empty() ? list->sass.front().text() : "";
  if (list)
    for (const project::Arch& arch : list->sass)
      if (fmt::format("{}.{}", arch.major, arch.minor) == compute) return arch.text();
  return compute;
}

// The right results, where somebody else than the first variant gives them. `library`: a variant,
// where the reference is an expression over the names of the op's parameters.
Status make_reference(const TunePlan& plan, const Options& options, const fs::path& folder,
                      const fs::path& library, Context& context) {
  sys::Files& files = sys::real_files();
  fs::path part = folder;
  part += ".part";
  CHECK_OK(files.remove(part));
  CHECK_OK(files.make_directories(part));
  if (!plan.expect.empty()) {
    TRY(const host::TensorSpec spec, host::parse_tensor_spec(plan.expect));
    TRY(const host::Array wanted, host::make_array(spec, options.seed));
    CHECK_OK(host::write_npy(part / "result0.npy", wanted));
  } else {
    TRY(const Python python, python_with_torch(context, "cannot compare with " + plan.against));
    TRY(const Json answer, ask_python(python, "kiln._processes.tune_reference",
                                      {{"name", plan.against},
                                       {"arguments", plan.check},
                                       {"seed", options.seed},
                                       {"library", library.string()},
                                       {"op", plan.op},
                                       {"folder", part.string()}},
                                      options.limit_s, "cannot compare with " + plan.against,
                                      context.verbose, context));
  }
  std::error_code failed;
  fs::rename(part, folder, failed);
  if (failed) return sys::disk_error("cannot save the correct results in", folder, failed.value());
  return {};
}

tune::Hooks hooks_for(Context& context) {
  tune::Hooks hooks;
  hooks.now = sys::now_seconds;
  if (context.progress)
    hooks.on_progress = [&context](const tune::Progress& now) {
      context.progress->show(tune::progress_text(now));
    };
  else
    hooks.on_progress = [](const tune::Progress&) {};
  hooks.on_outcome = [&context](const tune::Outcome& outcome) {
    if (!context.verbose) return;
    context.note(
        fmt::format("{:11} {}{}", tune::name_of(outcome.fate), text::join(outcome.defines, " "),
                    outcome.fate == tune::Fate::Timed ? fmt::format(": {:.2f} us", outcome.time_us)
                    : outcome.reason.empty()          ? ""
                                                      : ": " + outcome.reason));
  };
  hooks.interrupted = [] { return sys::pending_interrupt() != 0; };
  return hooks;
}

struct Session {
  TunePlan plan;
  TunePlace place;
  build::Request request;
  std::optional<sys::FileLock> alone;  // two at a time would take each other's libraries away
  std::unique_ptr<tune::Workers> workers;
};

Status save_choice(const Options& options, const Session& session,
                   const results::TuneResult& result, Context& context) {
  if (options.no_save || !result.timed || !result.best) return {};
  sys::Files& files = sys::real_files();
  const fs::path path =
      options.save.empty() ? session.place.tuned : context.directory / options.save;
  tune::Choices choices;
  if (files.state(path).is_file()) {
    TRY(const std::string text, files.read(path));
    TRY(choices, tune::parse_choices(text, path.string()));
  }
  tune::put(choices,
            {session.plan.op, argument_kinds(session.plan.arguments), device_fact(result, "name"),
             device_fact(result, "compute"), result.best->defines, result.best->us, result.date,
             KILN_VERSION_STRING, session.request.defines, session.request.arch});
  CHECK_OK(files.write(path, tune::write_choices(choices)));
  context.note("saved the choice in " + path.string() +
               ": kiln build --tuned takes it, kiln.load(..., tuned=True) too");
  return {};
}

Status write_results(const Options& options, const results::TuneResult& result,
                     const fs::path& folder, Context& context) {
  sys::Files& files = sys::real_files();
  const std::string json = dump(to_json(result), 1) + "\n";
  CHECK_OK(files.write(folder / "result.json", json, sys::Durable::No));
  CHECK_OK(write_output(options.output, json, context));
  CHECK_OK(write_output(options.markdown, report::tune_markdown(result), context));
  return write_output(options.html, options.html.empty() ? "" : report::tune_page(result), context);
}

Result<std::unique_ptr<tune::LocalWorkers>> open_local(const Options& options,
                                                       const build::Request& request,
                                                       const fs::path& folder, Context& context) {
  tune::LocalPlan local;
  TRY(local.kiln, sys::own_executable());
  TRY(local.env, program_environment(context.env));
  if (!options.device.empty()) local.env.set("KILN_DEVICE", options.device);
  TRY(local.builders, builders(context));
  local.request = request;
  local.folder = folder;
  local.lane = {local.kiln.string(), "tune", "--measuring"};
  return tune::LocalWorkers::open(std::move(local));
}

Result<std::unique_ptr<tune::RayWorkers>> open_ray(const Options& options,
                                                   const build::Request& request,
                                                   const fs::path& folder, Context& context) {
  tune::RayPlan plan;
  TRY(Python python, find_python(context, "cannot use Ray"));
  plan.bridge = {python.program, "-m", "kiln._processes.tune_ray"};
  plan.env = std::move(python.env);
  plan.address = options.ray;
  plan.request = request;
  plan.folder = folder;
  plan.device = options.device;
  return tune::RayWorkers::open(std::move(plan));
}

// The architecture is that of the GPU, once it is known.
template <class Kind>
Session with_workers(Session session, std::unique_ptr<Kind> workers,
                     const std::string& manifest_arch) {
  if (session.request.arch.empty()) {
    session.request.arch = arch_for(workers->lanes().front(), manifest_arch);
    workers->request().arch = session.request.arch;
  }
  session.workers = std::move(workers);
  return session;
}

// What is to be tuned and where; the architectures that the project names go to `manifest_arch`.
Status plan_session(const Options& options, Context& context, Session& session,
                    std::string& manifest_arch) {
  TRY(session.place, tune_place(options.target, context));
  Json tables = Json::object();
  std::string source;
  if (session.place.is_project) {
    const fs::path path = session.place.target / project::kManifestName;
    TRY(const project::Manifest manifest, project::read_manifest(sys::real_files(), path));
    tables = manifest.tune;
    manifest_arch = manifest.arch;
    source = (fs::path(options.target) / project::kManifestName).lexically_normal().string();
  }
  TRY(session.plan, tune_plan(options.words, tables, source));
  for (const std::string& note : session.plan.notes) context.note(note);
  // A space that allows nothing is reported before anything starts.
  CHECK_OK(tune::Search::make(session.plan.space, {}));
  return {};
}

constexpr uint64_t kMostListed = 1000;

// --dry-run: which configurations there are, before hours are spent on them.
Result<int> show_plan(const Options& options, Context& context) {
  Session session;
  std::string manifest_arch;
  CHECK_OK(plan_session(options, context, session, manifest_arch));
  const tune::Space& space = session.plan.space;
  Json shown = Json::array();
  uint64_t allowed = 0;
  std::string out;
  for (uint64_t number = 0; number < std::min(space.size(), kMostListed); ++number) {
    const tune::Point point = space.point(number);
    TRY(const std::string forbidden, space.forbidden_by(point));
    if (!forbidden.empty()) continue;
    ++allowed;
    shown.push_back(space.defines(point));
    out += "  " + space.text(point) + "\n";
  }
  const bool more = space.size() > kMostListed;
  if (more) out += "  ...\n";
  if (context.json)
    context.print_json({{"op", session.plan.op},
                        {"dry_run", true},
                        {"configurations", shown},
                        {"complete", !more}});
  else
    context.print(fmt::format("would build and check {}{} configurations of {}\n{}",
                              more ? "more than " : "", allowed, session.plan.op, out));
  return 0;
}

// --predict: the order that the counters of each variant suggest, without a GPU.
Result<int> show_prediction(const Options& options, bool out_taken, Context& context) {
  Session session;
  std::string manifest_arch;
  CHECK_OK(plan_session(options, context, session, manifest_arch));
  PredictRequest asked{options.request, options.gpu, options.seed, options.limit_s};
  asked.request.targets = {session.place.target.string()};
  asked.request.directory = context.directory;
  asked.request.defines.insert(asked.request.defines.begin(), session.plan.defines.begin(),
                               session.plan.defines.end());
  TRY(const results::TunePrediction prediction, predict_variants(session.plan, asked, context));
  const Json json = to_json(prediction);
  CHECK_OK(write_output(options.output, dump(json, 1) + "\n", context));
  if (context.json)
    context.print_json(json);
  else if (!out_taken)
    context.print(report::prediction_text(prediction));
  const bool any = !prediction.variants.empty() && prediction.variants.front().why.empty();
  return any ? 0 : static_cast<int>(Fault::Work);
}

Result<Session> open_session(const Options& options, Context& context) {
  Session session;
  std::string manifest_arch;
  CHECK_OK(plan_session(options, context, session, manifest_arch));
  session.request = options.request;
  session.request.targets = {session.place.target.string()};
  session.request.directory = context.directory;
  session.request.defines.insert(session.request.defines.begin(), session.plan.defines.begin(),
                                 session.plan.defines.end());
  CHECK_OK(sys::real_files().make_directories(session.place.folder));
  TRY(auto lock, sys::FileLock::acquire(session.place.folder / "lock", [&] {
        context.note(fmt::format("waiting for another kiln tune of {}", options.target));
      }));
  session.alone = std::move(lock);
  const fs::path folder = session.place.folder / "variants";
  CHECK_OK(sys::real_files().remove(folder));
  if (options.ray.empty()) {
    TRY(auto workers, open_local(options, session.request, folder, context));
    return with_workers(std::move(session), std::move(workers), manifest_arch);
  }
  TRY(auto workers, open_ray(options, session.request, folder, context));
  return with_workers(std::move(session), std::move(workers), manifest_arch);
}

// The first configuration that may be tried.
std::vector<std::string> first_defines(const tune::Space& space) {
  constexpr uint64_t kMostLooks = 100'000;
  for (uint64_t number = 0; number < std::min(space.size(), kMostLooks); ++number) {
    const auto forbidden = space.forbidden_by(space.point(number));
    if (forbidden && forbidden->empty()) return space.defines(space.point(number));
  }
  return space.defines(space.point(0));
}

// The library of any variant; the cache gives it to the search again.
Result<fs::path> any_variant(const Session& session, Context& context) {
  build::Request request = session.request;
  const std::vector<std::string> defines = first_defines(session.plan.space);
  request.defines.insert(request.defines.end(), defines.begin(), defines.end());
  TRY(const build::Outcome outcome, build_for(context, request));
  return outcome.file;
}

bool is_python_name(std::string_view text) {
  return std::ranges::all_of(text::split(text, '.'),
                             [](std::string_view part) { return text::is_identifier(part); });
}

// A define that no source mentions makes all variants the same.
void tell_unused(const Session& session, Context& context) {
  for (const std::string& text : build::unused_defines(
           first_defines(session.plan.space), all_sources(session.place), sys::real_files()))
    context.note("warning: " + text);
}

tune::Task task_of(const Session& session, const Options& options, const fs::path& folder) {
  tune::Task task;
  task.op = session.plan.op;
  task.arguments = session.plan.arguments;
  task.check = session.plan.check;
  task.rtol = session.plan.rtol;
  task.atol = session.plan.atol;
  task.seed = options.seed;
  task.timing = kTiming;
  task.racing = kRacing;
  task.defines = session.request.defines;
  task.rules = session.plan.rules;
  task.lane_limit_s = options.limit_s;
  task.seconds = options.seconds;
  task.finalists = options.finalists;
  task.reference = folder / "reference";
  task.has_reference = sys::real_files().state(task.reference).is_directory;
  return task;
}

Result<int> show_replay(const Options& options, Context& context) {
  TRY(const std::string text, sys::real_files().read(context.directory / options.replay));
  TRY(const Json result, parse_json(text, options.replay));
  TRY(const size_t ahead, builders(context));
  TRY(const tune::Replay played, tune::replay(result, {options.trials, options.seed}, ahead));
  if (context.json)
    context.print_json({{"tried", played.tried},
                        {"timed", played.timed},
                        {"found", to_json(played.found)},
                        {"best", to_json(played.best)},
                        {"ratio", played.ratio}});
  else
    context.print(fmt::format("{} tried, {} timed: {:.2f} us, {:.3f}x of the best: {}\n",
                              played.tried, played.timed, played.found.time_us, played.ratio,
                              text::join(played.found.defines, " ")));
  return 0;
}

Result<int> run(Options& options, Context& context) {
  if (options.lane) return measure::serve_lane();
  if (!options.replay.empty()) return show_replay(options, context);
  CHECK_OK(take_declared(options.target, options.words.name, context));
  if (options.target.empty() || options.words.name.empty())
    return Error{Fault::Usage, "kiln tune needs a TARGET and an OP",
                 options.target.empty() ? "TARGET is missing: a .cu file or a project folder"
                                        : "OP is missing: what is to be tuned",
                 "kiln tune FILE.cu OP ARGS --vary BLOCK=64,128"};
  TRY(const bool out_taken, check_outputs({{"--markdown", options.markdown},
                                           {"--html", options.html},
                                           {"-o", options.output},
                                           {"--save", options.save}},
                                          context));
  if (options.dry_run) return show_plan(options, context);
  if (options.predict) return show_prediction(options, out_taken, context);
  sys::InterruptScope no_half_lines;
  TRY(Session session, open_session(options, context));
  tell_unused(session, context);
  const Json device = session.workers->lanes().front();
  if (options.device.starts_with("cuda") && device.value("kind", "") == "engine")
    return Error{Fault::Environment, "cannot use the GPU", "CUDA finds no GPU or no driver for it",
                 "leave out --device cuda: the engine builds and checks the variants; "
                 "kiln doctor checks the driver"};
  TRY(const Json subject,
      tune_subject(session.plan, session.place, session.request, device, options.seed, context));
  const fs::path folder = session.place.folder / subject_name(session.plan, subject);
  sys::Files& files = sys::real_files();
  const fs::path journal_path =
      options.journal.empty() ? folder / "journal.jsonl" : context.directory / options.journal;
  if (options.request.fresh) {
    CHECK_OK(files.remove(folder));
    CHECK_OK(files.remove(journal_path));
  }
  CHECK_OK(files.make_directories(folder));
  TRY(tune::Journal journal, tune::Journal::open(files, journal_path, subject));
  journal.keep_those_of(session.plan.space);
  if (!journal.outcomes().empty())
    context.note(fmt::format("resuming: {} outcome{} in {}", journal.outcomes().size(),
                             journal.outcomes().size() == 1 ? " is" : "s are",
                             journal_path.string()));
  TRY(const tune::Search search,
      tune::Search::make(session.plan.space, {options.trials, options.seed}));
  tune::Task task = task_of(session, options, folder);
  if (!task.has_reference && (!session.plan.expect.empty() || !session.plan.against.empty())) {
    fs::path library;
    if (!session.plan.against.empty() && !is_python_name(session.plan.against)) {
      TRY(library, any_variant(session, context));
    }
    CHECK_OK(make_reference(session.plan, options, task.reference, library, context));
    task.has_reference = true;
  }
  tune::Tuner tuner(session.plan.space, search, journal, *session.workers, task,
                    hooks_for(context));
  const Result<tune::Tuned> tuned = tuner.run();
  if (!tuned) return Error(tuned.error());
  results::TuneResult result =
      tune::result_of(session.plan.space, search, session.plan.where, journal.outcomes(), *tuned);
  result.name = session.plan.name;
  result.op = session.plan.op;
  result.arguments = session.plan.arguments;
  result.check = session.plan.check;
  result.device = device;
  result.date = utc_now();
  result.kiln = KILN_VERSION_STRING;
  session.workers.reset();
  (void)files.remove(session.place.folder / "variants");
  CHECK_OK(write_results(options, result, folder, context));
  CHECK_OK(save_choice(options, session, result, context));
  if (context.json)
    context.print_json(to_json(result));
  else if (!out_taken)
    context.print(report::tune_text(result));
  const bool any_right = std::ranges::any_of(result.counts, [](const auto& count) {
    return count.first == "timed" || count.first == "checked";
  });
  return any_right ? 0 : static_cast<int>(Fault::Work);
}

void add_space_options(CLI::App& app, TuneWords& words) {
  add_list(app, "--vary", words.vary, "NAME=A,B",
           "A define and the values to try (repeatable; replaces those of kiln.toml)");
  add_list(app, "--where", words.where, "EXPR",
           "Only configurations that satisfy this: 'BLOCK_M % (16 * WARPS) == 0'");
  add_list(app, "--check-args", words.check, "ARG",
           "Compare results with these arguments instead (repeatable, in order)");
  app.add_option("--against", words.against,
                 "The correct result: torch.add or another callable (default: the first variant)")
      ->type_name("EXPR");
  app.add_option("--expect", words.expect,
                 "The correct result: a tensor, as for kiln call --expect")
      ->type_name("TENSOR");
  app.add_option("--rtol", words.rtol, "Relative tolerance of results (default: by dtype)")
      ->type_name("NUMBER");
  app.add_option("--atol", words.atol, "Absolute tolerance of results (default: by dtype)")
      ->type_name("NUMBER");
  app.add_option("--kernel", words.kernel,
                 "Only kernels with this text in their name count for pruning (default: all)")
      ->type_name("TEXT");
  app.add_option("--shared-bytes", words.shared_bytes,
                 "Dynamic shared memory per block: 'BLOCK_M * 256'")
      ->type_name("EXPR");
  app.add_option("--threads", words.threads,
                 "Threads per block, for the occupancy (default: launch bounds, 256)")
      ->type_name("EXPR");
  app.add_option("--max-spill-bytes", words.max_spill_bytes,
                 "Prune variants that spill more bytes (default: 0; -1: none)")
      ->type_name("N");
  app.add_option("--max-registers", words.max_registers,
                 "Prune variants with more registers per thread")
      ->type_name("N");
  app.add_option("--min-blocks", words.min_blocks,
                 "Prune variants with fewer blocks per multiprocessor (default: 1)")
      ->type_name("N");
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target, "A .cu file or a project folder")->type_name("");
  app.add_option("OP", options->words.name,
                 "The op, or the NAME of a table [tune.NAME] in kiln.toml")
      ->type_name("");
  add_op_arguments(app, options->words.arguments, "Its arguments, as for kiln call");
  add_space_options(app, options->words);
  app.add_option(
         "--trials", options->trials,
         "Time at most N configurations: a spread sample, then the most promising (default: all)")
      ->type_name("N");
  app.add_option("--time", options->seconds, "Stop after about SECONDS")
      ->type_name("SECONDS")
      ->check(positive_number());
  add_limit(app, options->limit_s, "a variant");
  app.add_flag("--dry-run", options->dry_run, "Print the configurations, and build none of them");
  app.add_flag("--predict", options->predict,
               "Order the configurations by their predicted time on --gpu; time none of them");
  app.add_option("--gpu", options->gpu, "The GPU of --predict (default: H200)")
      ->type_name("NAME")
      ->needs("--predict");
  app.add_option("--finalists", options->finalists,
                 "How many of the fastest are timed again in alternation (default: 5)")
      ->type_name("N");
  app.add_option("--seed", options->seed, "Seed for tensors and for the search (default: 0)")
      ->type_name("N");
  add_device(app, options->device);
  app.add_option("--ray", options->ray,
                 "Build and measure on the workers of a Ray cluster; local starts one here")
      ->type_name("ADDRESS");
  app.add_option("--journal", options->journal,
                 "Append outcomes to this file (default: in the build folder)")
      ->type_name("FILE");
  app.add_option("--html", options->html, "Write a page with heat maps")->type_name("FILE");
  app.add_option("--markdown", options->markdown,
                 "Write a table of all configurations; - for stdout")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output, "Write everything as JSON; - for stdout")
      ->type_name("FILE");
  app.add_option("--save", options->save,
                 "Save the choice to this file (default: tuned.json next to the source)")
      ->type_name("FILE");
  app.add_flag("--no-save", options->no_save, "Do not save the choice");
  app.add_option("--replay", options->replay,
                 "From the JSON of a run that tried all: what --trials N would have found")
      ->type_name("FILE");
  app.add_flag("--measuring", options->lane, "Internal: the process that measures")->group("");
  add_build_options(app, options->request, {.explain = false, .watch = false});
  app.footer(
      "kiln tune add.cu my_add randn:f32:2^24 randn:f32:2^24 --vary BLOCK=128,256 --vary "
      "VECTOR=1,4\n"
      "Run the same command again to resume an interrupted run. Without a GPU nothing is timed.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace tune_cli

const Command tune_command = {"tune", "Find the fastest values for an op's defines",
                              tune_cli::setup};

}  // namespace kiln::cli
