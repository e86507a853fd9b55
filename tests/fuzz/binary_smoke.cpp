// SPDX-License-Identifier: Apache-2.0
// Do damaged binaries pass through the readers without a crash? Each file of the corpus whole, cut,
// and changed at places that a seeded generator picks, so that every run does the same.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "binary_targets.h"

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool feed(kiln::fuzz::Target target, const std::string& input) {
  // A copy of exactly this size: reads beyond its end are seen.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  return target(bytes.data(), bytes.size());
}

std::string mutated(std::string input, std::mt19937& random) {
  static constexpr uint64_t kNumbers[] = {0,          1,          0x7f,         0xff,      0xffff,
                                          0x7fffffff, 0xffffffff, ~uint64_t{0}, 1ull << 63};
  uint32_t changes = 1 + random() % 4;
  for (uint32_t i = 0; i < changes && !input.empty(); ++i) {
    size_t at = random() % input.size();
    switch (random() % 4) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1: {
        uint64_t number = kNumbers[random() % std::size(kNumbers)];
        std::memcpy(input.data() + at, &number,
                    std::min<size_t>(1u << random() % 4, input.size() - at));
        break;
      }
      case 2:
        input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      default:
        if (random() % 8 == 0) input.resize(at);
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " CORPUS ROUNDS\n";
    return 2;
  }
  int rounds = std::stoi(argv[2]);
  std::mt19937 random(20261);
  size_t inputs = 0, files = 0;
  bool all_reached = true;
  for (const kiln::fuzz::NamedTarget& target : kiln::fuzz::binary_targets()) {
    size_t whole = 0, survived = 0;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      std::string input = read_file(entry.path());
      ++files;
      bool reached = feed(target.run, input);
      whole += reached;
      if (!reached) continue;
      for (size_t end = 0; end < input.size(); end += 1 + input.size() / 64, ++inputs)
        feed(target.run, input.substr(0, end));
      for (int i = 0; i < rounds; ++i, ++inputs)
        survived += feed(target.run, mutated(input, random));
    }
    std::cout << target.name << ": " << whole << " files read whole, " << survived
              << " damaged ones too\n";
    all_reached &= whole > 0;
  }
  std::cout << inputs << " damaged inputs, no crash\n";
  // A target that no file of the corpus gets through to the end of would test nothing.
  return files > 0 && all_reached ? 0 : 1;
}
