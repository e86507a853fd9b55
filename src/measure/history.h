// SPDX-License-Identifier: Apache-2.0
// How does today's result compare with an older one? Results are kept as JSON lines; a baseline is
// a named set of them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/sample/verdict.h"
#include "results/bench.h"
#include "sys/files.h"

namespace kiln::measure {

// Lines that are not results of this format are skipped, and counted in `skipped`: a killed run may
// leave half a line.
std::vector<results::BenchResult> read_results(std::string_view text, int* skipped = nullptr);
Status append_result(sys::Files& files, const sys::fs::path& path,
                     const results::BenchResult& result);

// What a result is of: title, contender, defines. Results of one key can be compared.
std::string key_of(const results::BenchResult& result, const results::Contender& contender);

// Why two results should not be compared: "another GPU (NVIDIA L4, then NVIDIA H200)"; "" when they
// can be. Another driver or torch is not a reason: that is what one may want to see. It is a note.
std::string incomparable(const results::BenchResult& now, const results::BenchResult& then);
std::string differences(const results::BenchResult& now, const results::BenchResult& then);

struct Change {
  std::string what;  // the key
  Verdict verdict = Verdict::Ambiguous;
  Ratio ratio;  // now to then: above 1 is slower
  double threshold = 0;
  double now_ns = 0, then_ns = 0;
};
// The first contender of each result that is in both sets.
std::vector<Change> compare_with(const std::vector<results::BenchResult>& now,
                                 const std::vector<results::BenchResult>& then);
std::string changes_text(const std::vector<Change>& changes);
bool has_regression(const std::vector<Change>& changes);

}  // namespace kiln::measure
