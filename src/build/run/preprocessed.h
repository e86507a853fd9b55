// SPDX-License-Identifier: Apache-2.0
// Which places in what the compilers write to each other name a folder, or repeat what does not
// matter?
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan/step.h"

namespace kiln::build {

// `# 12 "/srv/p/add.cu" 2` becomes `# 12 "/proc/self/cwd/add.cu" 2`; string literals stay.
std::string with_canonical_markers(const std::vector<Root>& roots, std::string_view preprocessed);

// `.file 1 "/proc/self/cwd/add.cu"` in PTX becomes `.file 1 "/srv/p/add.cu"`.
std::string with_real_files(const std::vector<Root>& roots, std::string_view ptx);

// What cudafe++ writes for the host repeats the body of every kernel between "#if 0" and "#endif".
// Without them an edit of device code leaves the host code as it was, byte for byte. A comment in
// the place of each tells the line where it begins.
std::string without_device_bodies(std::string_view host_code);

// The lines of the source where these bodies begin.
std::set<size_t> lines_of_device_bodies(const std::vector<Root>& roots, std::string_view host_code,
                                        std::string_view source);

}  // namespace kiln::build
