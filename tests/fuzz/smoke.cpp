// SPDX-License-Identifier: Apache-2.0
// Does a fixed set of damaged inputs pass through without a crash? The corpus is tests/ptx; each
// input is cut, and changed at places that a seeded generator picks, so that every run does the
// same.
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "damage.h"
#include "targets.h"

namespace {

using Target = bool (*)(const uint8_t*, size_t);

bool feed(Target target, const std::string& input) {
  return target(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " TESTS/PTX ROUNDS\n";
    return 2;
  }
  int rounds = std::stoi(argv[2]);
  std::mt19937 random(20261);
  size_t inputs = 0, launched = 0;
  const std::vector<std::string> corpus = kiln::fuzz::ptx_corpus(argv[1]);
  if (corpus.empty()) {
    std::cerr << "no corpus under " << argv[1] << "\n";
    return 1;
  }
  for (const std::string& text : corpus) {
    if (!feed(kiln::fuzz::ptx, text)) {
      std::cerr << "an undamaged input does not run:\n" << text;
      return 1;
    }
    for (int i = 0; i < rounds; ++i, ++inputs)
      launched += feed(kiln::fuzz::ptx, kiln::fuzz::mutated(text, random));
  }
  std::cout << inputs << " damaged inputs, " << launched
            << " of them still ran as kernels, no crash\n";
  // Were nearly all refused at the door, the decoder and the engine would not have been tried.
  return launched * 20 >= corpus.size() * static_cast<size_t>(rounds) ? 0 : 1;
}
