// SPDX-License-Identifier: Apache-2.0
// How is untrusted PTX driven through the front end, the decoder and the engine?
#include "targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/compile/facts.h"
#include "engine/cudart/launch.h"
#include "engine/cudart/threads.h"
#include "engine/decode/image.h"
#include "engine/machine/fault.h"
#include "ptx/parser.h"
#include "ptx/print.h"

namespace kiln::fuzz {
namespace {

// How many steps a warp may take. Compiled code may count fewer: who ends within one of them only
// compiled ends within the other interpreted too, unless it never would.
constexpr const char* kSteps = "20000";
constexpr const char* kManySteps = "4000000";

void set_limits(const char* steps) {
  setenv("KILN_ENGINE_STEP_LIMIT", steps, 1);
  setenv("KILN_ENGINE_THREADS", "1", 1);
  setenv("KILN_ENGINE_FILL", "zero", 1);  // two runs are compared
}

struct Ran {
  uint32_t kernels = 0, compiled = 0;
  std::vector<uint64_t> memory;  // of all kernels, one after the other
  std::vector<int> codes;
};

// Whatever a kernel computes, it may touch nothing but this buffer. It is the same one for every
// run: addresses count.
constexpr size_t kMemoryWords = 256;
uint64_t* kernel_memory() {
  alignas(64) static uint64_t memory[kMemoryWords];
  std::memset(memory, 0, sizeof memory);
  return memory;
}

// Instructions that the whole warp executes as one read the registers of all its lanes. Those of
// lanes that a block does not have hold nothing that PTX would determine, so that warps are whole
// where such an instruction is; else the last one is not, which is where mistakes hide.
uint32_t threads_for(const std::string& text) {
  for (const char* word : {"mma", "matrix"}) {
    if (text.find(word) != text.npos) return 64;
  }
  return 40;
}

// What code is made in one launch also runs in others: of blocks of another shape, with less
// memory.
struct Setting {
  uint32_t rows = 1, shared = 1024;
  size_t words = kMemoryWords;
};
constexpr Setting kSettings[] = {{}, {1, 256, kMemoryWords / 2}, {8, 0}};
constexpr ptrdiff_t kLaunches = std::size(kSettings);

// Where a kernel that waits for ever is stopped depends on the clock.
bool was_stopped(int code) {
  return code == engine::kLaunchTimeout || code == engine::kLaunchFailure;
}

// `compile`: KILN_ENGINE_COMPILE. What can be compiled is, before the first block, or nothing is.
Ran run_all(const std::string& text, const char* compile, const char* steps = kSteps) {
  using namespace engine;
  set_limits(steps);
  setenv("KILN_ENGINE_COMPILE", compile, 1);
  Ran out;
  Device device(&process_pool);
  Image image(device.heap);
  if (!image.load(text)) return out;
  for (const ptx::Function& function : image.module().functions) {
    if (!function.is_entry || function.body_text.empty()) continue;
    for (bool rows : {false, true}) {
      Kernel kernel(image, std::string(function.name));
      auto program = kernel.program({rows, 0});
      if (!program) continue;
      for (const Setting& setting : kSettings) {
        uint64_t* memory = kernel_memory();
        std::vector<uint64_t> parameters(((*program)->parameter_bytes + 7) / 8 + 1,
                                         reinterpret_cast<uint64_t>(memory));
        std::vector<void*> arguments(function.parameters.size() + 1, parameters.data());
        KilnRegion region{memory, setting.words * 8, "memory", 1};
        KilnEngineLaunch launch{};
        launch.grid = {2, 1, 1};
        if (text.find("cluster") != text.npos) launch.cluster = {2, 1, 1};
        launch.block = {threads_for(text) / setting.rows, setting.rows, 1};
        launch.dynamic_shared_bytes = setting.shared;
        launch.arguments = arguments.data();
        launch.regions = &region;
        launch.region_count = launch.check_memory = 1;
        out.codes.push_back(launch_kernel(device, kernel, kDefaultSharedBytes, launch, rows).code);
        out.memory.insert(out.memory.end(), memory, memory + kMemoryWords);
      }
      const CompiledFacts facts = compiled_facts(**program);
      out.compiled += facts.entered > facts.missed;
      ++out.kernels;
    }
  }
  return out;
}

// In one text of three, lanes run one at a time wherever they may; not if each stores to a place of
// its own, which another one's may overlap: which comes last is not determined.
const char* how_compiled(const std::string& text) {
  const bool races = text.find("[%far],") != text.npos || text.find("[%at],") != text.npos;
  return text.size() % 3 == 0 && !races ? "alone" : "always";
}

// Did the kernel of this launch wait for ever in one of its launches?
bool may_wait(const Ran& ran, size_t launch) {
  const auto first = ran.codes.begin() + static_cast<ptrdiff_t>(launch) / kLaunches * kLaunches;
  return std::any_of(first, first + kLaunches, was_stopped);
}

// Empty: both did the same.
std::string difference(const Ran& a, const Ran& b) {
  if (a.kernels != b.kernels) return fmt::format("{} kernels, then {}", a.kernels, b.kernels);
  for (size_t i = 0; i < a.codes.size(); ++i) {
    // Where lanes wait for ever, it is not determined whether others fault before, nor what was
    // stored until then.
    const bool stopped = was_stopped(a.codes[i]) || was_stopped(b.codes[i]);
    if (a.codes[i] != b.codes[i] && !(stopped && a.codes[i] && b.codes[i]))
      return fmt::format("launch {} ended with {}, then {}", i, a.codes[i], b.codes[i]);
    if (a.codes[i] && (may_wait(a, i) || may_wait(b, i))) continue;
    for (size_t word = i * kMemoryWords; word < (i + 1) * kMemoryWords; ++word) {
      if (a.memory[word] != b.memory[word])
        return fmt::format("launch {}, word {}: {:#x}, then {:#x}", i, word % kMemoryWords,
                           a.memory[word], b.memory[word]);
    }
  }
  return "";
}

[[noreturn]] void stop(const char* why, const std::string& text, const std::string& more) {
  std::fprintf(stderr, "%s\n---- the text\n%s\n---- printed\n%s\n", why, text.c_str(),
               more.c_str());
  std::abort();
}

// Empty: some body cannot be read.
std::string printed(const std::string& text) {
  auto module = ptx::parse_module(text);
  if (!module) return "";
  auto out = ptx::print(*module);
  return out ? *out : "";
}

}  // namespace

bool ptx(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  return run_all(text, how_compiled(text)).kernels > 0;
}

Tried generated(const uint8_t* data, size_t size, const Recipes& recipes, const Knobs& knobs) {
  Choices choices(data, size);
  const Generated made = generate_ptx(choices, recipes, knobs);
  if (std::getenv("KILN_FUZZ_PRINT")) std::fprintf(stderr, "%s\n", made.text.c_str());
  Tried tried;
  const std::string once = printed(made.text);
  tried.parsed = !once.empty();
  if (!made.broken && !tried.parsed)
    stop("a text that should be good cannot be read", made.text, "");
  if (tried.parsed) {
    const std::string twice = printed(once);
    if (twice != once)
      stop("what was printed reads as something else", made.text, once + "\n---- again\n" + twice);
  }
  const char* compile = how_compiled(made.text);
  const Ran first = run_all(made.text, compile);
  tried.launched = first.kernels;
  tried.compiled = first.compiled;
  if (!tried.parsed || !made.repeatable) return tried;
  const Ran second = run_all(once, "0");
  tried.compared = true;
  std::string differs = difference(first, second);
  if (!differs.empty())
    differs = difference(run_all(made.text, compile, kManySteps), run_all(once, "0", kManySteps));
  if (!differs.empty())
    stop(("compiled as it was written and interpreted as it was printed, it differs: " + differs)
             .c_str(),
         made.text, once);
  return tried;
}

bool grammar(const uint8_t* data, size_t size) {
  static const auto* recipes = new Recipes(KILN_TEST_DATA "/ptx");
  return generated(data, size, *recipes, Knobs{}).launched > 0;
}

}  // namespace kiln::fuzz
