// SPDX-License-Identifier: Apache-2.0
// Where are those of torch's own headers that cost little, without the others? In a folder of
// links: torch's include folder itself would answer for every name that the compat headers lack,
// and give a source both kinds of tensors.
#pragma once

#include "build/plan/plan.h"

namespace kiln::build {

// The header that brings pybind11 itself (leaks.def says who needs it).
inline constexpr std::string_view kPybindHeader = "kiln/compat/pybind.h";

// The ops that few sources name.
inline constexpr std::string_view kMoreOpsHeader = "kiln/compat/more_ops.h";
// Functions of complex numbers: in CUDA sources they cost what thrust's header does.
inline constexpr std::string_view kComplexHeader = "kiln/compat/complex_math.h";

bool is_light_header(std::string_view name);
// A header that a source includes, or is given by the names it uses (leaks.def), and that includes
// torch's own.
bool needs_light_headers(std::string_view name);
// Of torch's stable C++ API: it comes before the compat headers, whose small types it replaces.
bool is_stable_header(std::string_view name);

Result<fs::path> make_light_folder(const fs::path& torch_package, const World& world);

}  // namespace kiln::build
