// SPDX-License-Identifier: Apache-2.0
// Which instructions of these PTX files does the engine not run? Prints each form once, with the
// first line it stands on, and how many kernels it keeps from running; ends with 1 when there is
// one.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "engine/decode/image.h"
#include "ptx/forms.h"
#include "ptx/parser.h"

namespace kiln::engine {
namespace {

struct Seen {
  std::string first;
  uint32_t times = 0;
};

int check(int count, char** paths) {
  std::map<std::string, Seen> unknown;
  uint32_t kernels = 0, good = 0;
  for (int i = 0; i < count; ++i) {
    std::ifstream file(paths[i]);
    std::stringstream text;
    text << file.rdbuf();
    const std::string held = text.str();
    auto note = [&](const std::string& what, uint32_t line) {
      Seen& seen = unknown[what];
      if (seen.times++ == 0) seen.first = std::string(paths[i]) + ":" + std::to_string(line);
    };
    auto module = ptx::parse_module(held);
    if (!module) {
      note(format(module.error()), 0);
      continue;
    }
    for (const ptx::Function& function : module->functions) {
      if (function.body_text.empty()) continue;
      auto body = ptx::parse_body(*module, function);
      if (!body) {
        note(format(body.error()), function.line);
        continue;
      }
      for (const ptx::Instruction& ins : body->instructions) {
        if (!ptx::match_form(ins)) note(ptx::why_unknown(ins), ins.line);
      }
    }
    Heap heap;
    Image image(heap);
    if (auto status = image.load(held); !status) {
      note(format(status.error()), 0);
      continue;
    }
    for (const ptx::Function& function : module->functions) {
      if (!function.is_entry || function.body_text.empty()) continue;
      ++kernels;
      auto program = image.kernel(function.name);
      if (program) {
        ++good;
      } else {
        note(program.error().why, 0);
      }
    }
  }
  for (const auto& [what, seen] : unknown)
    std::printf("%6u  %s  (%s)\n", seen.times, what.c_str(), seen.first.c_str());
  std::printf("%u of %u kernels can run\n", good, kernels);
  return good == kernels ? 0 : 1;
}

}  // namespace
}  // namespace kiln::engine

int main(int argc, char** argv) { return kiln::engine::check(argc - 1, argv + 1); }
