// SPDX-License-Identifier: Apache-2.0
// How do the views read as JSON? docs/reference/inspect-json.md names every field.
#pragma once

#include <functional>
#include <string_view>

#include "base/json.h"
#include "inspect/analysis.h"

namespace kiln::inspect {

inline constexpr std::string_view kJsonSchema = "kiln.inspect/1";

Json overview_json(const Analysis& analysis, const std::vector<uint32_t>& gpus);
Json kernel_json(const KernelRow& row, Demangler& demangle, uint32_t block_threads);

// Where the text goes, piece by piece: the kernels of a large library as one value would take
// gigabytes.
using Sink = std::function<void(std::string_view)>;
// `value`, an object, with the list of kernels as its last member.
void write_with_kernels(const Json& value, const Analysis& analysis, const std::string& filter,
                        uint32_t block_threads, const Sink& sink);

}  // namespace kiln::inspect
