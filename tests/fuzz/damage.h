// SPDX-License-Identifier: Apache-2.0
// What is a damaged text? One that is cut, or changed at up to three places that the generator
// picks, by a byte, a word of PTX, a byte of its own.
#pragma once

#include <iterator>
#include <random>
#include <string>

namespace kiln::fuzz {

inline std::string mutated(std::string input, std::mt19937& random) {
  static const std::string kWords[] = {"%r1",  "{",   "}",    "[", "0xffffffffffffffff",
                                       ".u64", ".v4", "%rd1", ",", ";",
                                       "-",    ".b8", "ret"};
  uint32_t changes = 1 + random() % 3;
  for (uint32_t i = 0; i < changes && !input.empty(); ++i) {
    size_t at = random() % input.size();
    switch (random() % 5) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input.erase(at, 1 + random() % 8);
        break;
      case 2:
        input.insert(at, kWords[random() % std::size(kWords)]);
        break;
      case 3:
        input[at] = input[random() % input.size()];
        break;
      default:
        if (random() % 8 == 0) input.resize(at);
    }
  }
  return input;
}

}  // namespace kiln::fuzz
