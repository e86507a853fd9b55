// SPDX-License-Identifier: Apache-2.0
// How does a request become a library or a program on the disk?
#include "build/build.h"

#include <fmt/format.h>

#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "build/cache/reads.h"
#include "build/edit/edit_lane.h"
#include "build/plan/compat.h"
#include "build/plan/flags.h"
#include "build/plan/light_headers.h"
#include "build/run/editor_files.h"
#include "build/run/header_times.h"
#include "build/run/ninja_run.h"
#include "build/run/publish.h"
#include "build/run/state.h"
#include "build/run/unused_defines.h"
#include "build/run/work.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/machine.h"

namespace kiln::build {

namespace {

Outcome outcome_of(const Work& work) {
  Outcome outcome;
  outcome.program = work.plan.program;
  outcome.name = work.plan.name;
  outcome.arch = work.plan.arch;
  outcome.build_dir = work.plan.build_dir;
  outcome.project_dir = work.plan.project_dir;
  outcome.defines = work.plan.defines;
  if (!work.plan.program) outcome.link = link_path(work.plan);
  outcome.torch_headers = work.plan.torch == TorchHeaders::Compat   ? "compat"
                          : work.plan.torch == TorchHeaders::Torchs ? "torch"
                                                                    : "";
  for (const Source& source : work.plan.sources)
    outcome.python_module |= source.facts.defines_python_module;
  return outcome;
}

// torch and scripts around its load make a file or folder "lock" in the build folder.
constexpr const char* kLockFile = ".kiln.lock";

// In the place of the key, where a step is not cached: what it made may be stale whatever the
// record says.
constexpr std::string_view kUncachedKey = "uncached ";

std::string key_with_path(const Work& work) {
  return Hasher().add_field(work.key).add_field(work.world.env.get("PATH").value_or("")).hex();
}

std::string why_uncached(const Work& work) {
  for (const Step& step : work.graph.steps)
    if (!step.uncached.empty()) return fmt::format("not cached: {}", step.uncached);
  return "";
}

// The result of the last build if no input changed; else what is not goes to
// `trigger`.
std::optional<Outcome> unchanged(const Work& work, std::string& trigger) {
  trigger = "--fresh was given";
  if (work.plan.fresh) return std::nullopt;
  trigger = "there was no finished build in this folder";
  auto content = work.world.files.read(work.in_build_dir(kStateFile));
  auto state = content ? parse_state(*content) : std::nullopt;
  if (!state) return std::nullopt;
  if (state->key.starts_with(kUncachedKey)) {
    trigger = state->key.substr(kUncachedKey.size());
    return std::nullopt;
  }
  trigger = "flags, architectures, compilers or their environment changed";
  // Where a compiler is a script, the record was made under the PATH too.
  if (state->key != work.key && state->key != key_with_path(work)) return std::nullopt;
  if (auto change = first_change(work.world.files, state->reads)) {
    trigger = sentence(*change);
    return std::nullopt;
  }
  Outcome outcome = outcome_of(work);
  outcome.file = state->result;
  outcome.explanation.trigger = "nothing";
  outcome.explanation.lane = "none";
  outcome.explanation.why_lane = "no input changed";
  outcome.explanation.why_variant = work.plan.why_variant;
  if (!outcome.link.empty() &&
      work.world.files.state(outcome.link) != work.world.files.state(outcome.file))
    return std::nullopt;
  return outcome;
}

// Of the edit lane: the former record, as the edit changed it.
std::optional<BuildState> state_of_edit(const Work& work) {
  BuildState state = *work.edited;
  const std::string former_result = state.result.string();
  std::erase_if(state.reads.files,
                [&](const ReadFile& file) { return file.path == former_result; });
  for (const ReadFile& file : state.reads.files)
    if (file.state.ctime_ns >= work.started_ns) return std::nullopt;
  return state;
}

// What the next build is compared with; nothing when a step has no record of what it read.
Result<std::optional<BuildState>> state_to_keep(const Work& work) {
  using Kept = std::optional<BuildState>;
  if (work.edited) return state_of_edit(work);
  const std::string uncached = why_uncached(work);
  BuildState state{uncached.empty() ? work.key : std::string(kUncachedKey) + uncached, {}, {}};
  TRY(std::optional<Reads> reads, reads_of_all(work));
  if (!reads) return Kept();
  state.reads = std::move(*reads);
  std::set<std::string> known;
  for (const ReadFile& file : state.reads.files) known.insert(file.path);
  auto see = [&](const std::string& path) {
    if (known.insert(path).second)
      state.reads.files.push_back({path, work.world.files.state(path)});
  };
  for (const std::string& program : work.facts.host_programs) see(program);
  for (const fs::path& tool : work.plan.host_tools) see(tool.string());
  return Kept(std::move(state));
}

// Nothing is kept when a file is not as the steps read it any more: what an edit is compared with
// was read after they ran.
Status remember(const Work& work, const fs::path& result) {
  sys::Files& files = work.world.files;
  TRY(std::optional<BuildState> state, state_to_keep(work));
  if (state) {
    state->result = result;
    state->reads.files.push_back({result.string(), files.state(result)});
    // An unknown read never holds; the record says so to the next build.
    auto change = first_change(files, state->reads);
    if (change && change->change != Change::Unknown) state.reset();
  }
  if (!state) return files.remove(work.in_build_dir(kStateFile));
  return files.write(work.in_build_dir(kStateFile), write_state(*state), sys::Durable::Scratch);
}

std::optional<BuildState> former_state(const Work& work) {
  auto content = work.world.files.read(work.in_build_dir(kStateFile));
  return content ? parse_state(*content) : std::nullopt;
}

// The library as device code alone makes it, or nothing: then the full lane has to run.
Result<std::optional<fs::path>> edited(Work& work) {
  std::string why;
  auto state = former_state(work);
  auto edit = state ? find_edit(work, *state, why) : std::nullopt;
  if (!state) why = work.explanation.trigger;
  if (work.plan.full_lane) {
    why = work.plan.fresh ? "--fresh" : "a release is built whole";
    edit.reset();
  }
  std::optional<EditedLibrary> made;
  if (edit) {
    TRY(made, build_edit(work, *edit, why));
  }
  work.explanation.why_variant = work.plan.why_variant;
  work.explanation.lane = made ? made->lane : "full";
  work.explanation.why_lane = made ? made->why : why;
  if (!made) return std::optional<fs::path>();
  work.edited = std::move(edit->state);
  fs::path file = work.staging / work.graph.result().outputs[0];
  CHECK_OK(work.world.files.write_executable(file, made->bytes));
  return std::optional<fs::path>(file);
}

void tell_unused_defines(const Work& work) {
  if (work.plan.defines.empty()) return;
  std::vector<fs::path> paths;
  for (const Source& source : work.plan.sources) paths.push_back(source.file);
  for (const Step& step : work.graph.steps)
    if (const auto reads = reads_of(work, step))
      for (const ReadFile& file : reads->files) paths.emplace_back(file.path);
  std::set<fs::path> seen;
  std::erase_if(paths, [&](const fs::path& path) { return !seen.insert(path).second; });
  for (const std::string& text : unused_defines(work.plan.defines, paths, work.world.files))
    work.note("warning: " + text);
}

// The record of the last build goes first: one that is killed after the link leaves a library that
// the record does not describe, and no later edit may take it for the one that it does.
Result<fs::path> full_lane(Work& work) {
  CHECK_OK(work.world.files.remove(work.in_build_dir(kStateFile)));
  CHECK_OK(run_ninja(work, {}));
  fs::path linked = work.in_obj(work.graph.result().outputs[0]);
  if (work.plan.torch == TorchHeaders::Compat && !work.plan.program) {
    TRY(std::string library, work.world.files.read(linked));
    CHECK_OK(check_open_names(work.plan, library));
  }
  return linked;
}

Result<fs::path> linked_by_either_lane(Work& work) {
  TRY(std::optional<fs::path> by_edit, edited(work));
  if (by_edit) return std::move(*by_edit);
  return full_lane(work);
}

// As torch's own extensions do it: a C program may mean something else in C++.
void tell_of_c_sources(const Work& work) {
  for (const Source& source : work.plan.sources)
    if (text::lower(source.file.extension().string()) == ".c")
      work.note(
          fmt::format("note: {} is compiled as C++, as torch compiles it; to keep it C, "
                      "compile it with your C compiler and pass the object: --ldflag FILE.o",
                      source.shown));
}

Result<Outcome> rebuild(Work& work) {
  sys::InterruptScope no_half_files;
  CHECK_OK(work.world.files.make_directories(work.plan.build_dir));
  TRY(auto lock, sys::FileLock::acquire(work.in_build_dir(kLockFile), [&] {
        work.note(fmt::format("waiting for another build in {}", work.plan.build_dir.string()));
      }));
  // Another process may have built the same while this one waited.
  if (auto outcome = unchanged(work, work.explanation.trigger)) return std::move(*outcome);
  work.facts = learn_facts(work.plan, work.world);
  if (!work.facts.cuda_flags.relocatable.empty())
    return no_relocatable_code(work.facts.cuda_flags.relocatable);
  if (work.facts.path_matters) work.key = key_with_path(work);
  // Without a limit a runaway template takes the memory of everybody else.
  if (!work.plan.memory_bytes) work.plan.memory_bytes = sys::whole_memory_bytes(work.world.files);
  work.graph = make_graph(work.plan, work.facts);
  if (work.plan.fresh) CHECK_OK(work.world.files.remove(work.in_obj("")));
  CHECK_OK(prepare(work));
  for (const std::string& text : language_notes(work.plan, work.world)) work.note(text);
  auto linked = linked_by_either_lane(work);
  Outcome outcome = outcome_of(work);
  outcome.steps = reports_since(work);
  tell_and_count(work, outcome.steps);
  if (linked && !outcome.steps.empty()) tell_unused_defines(work);
  if (linked && work.explanation.lane == "full") tell_of_c_sources(work);
  if (linked && work.plan.time_headers) outcome.headers = slow_headers(work, outcome.steps);
  if (linked) {
    auto published = publish(work.world.files, work.plan, *linked);
    if (!published) return std::move(published.error());
    outcome.file = *published;
  }
  // Before the record is written: a name less of the library changes the time of its inode.
  CHECK_OK(work.world.files.remove(work.staging.parent_path()));
  if (!linked) return std::move(linked.error());
  if (work.explanation.lane == "full") CHECK_OK(remember_for_edits(work));
  CHECK_OK(remember(work, outcome.file));
  CHECK_OK(write_editor_files(work));
  if (sys::pending_interrupt()) return sys::interrupted_error();
  outcome.rebuilt = !outcome.steps.empty();
  outcome.explanation = work.explanation;
  return outcome;
}

Result<Outcome> build_planned(Work& work) {
  const World& world = work.world;
  work.key = Hasher()
                 .add_field(shown_intent(work.plan))
                 .add_field(work.plan.circumstances)
                 .add_field(work.plan.findings_fail ? "findings fail" : "")
                 .hex();
  Outcome outcome;
  if (auto former = unchanged(work, work.explanation.trigger)) {
    outcome = std::move(*former);
  } else {
    TRY(outcome, rebuild(work));
  }
  if (!work.plan.output.empty()) CHECK_OK(world.files.copy(outcome.file, work.plan.output));
  return outcome;
}

Work new_work(const World& world) { return Work{world, {}, {}, {}, {}, {}, 0, {}, {}, {}}; }

// The rest of kiln's headers first: they cost a second, torch's own a minute. Nothing where there
// are none, or where they do not suffice either: lack and error are then those that remain.
std::optional<Outcome> with_more_headers(const Request& request, const World& world, Lack& lack,
                                         Error& error, const Plan& tried) {
  constexpr int kRounds = 3;
  Lack first = lack;
  std::set<std::string> there(tried.leaked.begin(), tried.leaked.end());
  for (int round = 0; round < kRounds; ++round) {
    bool more = false;
    for (const std::string& header : headers_with(lack, tried, world.files))
      if (there.insert(header).second) more = first.added.insert(header).second;
    if (!more) return std::nullopt;
    Work again = new_work(world);
    auto plan = make_plan(request, world, HeaderChoice{false, first.added});
    if (!plan) return std::nullopt;
    again.plan = std::move(*plan);
    auto outcome = build_planned(again);
    if (outcome) {
      remember_lack(again.plan, world, first);
      return std::move(*outcome);
    }
    // Of pybind11's own errors the first one says more.
    auto left = what_compat_lacks(outcome.error(), again.plan, world.files);
    if (!left || first.added.contains(std::string(kPybindHeader))) return std::nullopt;
    lack = *left;
    error = std::move(outcome.error());
  }
  return std::nullopt;
}

// What the compat headers lack, torch's own have: the build begins anew with those, and the file is
// remembered. A name that torch does not have either is an error at once.
Result<Outcome> with_other_headers(const Request& request, Work& work, Error error) {
  auto lack = what_compat_lacks(error, work.plan, work.world.files);
  if (!lack) return error;
  if (auto outcome = with_more_headers(request, work.world, *lack, error, work.plan))
    return std::move(*outcome);
  if (is_header(*lack))
    if (auto folders = torchs_folders(work.world);
        folders && !has_header(*folders, lack->symbol, work.world.files))
      return unknown_header(std::move(error), *lack, *folders, work.world.files);
  if (is_in_torchs_scope(*lack))
    if (auto package = torch_package(work.world);
        package && !torch_knows(*package, lack->symbol, work.world.files))
      return unknown_name(std::move(error), *lack, *package, work.world.files);
  if (request.compat == "require") {
    error.fix = lack->mixed ? "name its source instead of the object, or leave out "
                              "--compat=require to build with torch's own headers"
                            : fmt::format(
                                  "kiln's compat headers lack {}; leave out --compat=require to "
                                  "build with torch's own",
                                  lack->symbol);
    return error;
  }
  work.note(fallback_note(*lack, work.plan.sources.size()));
  Work again = new_work(work.world);
  auto plan = make_plan(request, work.world, HeaderChoice{true, {}});
  if (!plan) {
    plan.error().why +=
        fmt::format("\nand {}: kiln's compat headers lack {}", lack->place, lack->symbol);
    return std::move(plan.error());
  }
  again.plan = std::move(*plan);
  auto outcome = build_planned(again);
  // The other object may be replaced by its source without a change of this one.
  if (outcome && !lack->mixed) remember_lack(again.plan, work.world, *lack);
  return outcome;
}

}  // namespace

Result<Outcome> build(const Request& asked, const World& outside) {
  double begun = sys::now_seconds();
  Request request = asked;
  sys::Environment env = outside.env;
  if (request.fresh) env.set("KILN_CACHE_DIR", "off");
  const World world{outside.files,       outside.processes, env,
                    outside.on_progress, outside.on_note,   outside.on_command};
  if (request.compat == "auto") request.compat = world.env.get("KILN_COMPAT").value_or("auto");
  if (request.compat != "auto" && request.compat != "require" && request.compat != "never")
    return Error{Fault::Usage, "cannot determine which headers to build with",
                 fmt::format("KILN_COMPAT is '{}'", request.compat),
                 "set it to auto, require or never, or unset it"};
  Work work = new_work(world);
  TRY(work.plan, make_plan(request, world));
  auto outcome = build_planned(work);
  if (!outcome && work.plan.torch == TorchHeaders::Compat)
    outcome = with_other_headers(request, work, std::move(outcome.error()));
  if (outcome) outcome->seconds = sys::now_seconds() - begun;
  return outcome;
}

}  // namespace kiln::build
