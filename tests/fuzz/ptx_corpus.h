// SPDX-License-Identifier: Apache-2.0
// What do the fuzzers of PTX start from? The files of tests/ptx: every form of instruction has one
// that runs.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "ptx/forms.h"
#include "ptx/module.h"

namespace kiln::fuzz {

// Whole modules; those files that are a body alone get a head and a kernel around them. Empty: no
// such folder.
std::vector<std::string> ptx_corpus(const std::string& tests_ptx);

// An instruction that is known to decode, with the types of its registers: the generator writes
// others of its kind.
struct Recipe {
  uint32_t form = 0;  // row of instructions.def
  const ptx::Instruction* instruction = nullptr;
  const ptx::Body* body = nullptr;
};

class Recipes {
 public:
  explicit Recipes(const std::string& tests_ptx);
  const std::vector<Recipe>& all() const { return recipes_; }
  size_t forms() const { return forms_; }

 private:
  struct Kept {
    std::string text;
    ptx::Module module;
    ptx::Body body;
  };
  std::deque<Kept> kept_;
  std::vector<Recipe> recipes_;
  size_t forms_ = 0;
};

}  // namespace kiln::fuzz
