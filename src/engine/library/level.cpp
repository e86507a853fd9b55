// SPDX-License-Identifier: Apache-2.0
// How is the library for a level of CPU found?
#include "engine/library/level.h"

#include <dlfcn.h>

namespace kiln::engine {
namespace {

#if defined(__x86_64__) && defined(__clang__)
// __builtin_cpu_supports knows the names of levels from clang 18 on. CPUs with these features have
// the rest of the level.
bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
constexpr Level kLevels[] = {{"x86-64-v4", has_v4}, {"x86-64-v3", has_v3}};
#elif defined(__x86_64__)
constexpr Level kLevels[] = {
    {"x86-64-v4", [] { return __builtin_cpu_supports("x86-64-v4") != 0; }},
    {"x86-64-v3", [] { return __builtin_cpu_supports("x86-64-v3") != 0; }},
};
#else
// Every aarch64 has NEON.
constexpr Level kLevels[] = {{nullptr, nullptr}};
#endif

}  // namespace

std::string_view level_for(std::string_view asked) {
  for (const Level& level : kLevels) {
    if (!level.name || (!asked.empty() && asked != level.name)) continue;
    if (level.supported()) return level.name;  // an unsupported level would end the process
  }
  return "";
}

const KilnEngine* engine_of_level(std::string_view level, const void* in_library,
                                  uint32_t abi_version) {
  Dl_info own;
  if (level.empty() || !dladdr(in_library, &own) || !own.dli_fname) return nullptr;
  std::string path = own.dli_fname;
  const size_t folder = path.rfind('/');
  path = (folder == std::string::npos ? std::string() : path.substr(0, folder + 1)) +
         "libkiln_engine-" + std::string(level) + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto* table = reinterpret_cast<const KilnEngine* (*)(uint32_t)>(dlsym(library, "kiln_engine"));
  return table ? table(abi_version) : nullptr;
}

}  // namespace kiln::engine
