// SPDX-License-Identifier: Apache-2.0
// Is a wheel fit for PyPI and for other people's machines? What auditwheel and twine do not look at
// is looked at here: GPUs, drivers, torch's symbols, RPATH, what is bundled, what is stray.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "ship/wheel_view.h"

namespace kiln::ship {

enum class Verdict { Good, Note, Doubt, Fault };

struct Finding {
  Verdict verdict = Verdict::Good;
  std::string area;  // "platform"
  std::string text;
  std::string fix;  // may be empty
};

// One or more findings an area; pure.
std::vector<Finding> audit(const WheelView& wheel);

bool has_fault(const std::vector<Finding>& findings);
// "[ok] platform   ..." a line; a fix is below its finding.
std::string text_of(const std::vector<Finding>& findings);
Json to_json(const std::vector<Finding>& findings);

// Libraries that torch or its CUDA packages bring: never to be bundled.
bool is_torch_library(std::string_view file_name);
bool is_cuda_library(std::string_view file_name);

}  // namespace kiln::ship
