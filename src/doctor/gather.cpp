// SPDX-License-Identifier: Apache-2.0
// What is this machine like: processors, memory, variables?
#include "doctor/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "doctor/advice.h"
#include "project/setup_folder.h"
#include "sys/libc.h"
#include "sys/machine.h"

namespace kiln::doctor {

namespace {

constexpr double kPatienceS = 10;

constexpr const char* this_cpu() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "";
#endif
}

void gather_limits(const Outside& outside, Machine& machine) {
  auto read = outside.files.read("/proc/self/limits");
  std::string limits = read ? *read : "";
  for (std::string_view line : text::lines(limits)) {
    constexpr std::string_view kName = "Max address space";
    if (!line.starts_with(kName)) continue;
    auto words = text::split_any(line.substr(kName.size()), " ");
    if (words.empty()) continue;
    if (auto bytes = text::to_int(words[0]))
      machine.address_space_bytes = static_cast<uint64_t>(*bytes);
  }
  auto load = outside.files.read("/proc/loadavg");
  if (load) {
    // "18.44 ...": whole and hundredths
    auto words = text::split_any(*load, " .");
    if (words.size() > 1) machine.load = static_cast<double>(text::to_int(words[0]).value_or(0));
  }
}

Variables gather_variables(const sys::Environment& env) {
  Variables out;
  out.arch_list = env.get("TORCH_CUDA_ARCH_LIST").value_or("");
  out.max_jobs = env.get("MAX_JOBS").value_or("");
  for (const char* name : {"NVCC", "PYTORCH_NVCC", "CUDA_NVCC_EXECUTABLE"})
    if (out.nvcc.empty()) out.nvcc = env.get(name).value_or("");
  out.nvcc_flags =
      env.get("NVCC_PREPEND_FLAGS").value_or("") + " " + env.get("NVCC_APPEND_FLAGS").value_or("");
  out.cxx_flags = env.get("CXXFLAGS").value_or("");
  out.nvcc_threads =
      static_cast<int>(text::to_int(env.get("NVCC_THREADS").value_or("")).value_or(0));
  out.library_path = env.get("LD_LIBRARY_PATH").value_or("");
  return out;
}

void gather_cudarts(const Outside& outside, int process, Facts& facts) {
  for (std::string_view folder : text::split_any(facts.variables.library_path, ":;")) {
    for (const std::string& name : outside.files.list(folder)) {
      if (!name.starts_with("libcudart.so.")) continue;
      std::string path = (sys::fs::path(folder) / name).string();
      facts.cudarts.push_back({path, "LD_LIBRARY_PATH", major_of(name)});
    }
  }
  if (!process) return;
  auto read = outside.files.read(fmt::format("/proc/{}/maps", process));
  std::string maps = read ? *read : "";
  for (std::string_view line : text::lines(maps)) {
    size_t slash = line.find('/');
    if (slash == line.npos) continue;
    std::string path(line.substr(slash));
    std::string name = path.substr(path.rfind('/') + 1);
    bool seen = std::any_of(facts.cudarts.begin(), facts.cudarts.end(), [&](const Cudart& one) {
      return one.path == path && one.from.starts_with("process");
    });
    if (name.starts_with("libcudart.so") && !seen)
      facts.cudarts.push_back({path, fmt::format("process {}", process), major_of(name)});
  }
}

}  // namespace

Answer ask(const Outside& outside, std::vector<std::string> words) {
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  spec.env = outside.env;
  spec.limit_s = kPatienceS;
  auto result = outside.processes.run(spec);
  if (!result) return {"", result.error().why};
  if (result->timed_out) return {"", fmt::format("it did not answer within {:.0f} s", kPatienceS)};
  if (result->exit_code != 0) {
    std::string_view first = text::trim(result->out);
    first = first.substr(0, first.find('\n'));
    return {"", fmt::format("it ended with {}{}{}", result->exit_code, first.empty() ? "" : ": ",
                            first.substr(0, 200))};
  }
  return {std::move(result->out), ""};
}

std::string version_in(std::string_view text) {
  auto digit = [&](size_t at) { return at < text.size() && is_digit(text[at]); };
  for (size_t at = 0; at < text.size(); ++at) {
    if (!digit(at) || (at > 0 && (is_letter_or_digit(text[at - 1]) || text[at - 1] == '.')))
      continue;
    size_t end = at;
    while (digit(end) || (end < text.size() && text[end] == '.' && digit(end + 1))) ++end;
    if (text.substr(at, end - at).find('.') != text.npos)
      return std::string(text.substr(at, end - at));
  }
  return "";
}

std::string search_path(const sys::Environment& env) {
  return env.get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
}

Facts gather_machine(const Outside& outside, int process) {
  Facts facts;
  facts.machine.cpu = this_cpu();
  facts.machine.glibc = sys::glibc_version();
  facts.machine.cores = sys::usable_cores(outside.files);
  facts.machine.memory_bytes = sys::available_memory_bytes(outside.files);
  gather_limits(outside, facts.machine);
  facts.variables = gather_variables(outside.env);
  facts.setup_folder = project::setup_folder(outside.env).string();
  facts.setup_done =
      !facts.setup_folder.empty() && outside.files.state(facts.setup_folder + "/env.sh").is_file();
  gather_python(outside, facts);
  gather_programs(outside, facts);
  gather_gpu(outside, facts);
  gather_caches(outside, facts);
  gather_cudarts(outside, process, facts);
  return facts;
}

}  // namespace kiln::doctor
