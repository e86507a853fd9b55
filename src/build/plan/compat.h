// SPDX-License-Identifier: Apache-2.0
// Which headers does a source get that includes torch's: kiln's compat headers, or torch's own?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan/plan.h"

namespace kiln::build {

// What the compat headers turned out not to have.
struct Lack {
  std::string source;  // as the user wrote it
  std::string place;   // "add.cu(12)"
  std::string symbol;  // "class_", "torch/csrc/autograd/custom_function.h"
  bool mixed = false;  // the symbol is of an object that was compiled with torch's own headers
};

// A folder of torch's own headers, as include_paths() of torch.utils.cpp_extension names them.
// Together with the compat headers they would give one source both kinds of tensors.
bool holds_torchs_headers(const sys::Files& files, const fs::path& folder);

// Sets plan.torch and what follows from it. The compat headers, unless the request says never, or
// an earlier build found that one of the sources needs more.
Status choose_torch_headers(Plan& plan, const Request& request, const World& world,
                            bool torchs_own);

// What a failed build with the compat headers lacked; nothing where the error is the source's own.
std::optional<Lack> what_compat_lacks(const Error& error, const Plan& plan);

// The linker leaves open what a shared library lacks. A name over torch's types that is left open
// in a library of the compat headers was compiled with the other kind, or not at all; the error
// says which.
Status check_open_names(const Plan& plan, std::string_view library);

void remember_lack(const Plan& plan, const World& world, const Lack& lack);

// The sentence for the person who waits.
std::string fallback_note(const Lack& lack);

// Flags for compilers and linker.
std::vector<std::string> torch_compile_flags(const Plan& plan, bool cuda);
std::vector<std::string> torch_link_words(const Plan& plan);

}  // namespace kiln::build
