// SPDX-License-Identifier: Apache-2.0
// Does generated PTX, good and broken, pass through without a crash, and does what was printed run
// the same? Seeded: every run does the same. For libFuzzer's bytes this takes those of a generator.
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "engine/compile/facts.h"
#include "targets.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " TESTS/PTX TEXTS [SEED [DEEPEST]]\n";
    return 2;
  }
  const kiln::fuzz::Recipes recipes(argv[1]);
  const int texts = std::stoi(argv[2]);
  const unsigned seed = argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 20262;
  kiln::fuzz::Knobs knobs;
  if (argc > 4) knobs.deepest = static_cast<uint32_t>(std::stoul(argv[4]));
  size_t parsed = 0, launched = 0, compiled = 0, compared = 0;
  for (int i = 0; i < texts; ++i) {
    std::mt19937 random(seed +
                        static_cast<unsigned>(i));  // a finding names its text: TEXTS 1, SEED
    std::vector<uint8_t> bytes(64 + random() % 2000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (argc > 3) std::cerr << "seed " << seed + static_cast<unsigned>(i) << std::endl;
    const auto tried = kiln::fuzz::generated(bytes.data(), bytes.size(), recipes, knobs);
    parsed += tried.parsed;
    launched += tried.launched;
    compiled += tried.compiled;
    compared += tried.compared;
  }
  std::cout << texts << " texts of " << recipes.forms() << " forms: " << parsed << " read whole, "
            << launched << " kernels run, " << compiled << " of them compiled, " << compared
            << " texts compared with what was printed\n";
  // Were nearly all refused at the door, the decoder and the engine would not have been tried.
  const bool compiles = !kiln::engine::compiles() || compiled * 10 > launched;
  const bool tried = recipes.forms() > 200 && parsed * 2 > static_cast<size_t>(texts) &&
                     launched * 2 > static_cast<size_t>(texts) &&
                     compared * 10 > static_cast<size_t>(texts) && compiles;
  return tried ? 0 : 1;
}
