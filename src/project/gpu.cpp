// SPDX-License-Identifier: Apache-2.0
// Which GPUs does this machine have?
#include "project/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "project/own_cache.h"

namespace kiln::project {

namespace {

using sys::fs::path;

// /dev/dxg is the GPU of Windows under WSL.
constexpr const char* kDevices[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};

std::string machine_key(const sys::Files& files, const sys::Environment& env) {
  Hasher hasher;
  hasher.add_field(
      files.read("/proc/driver/nvidia/version") ? *files.read("/proc/driver/nvidia/version") : "");
  for (const std::string& gpu : files.list("/proc/driver/nvidia/gpus")) {
    auto facts = files.read(path("/proc/driver/nvidia/gpus") / gpu / "information");
    hasher.add_field(gpu).add_field(facts ? *facts : "");
  }
  hasher.add_field(env.get("CUDA_VISIBLE_DEVICES").value_or(""));
  auto boot = files.read("/proc/sys/kernel/random/boot_id");
  return hasher.add_field(boot ? *boot : "").hex();
}

std::vector<Arch> parse(std::string_view answer) {
  std::vector<Arch> archs;
  for (std::string_view word : text::split_any(answer, " \n"))
    if (auto list = parse_arch_list(word)) archs.push_back(list->ptx[0]);
  std::sort(archs.begin(), archs.end());
  archs.erase(std::unique(archs.begin(), archs.end()), archs.end());
  return archs;
}

// As the runtime and torch take it. Asked before the memory, which is that of the visible ones.
bool all_are_hidden(const sys::Environment& env) {
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  const std::string visible = env.get(kVisible).value_or("");
  return env.is_empty(kVisible) || visible == "-1" || visible == "NoDevFiles";
}

std::string ask(const sys::Files& files, sys::Processes& processes, const sys::Environment& env) {
  std::string search = env.get("PATH").value_or("/usr/bin:/bin") + ":/usr/lib/wsl/lib";
  path tool = sys::find_program(files, "nvidia-smi", search);
  if (tool.empty()) return "";
  sys::ProcessSpec spec;
  spec.arguments = {tool.string(), "--query-gpu=compute_cap", "--format=csv,noheader"};
  auto result = processes.run(spec);
  return result && result->exit_code == 0 ? result->out : "";
}

}  // namespace

std::vector<Arch> gpu_archs(sys::Files& files, sys::Processes& processes,
                            const sys::Environment& env) {
  bool may_have_gpu = std::any_of(std::begin(kDevices), std::end(kDevices),
                                  [&](const char* device) { return files.state(device).exists; });
  if (!may_have_gpu || all_are_hidden(env)) return {};
  auto cache = own_cache_folder(files, env);
  std::string key = machine_key(files, env);
  path memory = cache ? *cache / "gpu.txt" : path();
  if (cache) {
    auto content = files.read(memory);
    if (content && content->starts_with(key + "\n"))
      return parse(std::string_view(*content).substr(key.size()));
  }
  std::string answer = ask(files, processes, env);
  // A folder that cannot be written costs the next build a second, no more.
  if (cache && !answer.empty()) (void)files.write(memory, key + "\n" + answer, sys::Durable::No);
  return parse(answer);
}

}  // namespace kiln::project
