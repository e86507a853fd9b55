// SPDX-License-Identifier: Apache-2.0
// What does a code generator need for a piece of code? Memory for its lists, which the system has
// to clear: to begin with what the last piece left behind takes a fifth off the time.
#pragma once

#include <asmjit/core.h>

#include <memory>
#include <vector>

#include "engine/memory/spare.h"

namespace kiln::engine {

// Of very long code the memory goes back to the system.
constexpr size_t kLongestKept = 64 << 10;

// With asmjit's own lists.
template <class Compiler>
struct Generator {
  asmjit::CodeHolder code;
  Compiler compiler;

  static std::unique_ptr<Generator> take() {
    std::unique_ptr<Generator> one = Spare<Generator>::take();
    one->code.init(asmjit::Environment::host());
    one->code.attach(&one->compiler);
    return one;
  }
  static void give_back(std::unique_ptr<Generator> one) {
    if (one->code.codeSize() > kLongestKept) return;
    one->code.reset(asmjit::ResetPolicy::kSoft);
    Spare<Generator>::give_back(std::move(one));
  }
  // The code has neither calls nor addresses of its own: it is position-independent.
  bool finish(std::vector<std::byte>* bytes) {
    if (compiler.finalize() != asmjit::kErrorOk || code.flatten() != asmjit::kErrorOk ||
        code.resolveUnresolvedLinks() != asmjit::kErrorOk)
      return false;
    bytes->resize(code.codeSize());
    return code.copyFlattenedData(bytes->data(), bytes->size()) == asmjit::kErrorOk;
  }
};

}  // namespace kiln::engine
