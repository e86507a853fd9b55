// SPDX-License-Identifier: Apache-2.0
// Which SASS and PTX do the kernels of a file have, and which sources go with it?
#pragma once

#include <string>
#include <vector>

#include "inspect/analysis.h"
#include "inspect/listing.h"
#include "inspect/sources.h"
#include "results/inspect/code.h"

namespace kiln::inspect {

using results::CodeImage;
using results::CodeList;

// `filter` is searched in both; an empty one matches all.
bool name_matches(const std::string& filter, const std::string& mangled,
                  const std::string& demangled);

// The PTX images that `archs` leaves, or what cubins keep of theirs when there is none. Of each
// only the functions with `kernel` in their name; all of it when that is empty.
Result<std::vector<results::PtxText>> read_ptx(const Analysis& analysis,
                                               const std::vector<std::string>& archs,
                                               const std::string& kernel);

struct CodeOptions {
  std::vector<std::string> archs;
  std::string kernel;           // text in its name
  size_t max_instructions = 0;  // of all kernels together; the first is always listed; 0: no limit
};
// Without sources.
Result<CodeList> list_code(const Analysis& analysis, const CodeOptions& options, sys::Files& files,
                           sys::Processes& processes, const sys::Environment& env);

// A text shows the line of the innermost function alone, a page those of its callers too.
enum class Frames { Innermost, All };
// What `sources` gives of the files that the code names.
void add_sources(CodeList& code, Sources& sources, Frames frames);

}  // namespace kiln::inspect
