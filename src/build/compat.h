// SPDX-License-Identifier: Apache-2.0
// Which headers does a source get that includes torch's: kiln's compat headers, or torch's own?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan.h"

namespace kiln::build {

// What the compat headers turned out not to have.
struct Lack {
  std::string source;  // as the user wrote it
  std::string place;   // "add.cu(12)"
  std::string symbol;  // "class_", "torch/csrc/autograd/custom_function.h"
};

// Sets plan.torch and what follows from it. The compat headers, unless the request says never, or an earlier build
// found that one of the sources needs more.
Status choose_torch_headers(Plan& plan, const Request& request, const World& world, bool torchs_own);

// What a failed build with the compat headers lacked; nothing where the error is the source's own.
std::optional<Lack> what_compat_lacks(const Error& error, const Plan& plan);

void remember_lack(const Plan& plan, const World& world, const Lack& lack);
void forget_lacks(const Plan& plan, const World& world);

// The sentence for the person who waits.
std::string fallback_note(const Lack& lack);

// Flags for compilers and linker.
std::vector<std::string> torch_compile_flags(const Plan& plan, bool cuda);
std::vector<std::string> torch_link_words(const Plan& plan);

}  // namespace kiln::build
