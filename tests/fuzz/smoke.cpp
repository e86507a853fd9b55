// SPDX-License-Identifier: Apache-2.0
// Does a fixed set of damaged inputs pass through without a crash? The corpus is tests/ptx and a fat binary made here;
// each input is cut, and changed at places that a seeded generator picks, so that every run does the same.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "targets.h"

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

using Target = bool (*)(const uint8_t*, size_t);

bool feed(Target target, const std::string& input) {
  return target(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string mutated(std::string input, std::mt19937& random) {
  static const std::string kWords[] = {"%r1", "{", "}",   "[",  "0xffffffffffffffff", ".u64", ".v4", "%rd1", ",",
                                       ";",   "-", ".b8", "ret"};
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

// A file of tests/ptx as a whole module: its head says which registers the body uses.
std::string module_of(const std::string& text) {
  std::string registers, outside, body, word, name, type;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    words >> word >> word >> name >> type;
    if (line.rfind("// in ", 0) == 0 || line.rfind("// out ", 0) == 0 || line.rfind("// reg ", 0) == 0) {
      registers += ".reg " + type.substr(0, type.find(':')) + " " + name + ";\n";
    } else if (line.rfind("// outside ", 0) == 0) {
      outside += line.substr(11) + "\n";
    } else if (line.rfind("//", 0) != 0) {
      body += line + "\n";
    }
  }
  // The registers that every file may use: tests/unit/engine/ptx_case.h.
  const std::string common =
      ".reg .b64 %at, %base, %scratch, %map;\n.reg .b32 %lane;\nld.param.u64 %base, [memory];\n"
      "mov.u64 %scratch, %base;\nmov.u64 %map, %base;\nmov.u32 %lane, %tid.x;\n";
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + outside + ".visible .entry k(.param .u64 memory)\n{\n" +
         registers + common + "{\n" + body + "}\nret;\n}\n";
}

std::string sample_fatbin() {
  std::string out(16 + 64 + 64, '\0');
  auto put = [&](size_t at, auto value) { std::memcpy(out.data() + at, &value, sizeof value); };
  put(0, uint32_t{0xBA55ED50});
  put(4, uint16_t{1});
  put(6, uint16_t{16});
  put(8, uint64_t{128});
  put(16, uint16_t{1});
  put(20, uint32_t{64});
  put(24, uint64_t{64});
  put(32, uint32_t{40});
  put(16 + 0x28, uint64_t{0x8000});
  put(16 + 0x38, uint64_t{4096});
  return out;
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
  std::vector<std::string> corpus;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.path().extension() != ".ptx") continue;
    std::string text = read_file(entry.path());
    if (text.find(".version") == text.npos) text = module_of(text);
    corpus.push_back(std::move(text));
  }
  if (corpus.empty()) {
    std::cerr << "no corpus under " << argv[1] << "\n";
    return 1;
  }
  for (const std::string& text : corpus) {
    if (!feed(kiln::fuzz::ptx, text)) {
      std::cerr << "an undamaged input does not run:\n" << text;
      return 1;
    }
    for (int i = 0; i < rounds; ++i, ++inputs) launched += feed(kiln::fuzz::ptx, mutated(text, random));
  }
  std::string container = sample_fatbin();
  for (int i = 0; i < rounds * 100; ++i, ++inputs) feed(kiln::fuzz::fatbin, mutated(container, random));
  std::cout << inputs << " damaged inputs, " << launched << " of them still ran as kernels, no crash\n";
  // Were nearly all refused at the door, the decoder and the engine would not have been tried.
  return launched * 20 >= corpus.size() * static_cast<size_t>(rounds) ? 0 : 1;
}
