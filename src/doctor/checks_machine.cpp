// SPDX-License-Identifier: Apache-2.0
// Do GPU, driver, memory and caches of this machine allow what builds ask for?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/check.h"

namespace kiln::doctor {

namespace {

constexpr uint64_t kLeastFreeBytes = 1'000'000'000;
constexpr int64_t kEnoughLookups = 20;  // fewer say nothing about a rate
constexpr double kPoorRate = 0.05;
constexpr const char* kNetworkDisks[] = {
    "nfs",        "nfs4",           "cifs",      "smb3",         "smbfs", "lustre",
    "gpfs",       "beegfs",         "ceph",      "afs",          "9p",    "glusterfs",
    "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "panfs", "orangefs"};

// What compiled or loaded code expects of the driver.
struct Expectation {
  std::string who;
  int major;
};

}  // namespace

Finding check_arch_pinned(const Facts& facts) {
  if (!facts.variables.arch_list.empty())
    return ok(fmt::format("TORCH_CUDA_ARCH_LIST={}", facts.variables.arch_list));
  if (!facts.gpu.archs.empty()) return ok(fmt::format("from the GPU: {}", fitting_arch(facts)));
  std::string fix = fmt::format("export TORCH_CUDA_ARCH_LIST='{}'", fitting_arch(facts));
  if (!facts.torch.found() || facts.torch.cuda.empty())
    return ok("no GPU: kiln builds for 8.0 and later");
  return warn(
      "no GPU and no TORCH_CUDA_ARCH_LIST: torch.utils.cpp_extension raises IndexError; kiln "
      "builds for 8.0",
      fix, Cure::Environment);
}

Finding check_driver(const Facts& facts) {
  const Gpu& gpu = facts.gpu;
  if (!gpu.device_nodes && gpu.libcuda.empty())
    return ok("no NVIDIA GPU: kernels run on the engine");
  if (gpu.device_nodes && gpu.libcuda.empty())
    return fail(
        "there is a GPU, but the loader does not find libcuda.so.1: CUDA calls fail with error 35",
        "install the NVIDIA driver's libraries (apt install libnvidia-compute-580); in a "
        "container: --gpus all "
        "with NVIDIA_DRIVER_CAPABILITIES=compute,utility");
  if (!gpu.device_nodes)
    return ok(fmt::format("{}, and no GPU: kernels run on the engine", gpu.libcuda));
  int driver = major_of(gpu.driver);
  if (!driver) return warn("the driver does not report its version", "nvidia-smi");
  std::vector<Expectation> all;
  if (facts.torch.found() && !facts.torch.cuda.empty())
    all.push_back({fmt::format("torch {}", facts.torch.version), major_of(facts.torch.cuda)});
  if (facts.toolkit.nvcc.found())
    all.push_back({fmt::format("code of nvcc {}", facts.toolkit.nvcc.version),
                   major_of(facts.toolkit.nvcc.version)});
  for (const Expectation& one : all) {
    int floor = first_driver(one.major);
    if (floor && driver < floor)
      return fail(
          fmt::format("the driver is {}; {} needs {} or newer", gpu.driver, one.who, floor),
          fmt::format("update the driver to {} or newer, or use CUDA {}", floor, one.major - 1));
  }
  if (gpu.archs.empty())
    return warn(
        fmt::format("driver {} and device files exist, but nvidia-smi shows no GPU", gpu.driver),
        "run nvidia-smi; check CUDA_VISIBLE_DEVICES and dmesg");
  return ok(fmt::format("driver {}, GPU {}", gpu.driver, fitting_arch(facts)));
}

Finding check_memory(const Facts& facts) {
  const Machine& machine = facts.machine;
  if (!facts.variables.max_jobs.empty() && !asked_jobs(facts.variables))
    return fail(fmt::format("MAX_JOBS is '{}', not a number above 0", facts.variables.max_jobs),
                fmt::format("export MAX_JOBS={}", fitting_jobs(machine)), Cure::Environment);
  uint64_t memory = usable_memory_bytes(machine);
  int fits = fitting_jobs(machine);
  std::string have = gigabytes(memory);
  bool by_limit =
      machine.address_space_bytes && *machine.address_space_bytes < machine.memory_bytes;
  if (by_limit) have += " (ulimit -v)";
  std::string fix = fmt::format("export MAX_JOBS={}", fits);
  if (memory < kJobBytes)
    return warn(
        fmt::format(
            "{} of memory is available; a source with torch's headers takes up to 3 GB to compile",
            have),
        by_limit ? "ulimit -v unlimited; or kiln/op.h instead of torch's headers"
                 : fix + "; or free some memory",
        Cure::Environment);
  auto asked = asked_jobs(facts.variables);
  if (asked && static_cast<uint64_t>(*asked) * kJobBytes > memory)
    return warn(fmt::format("MAX_JOBS={} with 3 GB each is {}; {} is available", *asked,
                            gigabytes(static_cast<uint64_t>(*asked) * kJobBytes), have),
                fix, Cure::Environment);
  if (!asked && fits < machine.cores)
    return warn(fmt::format("{} cores and {}: without MAX_JOBS, cpp_extension starts more "
                            "compilers than fit in memory; kiln limits itself",
                            machine.cores, have),
                fix, Cure::Environment);
  return ok(fmt::format("{} for {} jobs", have, asked.value_or(fits)));
}

Finding check_job_threads(const Facts& facts) {
  int jobs = asked_jobs(facts.variables).value_or(facts.machine.cores);
  int threads = std::max({1, threads_in(facts.variables.nvcc_flags), facts.variables.nvcc_threads,
                          facts.project ? facts.project->nvcc_threads : 0});
  if (jobs * threads <= 2 * facts.machine.cores || jobs * threads <= 2)
    return ok(fmt::format("{} jobs x {} threads on {} cores", jobs, threads, facts.machine.cores));
  return warn(
      fmt::format("{} jobs x {} threads are {} compilers on {} cores", jobs, threads,
                  jobs * threads, facts.machine.cores),
      fmt::format("export MAX_JOBS={}{}", std::max(1, fitting_jobs(facts.machine) / threads),
                  threads > 1 ? fmt::format(", or lower --threads {}", threads) : ""),
      Cure::Environment);
}

Finding check_stale_locks(const Facts& facts) {
  std::vector<std::string> stale;
  for (const StaleLock& lock : facts.locks)
    if (!lock.owned) stale.push_back(lock.path);
  if (stale.empty())
    return facts.locks.empty() ? ok("torch_extensions has no stale locks")
                               : ok("torch_extensions is locked by a running build");
  std::vector<std::string> quoted;
  for (const std::string& path : stale) quoted.push_back(text::shell_quote(path));
  return fail(
      fmt::format("no process holds {}: cpp_extension.load of that extension waits forever{}",
                  stale[0],
                  stale.size() > 1 ? fmt::format(" (and {} more)", stale.size() - 1) : ""),
      "rm " + text::join(quoted, " "), Cure::RemoveLocks);
}

Finding check_ccache_depend(const Facts& facts) {
  if (!facts.ccache.for_nvcc) return skip("nvcc does not run through ccache");
  if (facts.ccache.depend_mode) return ok("ccache in depend mode");
  return warn(
      "nvcc runs through ccache without depend mode: after some edits it serves the old object",
      "export CCACHE_DEPEND=1", Cure::Environment);
}

Finding check_cache_hits(const Facts& facts) {
  struct Rate {
    std::string_view name;
    int64_t hits, misses;
  };
  Rate ours{"kiln's cache", facts.cache.hits, facts.cache.misses};
  Rate theirs{"ccache", facts.ccache.hits, facts.ccache.misses};
  std::vector<std::string> shown;
  for (const Rate& rate : {ours, theirs}) {
    int64_t all = rate.hits + rate.misses;
    if (all == 0) continue;
    double share = static_cast<double>(rate.hits) / static_cast<double>(all);
    bool counts = rate.name != "ccache" || facts.ccache.for_nvcc;
    if (counts && all >= kEnoughLookups && share < kPoorRate)
      return warn(fmt::format("{} had {} hits in {} lookups", rate.name, rate.hits, all),
                  rate.name == "ccache"
                      ? "ccache --show-stats --verbose; kiln's own cache explains each miss"
                      : "kiln build --explain");
    shown.push_back(fmt::format("{} {:.0f} % of {}", rate.name, 100 * share, all));
  }
  return shown.empty() ? ok("no lookups yet") : ok(text::join(shown, ", "));
}

Finding check_cache_folder(const Facts& facts) {
  const CacheFolder& cache = facts.cache;
  if (cache.folder.empty())
    return cache.refused.empty()
               ? warn("KILN_CACHE_DIR is off: every clean build compiles everything",
                      "unset KILN_CACHE_DIR")
               : fail(cache.refused, cache.fix);
  if (!cache.refused.empty())
    return fail(fmt::format("{} is not used: {}", cache.folder, cache.refused), cache.fix,
                Cure::CacheFolder);
  std::string elsewhere = "export KILN_CACHE_DIR to a folder that you own on a local disk";
  if (!cache.writable)
    return fail(fmt::format("{} cannot be written: {}", cache.folder, cache.why_not_writable),
                elsewhere, Cure::CacheFolder);
  if (cache.free_bytes < kLeastFreeBytes)
    return warn(fmt::format("{} has {} of space left", cache.folder, gigabytes(cache.free_bytes)),
                "kiln cache prune, or " + elsewhere);
  for (const char* kind : kNetworkDisks)
    if (cache.file_system == kind)
      return warn(fmt::format("{} is on a network disk ({}): hits are slow and locks unreliable",
                              cache.folder, kind),
                  elsewhere);
  return ok(fmt::format("{}, {} free", cache.folder, gigabytes(cache.free_bytes)));
}

Finding check_timed_compile(const Facts& facts) {
  // A small kernel with kiln/op.h takes about 1.2 s of nvcc on one core; a laptop may take three
  // times that.
  constexpr double kSlowColdS = 6, kSlowCachedS = 1.0;
  if (!facts.timed || !facts.timed->ran) return skip("not requested");
  const TimedCompile& timed = *facts.timed;
  if (!timed.trouble.empty()) return fail(timed.trouble, timed.trouble_fix);
  std::string times = fmt::format("cold {}, cached {}", text::duration(timed.cold_s),
                                  text::duration(timed.cached_s));
  bool busy = facts.machine.load > 1.5 * facts.machine.cores;
  bool slow = timed.cold_s > kSlowColdS || timed.cached_s > kSlowCachedS;
  if (!slow && timed.cached_s < timed.cold_s) return ok(times);
  if (busy)
    return ok(fmt::format("{}; the machine is busy (load {:.0f} on {} cores), so it is not judged",
                          times, facts.machine.load, facts.machine.cores));
  if (timed.cold_s > kSlowColdS)
    return warn(fmt::format("{}: a small kernel should compile in under {} s", times, kSlowColdS),
                "kiln build --html shows where the time goes; a slow disk or CPU limit is the "
                "usual cause");
  return warn(fmt::format("{}: the second build should come from the cache in under {} s", times,
                          kSlowCachedS),
              "kiln build --explain; kiln cache");
}

}  // namespace kiln::doctor
