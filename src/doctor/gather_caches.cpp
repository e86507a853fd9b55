// SPDX-License-Identifier: Apache-2.0
// Which GPU and driver are here, and where are results of builds kept?
#include <algorithm>
#include <set>

#include "base/text.h"
#include "build/cache/cache.h"
#include "doctor/gather.h"
#include "inspect/loader.h"
#include "project/gpu.h"
#include "sys/access.h"
#include "sys/clock.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

constexpr const char* kDevices[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};

std::string find_libcuda(const Outside& outside) {
  std::string search = outside.env.get("LD_LIBRARY_PATH").value_or("");
  for (std::string_view folder : text::split_any(search, ":;"))
    if (outside.files.state(path(folder) / "libcuda.so.1").is_file())
      return (path(folder) / "libcuda.so.1").string();
  if (auto cache = outside.files.read("/etc/ld.so.cache")) {
    auto known = inspect::parse_loader_cache(std::as_bytes(std::span(*cache)));
    auto found = known.find("libcuda.so.1");
    if (found != known.end())
      for (const std::string& file : found->second)
        if (outside.files.state(file).is_file()) return file;
  }
  // The folders that the loader knows without its cache, and Windows' under WSL.
  for (const char* folder : {"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/lib/wsl/lib"})
    if (outside.files.state(path(folder) / "libcuda.so.1").is_file())
      return (path(folder) / "libcuda.so.1").string();
  return "";
}

bool is_number(std::string_view name) { return text::to_int(name).has_value(); }

// torch's FileBaton keeps its lock file open for as long as it holds it.
std::set<std::string> open_files(const Outside& outside, const std::vector<StaleLock>& wanted) {
  std::set<std::string> open;
  for (const std::string& process : outside.files.list("/proc")) {
    if (!is_number(process)) continue;
    path folder = path("/proc") / process / "fd";
    for (const std::string& fd : outside.files.list(folder)) {
      auto target = outside.files.real_path(folder / fd);
      if (!target) continue;
      for (const StaleLock& lock : wanted)
        if (*target == path(lock.path)) open.insert(lock.path);
    }
  }
  return open;
}

void find_locks(const Outside& outside, const path& folder, int depth,
                std::vector<StaleLock>& out) {
  for (const std::string& name : outside.files.list(folder)) {
    path file = folder / name;
    sys::FileState state = outside.files.state(file);
    if (state.is_directory && depth > 0) find_locks(outside, file, depth - 1, out);
    if (name != "lock" || !state.is_file()) continue;
    auto real = outside.files.real_path(file);
    double age = static_cast<double>(sys::wall_ns() - state.mtime_ns) / 1e9;
    out.push_back({(real ? *real : file).string(), false, age});
  }
}

path torch_extensions(const sys::Environment& env) {
  if (auto named = env.get("TORCH_EXTENSIONS_DIR")) return *named;
  if (auto cache = env.get("XDG_CACHE_HOME")) return path(*cache) / "torch_extensions";
  if (auto home = env.get("HOME")) return path(*home) / ".cache/torch_extensions";
  return {};
}

}  // namespace

std::string file_system_of(std::string_view mounts, std::string_view where) {
  std::string kind;
  size_t longest = 0;
  for (std::string_view line : text::lines(mounts)) {
    auto words = text::split(line, ' ');
    if (words.size() < 3) continue;
    std::string point = text::replace_all(words[1], "\\040", " ");
    bool holds =
        point == "/" || where == point || (where.starts_with(point) && where[point.size()] == '/');
    if (!holds || point.size() < longest) continue;
    longest = point.size();
    kind = std::string(words[2]);
  }
  return kind;
}

void gather_gpu(const Outside& outside, Facts& facts) {
  Gpu& gpu = facts.gpu;
  gpu.device_nodes = std::any_of(std::begin(kDevices), std::end(kDevices), [&](const char* device) {
    return outside.files.state(device).exists;
  });
  gpu.archs = project::gpu_archs(outside.files, outside.processes, outside.env);
  gpu.libcuda = find_libcuda(outside);
  if (auto version = outside.files.read("/proc/driver/nvidia/version")) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul ..."
    for (std::string_view line : text::lines(*version))
      if (line.starts_with("NVRM") && gpu.driver.empty()) gpu.driver = version_in(line);
  }
  if (!gpu.driver.empty() || !gpu.device_nodes) return;
  path tool = sys::find_program(outside.files, "nvidia-smi",
                                search_path(outside.env) + ":/usr/lib/wsl/lib");
  if (!tool.empty())
    gpu.driver = version_in(
        ask(outside, {tool.string(), "--query-gpu=driver_version", "--format=csv,noheader"}).text);
}

void gather_caches(const Outside& outside, Facts& facts) {
  CacheFolder& cache = facts.cache;
  auto place = build::cache_place(outside.env);
  if (!place) {
    cache.refused = place.error().what + ": " + place.error().why;
    cache.fix = place.error().fix;
  } else if (!place->folder.empty()) {
    cache.folder = place->folder.string();
    cache.refused = place->refused;
    cache.fix = place->fix;
    Status writable = sys::may_write(outside.files, place->folder);
    cache.writable = static_cast<bool>(writable);
    if (!writable) cache.why_not_writable = writable.error().why;
    path there = sys::nearest_existing(outside.files, place->folder);
    cache.free_bytes = outside.files.free_bytes(there);
    auto real = outside.files.real_path(there);
    if (auto mounts = outside.files.read("/proc/self/mounts"))
      cache.file_system = file_system_of(*mounts, real ? real->string() : cache.folder);
    build::CacheCounts counts = build::read_counts(outside.files, place->folder);
    cache.hits = counts.local_hits + counts.remote_hits;
    cache.misses = counts.misses;
  }
  if (path folder = torch_extensions(outside.env); !folder.empty())
    find_locks(outside, folder, 2, facts.locks);
  if (facts.locks.empty()) return;
  std::set<std::string> open = open_files(outside, facts.locks);
  for (StaleLock& lock : facts.locks) lock.owned = open.contains(lock.path);
}

}  // namespace kiln::doctor
