// SPDX-License-Identifier: Apache-2.0
// How is PTX generated from its grammar? Modules with variables, functions and kernels; bodies with
// scopes, labels, loops, calls and any form of instruction; and the same broken at a place that the
// bytes choose.
#pragma once

#include <string>

#include "choices.h"
#include "ptx_corpus.h"

namespace kiln::fuzz {

struct Knobs {
  uint32_t kernels = 2;
  uint32_t functions = 2;
  uint32_t statements = 24;   // of a body, those of its scopes included
  uint32_t depth = 8;         // of braces
  uint32_t deepest = 200000;  // levels that a broken text may nest
  bool may_break = true;      // one text in four is broken; false: none
};

struct Generated {
  std::string text;
  bool broken = false;  // on purpose: it need not parse
  bool repeatable =
      false;  // no clock, no address of a variable or function: two runs leave the same bytes
};

Generated generate_ptx(Choices& choices, const Recipes& recipes, const Knobs& knobs);

}  // namespace kiln::fuzz
