// SPDX-License-Identifier: Apache-2.0
// How does a comparison of two binaries read on a terminal?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "report/diff.h"

namespace kiln::report {
namespace {

using results::BlockDiff;
using results::Change;
using results::Figure;
using results::KernelDiff;

std::string bold(const DiffStyle& style, const std::string& text) {
  return style.color ? fmt::format("\x1b[1m{}\x1b[0m", text) : text;
}
std::string dim(const DiffStyle& style, const std::string& text) {
  return style.color ? fmt::format("\x1b[2m{}\x1b[0m", text) : text;
}

std::string cut_name(const std::string& name, int columns) {
  if (columns <= 1 || name.size() <= static_cast<size_t>(columns)) return name;
  return name.substr(0, static_cast<size_t>(columns) - 1) + "…";
}

std::string diff_figure_text(const Figure& figure) {
  return fmt::format("{} {} -> {} ({:+})", figure.name,
                     grouped(static_cast<uint64_t>(std::max<int64_t>(figure.before, 0))),
                     grouped(static_cast<uint64_t>(std::max<int64_t>(figure.after, 0))),
                     figure.delta());
}

std::string verdict_of(const KernelDiff& kernel) {
  if (kernel.change == Change::Same) return "different code, same figures";
  return text::replace_all(results::name_of(kernel.change), "_", " ");
}

std::string kernel_diff_text(const KernelDiff& kernel, const DiffStyle& style) {
  std::string out =
      bold(style, fmt::format("{}  {}: {}", kernel.arch, cut_name(kernel.name, style.columns - 20),
                              verdict_of(kernel))) +
      "\n";
  for (const Figure& figure : kernel.figures)
    if (figure.delta()) out += fmt::format("  {}\n", diff_figure_text(figure));
  std::string mix;
  for (const Figure& figure : kernel.mix)
    if (figure.delta())
      mix += fmt::format("{}{:+} {}", mix.empty() ? "" : ", ", figure.delta(), figure.name);
  if (!mix.empty()) out += fmt::format("  mix: {}\n", mix);
  for (const BlockDiff& block : kernel.blocks) {
    if (!block.changed) continue;
    out += dim(style, fmt::format("  @@ {}\n", block.label));
    for (const auto& [mark, line] : block.lines) {
      std::string text = fmt::format("  {} {}\n", mark, line);
      out += !style.color || mark == ' '
                 ? text
                 : fmt::format("\x1b[{}m{}\x1b[0m", mark == '+' ? 32 : 31, text);
    }
  }
  return out;
}

}  // namespace

std::string diff_text(const results::FileDiff& diff, const DiffStyle& style) {
  std::string out = fmt::format("{} -> {}\n", diff.before, diff.after);
  for (const Figure& group : diff.groups)
    if (group.delta()) out += fmt::format("  {}\n", diff_figure_text(group));
  for (const std::string& image : diff.images_added) out += fmt::format("  + {}\n", image);
  for (const std::string& image : diff.images_removed) out += fmt::format("  - {}\n", image);
  if (!diff.before_arch.empty())
    out += fmt::format("  no common architecture: {} of the first compared with {} of the second\n",
                       diff.before_arch, diff.after_arch);
  for (const auto& [archs, which] :
       {std::pair(&diff.only_before, "first"), std::pair(&diff.only_after, "second")})
    if (!archs->empty())
      out += fmt::format("  {} only in the {}: not compared\n", text::join(*archs, ", "), which);
  size_t same = 0;
  for (const KernelDiff& kernel : diff.kernels) {
    if (kernel.change == Change::Same && !kernel.code_differs) {
      ++same;
      continue;
    }
    out += kernel_diff_text(kernel, style);
  }
  if (diff.kernels.empty()) out += "neither contains kernels in SASS\n";
  if (same) out += fmt::format("{} kernel{} unchanged\n", grouped(same), same == 1 ? "" : "s");
  return out;
}

}  // namespace kiln::report
