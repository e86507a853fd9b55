// SPDX-License-Identifier: Apache-2.0
// What does tuning leave behind? A result with every outcome, a line while it works, and an entry
// in the file of tuned configurations that builds and loads take.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "results/tune.h"
#include "results/tuned.h"
#include "tune/tuner.h"

namespace kiln::tune {

// Who and where is added by the caller. `where` has the constraints as they were written.
results::TuneResult result_of(const Space& space, const Search& search, const Json& where,
                              const std::vector<Outcome>& outcomes, const Tuned& tuned);

// "[37/144] 30 timed, 4 pruned; best 412.3 us: BLOCK_M=64 WARPS=4; 1 min 12 s left"
std::string progress_text(const Progress& progress);

// The file of tuned configurations and one entry of it.
using Choice = results::TunedEntry;
using Choices = results::TunedFile;
// An error names `source`; one that says another version too.
Result<Choices> parse_choices(std::string_view text, std::string_view source);
std::string write_choices(const Choices& choices);
// Takes the place of the one for the same op, arguments and GPU.
void put(Choices& choices, Choice choice);

// The defines that a build for one of these computes ("9.0") takes: those of the entries whose text
// has `part` in it. An error when none fits, and when several do that differ.
Result<std::vector<std::string>> choose(const Choices& choices,
                                        const std::vector<std::string>& computes,
                                        std::string_view part, std::string_view source);

}  // namespace kiln::tune
