// SPDX-License-Identifier: Apache-2.0
// Is damaged PTX read without a crash, and is what was printed read again as the same text? The
// parser and the printer alone: these are built under ASan and UBSan in a tenth of the time that
// the engine takes.
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "damage.h"
#include "ptx/parser.h"
#include "ptx/print.h"
#include "ptx_corpus.h"

namespace {

// Empty: it cannot be read, or some body cannot.
std::optional<std::string> printed(const std::string& text) {
  auto module = kiln::ptx::parse_module(text);
  if (!module) return std::nullopt;
  auto out = kiln::ptx::print(*module);
  return out ? std::optional(*out) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " TESTS/PTX ROUNDS\n";
    return 2;
  }
  const int rounds = std::stoi(argv[2]);
  std::mt19937 random(20263);
  size_t inputs = 0, read = 0;
  for (const std::string& text : kiln::fuzz::ptx_corpus(argv[1])) {
    for (int i = 0; i < rounds; ++i, ++inputs) {
      const std::string damaged = kiln::fuzz::mutated(text, random);
      const auto once = printed(damaged);
      if (!once) continue;
      ++read;
      if (printed(*once) == once) continue;
      std::cerr << "what was printed is not read as the same\n---- the text\n"
                << damaged << "\n---- printed\n"
                << *once << "\n";
      return 1;
    }
  }
  std::cout << inputs << " damaged texts, " << read << " of them read and printed, no crash\n";
  // Were nearly all refused, or nearly none, one half would not have been tried.
  return read * 20 >= inputs && inputs > read ? 0 : 1;
}
