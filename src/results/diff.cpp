// SPDX-License-Identifier: Apache-2.0
#include "results/diff.h"

namespace kiln::results {
namespace {

Json diff_figures_json(const std::vector<Figure>& figures) {
  Json out = Json::object();
  for (const Figure& figure : figures)
    out[figure.name] = {{"before", figure.before}, {"after", figure.after}};
  return out;
}

}  // namespace

std::string_view name_of(Change change) {
  switch (change) {
    case Change::Same:
      return "same";
    case Change::FewerResources:
      return "fewer_resources";
    case Change::MoreResources:
      return "more_resources";
    case Change::Mixed:
      return "mixed";
    case Change::Added:
      return "added";
    default:
      return "removed";
  }
}

Json to_json(const FileDiff& diff) {
  Json kernels = Json::array();
  for (const KernelDiff& kernel : diff.kernels) {
    Json blocks = Json::array();
    for (const BlockDiff& block : kernel.blocks) {
      if (!block.changed) continue;
      Json lines = Json::array();
      for (const auto& [mark, line] : block.lines)
        lines.push_back(std::string(1, mark) + " " + line);
      blocks.push_back({{"block", block.label}, {"lines", std::move(lines)}});
    }
    kernels.push_back({{"name", kernel.name},
                       {"symbol", kernel.symbol},
                       {"arch", kernel.arch},
                       {"change", name_of(kernel.change)},
                       {"code_differs", kernel.code_differs},
                       {"figures", diff_figures_json(kernel.figures)},
                       {"mix", diff_figures_json(kernel.mix)},
                       {"blocks", std::move(blocks)}});
  }
  return {{"schema", "kiln.diff/1"},
          {"before", diff.before},
          {"after", diff.after},
          {"groups", diff_figures_json(diff.groups)},
          {"images_added", diff.images_added},
          {"images_removed", diff.images_removed},
          {"archs", {{"before", diff.before_arch}, {"after", diff.after_arch}}},
          {"only_before", diff.only_before},
          {"only_after", diff.only_after},
          {"kernels", std::move(kernels)}};
}

}  // namespace kiln::results
