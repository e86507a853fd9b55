// SPDX-License-Identifier: Apache-2.0
// How do the files of tests/ptx become modules and recipes?
#include "ptx_corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "ptx/parser.h"

namespace kiln::fuzz {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A file of tests/ptx as a whole module: its head says which registers the body uses.
std::string module_of(const std::string& text) {
  std::string registers, outside, body, word, name, type;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    words >> word >> word >> name >> type;
    if (line.rfind("// in ", 0) == 0 || line.rfind("// out ", 0) == 0 ||
        line.rfind("// reg ", 0) == 0) {
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
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + outside +
         ".visible .entry k(.param .u64 memory)\n{\n" + registers + common + "{\n" + body +
         "}\nret;\n}\n";
}

// Labels, functions and variables are the generator's own affair.
bool is_free_standing(const ptx::Instruction& ins) {
  for (std::string_view mnemonic : {"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "kiln"}) {
    if (ins.mnemonic == mnemonic) return false;
  }
  const auto names = [](const auto& self, const ptx::Operand& o) -> bool {
    if (o.kind == ptx::OperandKind::Symbol ||
        (o.kind == ptx::OperandKind::Address && !o.name.empty()))
      return true;
    return std::any_of(o.elements.begin(), o.elements.end(),
                       [&](const ptx::Operand& e) { return self(self, e); });
  };
  return std::none_of(ins.operands.begin(), ins.operands.end(),
                      [&](const ptx::Operand& o) { return names(names, o); });
}

}  // namespace

std::vector<std::string> ptx_corpus(const std::string& tests_ptx) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(tests_ptx)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tests_ptx)) {
      if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());  // the same numbers choose the same files on every machine
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::string text = read_file(path);
    if (text.find(".version") == text.npos) text = module_of(text);
    corpus.push_back(std::move(text));
  }
  return corpus;
}

Recipes::Recipes(const std::string& tests_ptx) {
  constexpr uint32_t kPerForm = 6;
  std::map<uint32_t, uint32_t> seen;
  for (std::string& text : ptx_corpus(tests_ptx)) {
    Kept& kept = kept_.emplace_back();
    kept.text = std::move(text);
    auto module = ptx::parse_module(kept.text);
    if (!module || !module->find("k")) continue;
    kept.module = std::move(*module);
    auto body = ptx::parse_body(kept.module, *kept.module.find("k"));
    if (!body) continue;
    kept.body = std::move(*body);
    for (const ptx::Instruction& ins : kept.body.instructions) {
      auto match = ptx::match_form(ins);
      if (!match || !is_free_standing(ins) || ++seen[match->form] > kPerForm) continue;
      recipes_.push_back({match->form, &ins, &kept.body});
    }
  }
  forms_ = seen.size();
}

}  // namespace kiln::fuzz
