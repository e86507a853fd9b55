// SPDX-License-Identifier: Apache-2.0
// Which headers does a source get that includes torch's: kiln's compat headers, or torch's own?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan/lacks.h"

namespace kiln::build {

// A folder of torch's own headers, as include_paths() of torch.utils.cpp_extension names them.
// Together with the compat headers they would give one source both kinds of tensors.
bool holds_torchs_headers(const sys::Files& files, const fs::path& folder);

// Sets plan.torch and what follows from it. The compat headers, unless the request says never, or
// an earlier build found that one of the sources needs more.
Status choose_torch_headers(Plan& plan, const Request& request, const World& world,
                            const HeaderChoice& choice);

// Of the Python that will load the result.
Result<fs::path> torch_package(const World& world);
// Where a build with torch's own headers looks, beyond what every build does.
Result<std::vector<fs::path>> torchs_folders(const World& world);

// The linker leaves open what a shared library lacks. A name over torch's types that is left open
// in a library of the compat headers was compiled with the other kind, or not at all; the error
// says which.
Status check_open_names(const Plan& plan, std::string_view library);

// A language among the user's flags that torch's own headers refuse: what becomes of it. May start
// Python.
std::vector<std::string> language_notes(const Plan& plan, const World& world);

// Flags for compilers and linker.
std::vector<std::string> torch_compile_flags(const Plan& plan, bool cuda);
std::vector<std::string> torch_link_words(const Plan& plan);

}  // namespace kiln::build
