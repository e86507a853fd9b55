// SPDX-License-Identifier: Apache-2.0
// How is what a step read found out? From the depfiles of compiler and assembler, the names that
// the files include, and the folders in which those were looked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "build/cache/reads.h"
#include "build/plan/step.h"
#include "sys/files.h"

namespace kiln::build {

// The names in a text's #include lines and __has_include questions.
struct IncludeName {
  std::string name;
  bool quoted = false;
  bool operator==(const IncludeName&) const = default;
};
std::vector<IncludeName> include_names(std::string_view text);

// Absolute, as the depfiles of compiler and assembler have them.
struct ReadFiles {
  std::vector<std::string> compiled, assembled;
  bool unknown = false;  // a depfile is missing
};
struct Collected {
  Reads reads;  // real names, states and contents
  // Nothing of it changed, appeared or went since the step began: the compiler read what is there.
  bool sound = true;
};
// `directory`: in which the step's commands ran. `begun_ns`: when, by the disk's clock.
Collected collect_reads(const sys::Files& files, ContentHashes& hashes, const Step& step,
                        const ReadFiles& read, const sys::fs::path& directory, int64_t begun_ns);

}  // namespace kiln::build
