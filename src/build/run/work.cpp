// SPDX-License-Identifier: Apache-2.0
// What is known about one build while it runs?
#include "build/run/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "base/text.h"
#include "build/run/diagnose.h"
#include "build/run/jobs.h"
#include "build/run/ninja_file.h"
#include "build/run/plain_log.h"
#include "project/own_cache.h"
#include "sys/clock.h"

namespace kiln::build {

namespace {

constexpr uint64_t kFullDiskBytes = 64 * 1024;
constexpr std::string_view kStagingFolder = "staging";

Status write_if_changed(const Work& work, std::string_view name, const std::string& content) {
  auto former = work.world.files.read(work.in_build_dir(name));
  if (former && *former == content) return {};
  return work.world.files.write(work.in_build_dir(name), content, sys::Durable::No);
}

// This command, or, in a test, the one of the package.
fs::path kiln_command(const Work& work) {
  auto own = sys::own_executable();
  if (own && own->filename() == "kiln") return *own;
  return work.plan.home.root / "bin" / "kiln";
}

ReadFileText reader(const Work& work) {
  return [&files = work.world.files](const std::string& path) {
    auto text = files.read(path);
    return text ? std::move(*text) : std::string();
  };
}

CacheCounts counts_of(const std::vector<StepReport>& reports) {
  CacheCounts counts;
  for (const StepReport& report : reports) {
    counts.damaged += report.damaged;
    counts.bytes += static_cast<int64_t>(report.stored_bytes);
    if (report.answer == Answer::Ran) ++counts.misses;
    if (report.answer == Answer::Direct || report.answer == Answer::Content)
      ++(report.origin == Origin::Remote ? counts.remote_hits : counts.local_hits);
  }
  return counts;
}

}  // namespace

Status prepare(Work& work) {
  sys::Files& files = work.world.files;
  CHECK_OK(files.make_directories(work.in_build_dir("obj")));
  // A compiler that outlives a killed run by a moment may still be writing there.
  Status removed = files.remove(work.in_build_dir(kStagingFolder));
  for (int tries = 0; !removed && tries < 100; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    removed = files.remove(work.in_build_dir(kStagingFolder));
  }
  CHECK_OK(removed);
  work.staging = work.in_build_dir(kStagingFolder) / fmt::format("{:x}", sys::wall_ns());
  CHECK_OK(files.make_directories(work.staging));
  // The disk's own clock: the kernel stamps files with one that lags by a tick, a server with its
  // own. A file that was written just before may bear the same tick: the build starts with the next
  // one.
  const int64_t tick_ns = files.state(work.staging).ctime_ns;
  work.started_ns = tick_ns;
  for (int tries = 0; tries < 50 && work.started_ns == tick_ns; tries++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_OK(files.write(work.staging / "tick", "", sys::Durable::Scratch));
    work.started_ns = files.state(work.staging / "tick").ctime_ns;
  }
  for (const auto& [name, content] : work.graph.files)
    CHECK_OK(write_if_changed(work, name, content));
  return {};
}

std::optional<Reads> reads_of(const Work& work, const Step& step) {
  auto text = work.world.files.read(work.in_obj(step.reads_file()));
  return text ? parse_reads(*text) : std::nullopt;
}

std::set<std::string> stale_steps(const Work& work) {
  std::set<std::string> stale;
  FileStates states(work.world.files);  // steps of one source read the same headers
  for (const Step& step : work.graph.steps) {
    // What is not cached runs in every build.
    bool runs = !step.uncached.empty();
    if (!runs) {
      auto reads = reads_of(work, step);
      runs = !reads || first_change(states, *reads);
    }
    if (runs) stale.insert(step.key);
  }
  return stale;
}

Status write_for_ninja(const Work& work) {
  for (const Step& step : work.graph.steps)
    CHECK_OK(write_if_changed(work, step.step_file(), dump(to_json(step))));
  return write_if_changed(work, "build.ninja",
                          ninja_file(work.graph, kiln_command(work), stale_steps(work)));
}

Result<std::optional<Reads>> reads_of_all(const Work& work) {
  Reads all;
  bool whole = true;
  std::unordered_map<std::string, size_t> files;
  std::set<std::string> absent;
  for (const Step& step : work.graph.steps) {
    auto reads = reads_of(work, step);
    if (!reads) {
      whole = false;
      continue;
    }
    bool since_started = false;
    for (ReadFile& file : reads->files) {
      since_started |= file.state.ctime_ns >= work.started_ns;
      auto [at, is_new] = files.try_emplace(file.path, all.files.size());
      if (is_new)
        all.files.push_back(std::move(file));
      else
        whole &= is_same(all.files[at->second].state, file.state);
    }
    absent.insert(reads->absent.begin(), reads->absent.end());
    if (!since_started) continue;
    whole = false;
    CHECK_OK(work.world.files.remove(work.in_obj(step.reads_file())));
  }
  all.absent.assign(absent.begin(), absent.end());
  return whole ? std::optional(std::move(all)) : std::nullopt;
}

std::vector<StepReport> reports_since(const Work& work) {
  std::vector<StepReport> reports = work.extra_reports;
  for (const Step& step : work.graph.steps) {
    fs::path file = work.in_obj(step.key + ".report");
    if (work.world.files.state(file).ctime_ns < work.started_ns) continue;
    auto text = work.world.files.read(file);
    if (auto report = text ? read_report(*text) : std::nullopt)
      reports.push_back(std::move(*report));
  }
  std::stable_sort(reports.begin(), reports.end(), [](const StepReport& a, const StepReport& b) {
    return a.begin_ns < b.begin_ns;
  });
  return reports;
}

void tell_and_count(const Work& work, const std::vector<StepReport>& reports) {
  std::set<std::string> told, said_of_sources;
  auto tell = [&](const std::string& text) {
    if (!text.empty() && told.insert(text).second) work.note(text);
  };
  auto cache = project::own_cache_folder(work.world.files, work.world.env);
  Peaks peaks(work.world.files, (cache ? *cache : work.plan.build_dir) / "peaks.json");
  for (const StepReport& report : reports) {
    auto step = std::find_if(work.graph.steps.begin(), work.graph.steps.end(),
                             [&](const Step& one) { return one.key == report.key; });
    if (step == work.graph.steps.end()) continue;
    peaks.saw(*step, report.peak_bytes());
    for (const std::string& note : report.notes) tell(note);
    for (const std::string& finding : report.findings)
      tell(fmt::format("warning: {}{}: {}", step->shown,
                       step->arch.empty() ? "" : " (compute_" + step->arch + ")", finding));
    auto log = work.world.files.read(work.in_obj(report.key + ".log"));
    if (!log) continue;
    for (const std::string& warning :
         plain_warnings(*log, {step->source, step->shown, reader(work)}, said_of_sources))
      tell(warning);
  }
  peaks.keep();
  auto place = make_cache_place(work.world.files, work.world.env);
  if (place && place->refused.empty() && !place->folder.empty())
    (void)add_counts(work.world.files, *place, counts_of(reports));
}

std::optional<Error> failed_step(const Work& work) {
  // What succeeded has its log in obj/: one that is still here belongs to what failed.
  for (const Step& step : work.graph.steps) {
    fs::path path = work.staging / (step.key + ".log");
    if (!work.world.files.state(path).is_file()) continue;
    auto log = work.world.files.read(path);
    if (!log) return log.error();
    // A full disk has no room for the compiler's complaint either.
    if (work.world.files.free_bytes(work.plan.build_dir) < kFullDiskBytes)
      return sys::disk_error(fmt::format("cannot {} in", step.what), work.plan.build_dir, ENOSPC);
    std::string archs;
    if (!step.source.empty() && work.plan.nvcc && names_unknown_arch(*log))
      archs = project::supported_archs(*work.plan.nvcc, work.world.processes);
    return diagnose(step, *log, archs, reader(work), static_cast<bool>(work.world.on_command));
  }
  return std::nullopt;
}

bool ran_out_of_memory(const Work& work) {
  for (const Step& step : work.graph.steps) {
    auto log = work.world.files.read(work.staging / (step.key + ".log"));
    if (log && (log->ends_with("Killed\n") ||
                said_by_compilers(*log).find("out of memory") != std::string::npos))
      return true;
  }
  return false;
}

}  // namespace kiln::build
