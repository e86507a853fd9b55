// SPDX-License-Identifier: Apache-2.0
// What can be told from a source's text before it is compiled?
#pragma once

#include <string_view>
#include <vector>

#include "sys/files.h"

namespace kiln::build {

struct SourceFacts {
  // A lambda marked __device__ or __host__. Never missed in the text looked at; a false alarm only costs time:
  // --expt-extended-lambda makes nvcc include <functional>, 0.6 s of 1.6 s for a small kernel (nvcc 13.0).
  bool extended_lambda = false;
  bool defines_op = false;    // KILN_OP(
  bool defines_main = false;  // int main(
};

SourceFacts scan_text(std::string_view text);

// The source and what it includes by "name", found beside the file or in `include_folders`; <name> too where those have
// it.
SourceFacts scan_source(const sys::Files& files, const sys::fs::path& source,
                        const std::vector<sys::fs::path>& include_folders);

}  // namespace kiln::build
