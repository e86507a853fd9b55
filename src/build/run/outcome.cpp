// SPDX-License-Identifier: Apache-2.0
// How is a build's outcome reported to a program?
#include "build/run/outcome.h"

namespace kiln::build {

// "made", "hit" or "shared hit"
std::string_view cache_word(const StepReport& step) {
  if (step.answer != Answer::Direct && step.answer != Answer::Content) return "made";
  return step.origin == Origin::Remote ? "shared hit" : "hit";
}

Json to_json(const Outcome& outcome) {
  Json steps = Json::array();
  for (const StepReport& step : outcome.steps)
    steps.push_back({{"what", step.what}, {"seconds", step.seconds}, {"cache", cache_word(step)}});
  Json arch = Json::array();
  for (const project::Arch& one : outcome.arch.sass) arch.push_back(one.text());
  Json out;
  out[outcome.program ? "program" : "library"] = outcome.file.string();
  if (!outcome.program) out["link"] = outcome.link.string();
  out["name"] = outcome.name;
  out["rebuilt"] = outcome.rebuilt;
  out["lane"] = outcome.explanation.lane;
  out["steps"] = std::move(steps);
  out["seconds"] = outcome.seconds;
  out["arch"] = std::move(arch);
  out["ptx"] = outcome.arch.ptx.back().text();
  if (!outcome.torch_headers.empty()) out["headers"] = outcome.torch_headers;
  if (!outcome.program) out["python_module"] = outcome.python_module;
  out["build_dir"] = outcome.build_dir.string();
  return out;
}

}  // namespace kiln::build
