// SPDX-License-Identifier: Apache-2.0
// What do the environment variables ask of the engine?
#include "engine/cudart/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "engine/memory/fill.h"

namespace kiln::engine {
namespace {

uint64_t number_in(const char* text) { return std::strtoull(text, nullptr, 0); }

// Compiling a kernel takes about as long as interpreting this many of its Ops.
constexpr uint64_t kCompileAfter = 100'000;

uint64_t compile_after(std::string_view asked) {
  if (asked == "0") return Settings{}.compile_after;  // never
  return asked == "always" || asked == "alone" ? 0 : kCompileAfter;
}

}  // namespace

// One pass over all variables: every launch reads them, and each getenv() would be a pass of its
// own.
Environment environment() {
  Environment out;
  for (char** at = environ; at && *at; ++at) {
    constexpr std::string_view kPrefix = "KILN_ENGINE_", kSanitize = "KILN_SANITIZE";
    if ((*at)[0] != 'K') continue;
    const bool sanitize = std::strncmp(*at, kSanitize.data(), kSanitize.size()) == 0;
    if (!sanitize && std::strncmp(*at, kPrefix.data(), kPrefix.size()) != 0) continue;
    const char* const name = *at + (sanitize ? kSanitize : kPrefix).size();
    const char* value = nullptr;
    auto is = [&](std::string_view name_and_equals) {
      if (std::strncmp(name, name_and_equals.data(), name_and_equals.size()) != 0) return false;
      value = name + name_and_equals.size();
      return true;
    };
    if (sanitize) {
      if (is("=")) out.sanitize = value;
      if (is("_FOLDER=")) out.sanitize_folder = value;
      continue;
    }
    if (is("THREADS=")) out.threads = static_cast<uint32_t>(number_in(value));
    if (is("STEP_LIMIT=")) out.step_limit = number_in(value);
    if (is("MEMORY_MB=")) out.memory_mb = number_in(value);
    if (is("FILL=")) out.fill_with_zeros = std::string_view(value) == "zero";
    if (is("SCHEDULE=")) out.schedule = number_in(value);
    if (is("ACCESSES=")) out.accesses = value;
    if (is("ACCESSES_LIMIT=")) out.accesses_limit = number_in(value);
    if (is("LINES=")) out.lines = value;
    if (is("COUNTERS=")) out.counters = value;
    if (is("CACHES=")) out.caches = value;
    if (is("FIDELITY=")) out.fidelity = number_in(value) != 0;
    if (is("LEVEL=")) out.level = value;
    if (is("COMPILE=")) out.compile = value;
  }
  return out;
}

Settings settings() {
  const Environment asked = environment();
  return {asked.threads,
          asked.step_limit,
          asked.memory_mb ? asked.memory_mb << 20 : default_memory_limit(),
          asked.fill_with_zeros ? 0 : kJunk,
          asked.schedule,
          compile_after(asked.compile),
          asked.compile == "alone"};
}

}  // namespace kiln::engine
