// SPDX-License-Identifier: Apache-2.0
// What does the page of a comparison show? What a reviewer asks first: which kernels changed, and
// whether they need more of the GPU; below it each of them with its figures, mix and code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "report/charts/charts.h"
#include "report/diff.h"
#include "report/kernels/names.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::BlockDiff;
using results::Change;
using results::Figure;
using results::FileDiff;
using results::KernelDiff;

// A page stays below a megabyte: this many kernels have a section of their own, and this many
// instructions are shown of all of them.
constexpr size_t kMaxSections = 60, kMaxCodeLines = 4000, kMaxTableRows = 1500;

bool differs(const KernelDiff& kernel) {
  return kernel.change != Change::Same || kernel.code_differs;
}

std::string change_tag(const KernelDiff& kernel) {
  const std::string name(results::name_of(kernel.change));
  return fmt::format(
      "<span class=\"tag {}\">{}</span>", name,
      kernel.change == Change::Same ? "same figures" : text::replace_all(name, "_", " "));
}

std::string count_text(int64_t count) {
  return grouped(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
}

// "+8", with the sign that a reader sees at once whatever the colours are.
std::string delta_text(const Figure& figure) {
  const int64_t delta = figure.delta();
  const bool good = figure.name == "blocks per SM" ? delta > 0 : delta < 0;
  return fmt::format("<span class=\"delta {}\">{}{}</span>", good ? "less" : "more",
                     delta > 0 ? "+" : "−", grouped(static_cast<uint64_t>(std::llabs(delta))));
}

std::string figure_cell(const KernelDiff& kernel, const std::string& name) {
  const auto found = std::ranges::find(kernel.figures, name, &Figure::name);
  if (found == kernel.figures.end()) return "";
  const std::string value = fmt::format("<span data-value=\"{}\"></span>", found->delta());
  if (kernel.change == Change::Added) return value + count_text(found->after);
  if (kernel.change == Change::Removed) return value + count_text(found->before);
  if (!found->delta()) return value + count_text(found->after);
  return fmt::format("{}{} → {} {}", value, count_text(found->before), count_text(found->after),
                     delta_text(*found));
}

std::string name_cell(const KernelDiff& kernel, std::optional<size_t> section) {
  const KernelName name = split_name(kernel.name);
  const std::string text =
      section ? fmt::format("<a href=\"#kernel{}\">{}</a>", *section, escape(name.function))
              : escape(name.function);
  return fmt::format(
      "<div class=\"kernel\" title=\"{}\">{}<span class=\"arguments\">{}</span></div>",
      escape(kernel.name), text, escape(name.arguments));
}

// Columns: what differs in any kernel; registers and instructions always.
std::vector<std::string> columns_of(const std::vector<const KernelDiff*>& changed) {
  std::vector<std::string> out;
  for (const KernelDiff* kernel : changed)
    for (const Figure& figure : kernel->figures) {
      const bool compared = kernel->change != Change::Added && kernel->change != Change::Removed;
      const bool always = figure.name == "registers" || figure.name == "instructions";
      if ((always || (compared && figure.delta())) && !std::ranges::count(out, figure.name))
        out.push_back(figure.name);
    }
  return out;
}

std::string kernels_table(const std::vector<const KernelDiff*>& changed) {
  const std::vector<std::string> columns = columns_of(changed);
  std::vector<std::vector<std::string>> rows = {{"kernel", "arch", "change"}};
  rows[0].insert(rows[0].end(), columns.begin(), columns.end());
  for (size_t i = 0; i < changed.size() && i < kMaxTableRows; ++i) {
    const KernelDiff& kernel = *changed[i];
    rows.push_back({name_cell(kernel, i < kMaxSections ? std::optional(i) : std::nullopt),
                    escape(kernel.arch), change_tag(kernel)});
    for (const std::string& column : columns) rows.back().push_back(figure_cell(kernel, column));
  }
  std::string out = "<h2>Changed kernels</h2>\n" + table(rows, "ttt", "sortable");
  if (changed.size() > kMaxTableRows)
    out += fmt::format("<p class=\"soft\">{} more: kiln diff --json</p>\n",
                       grouped(changed.size() - kMaxTableRows));
  return out;
}

std::string mix_chart(const KernelDiff& kernel) {
  std::vector<ChangeBar> bars;
  for (const Figure& figure : kernel.mix)
    if (figure.delta())
      bars.push_back({figure.name, static_cast<double>(figure.delta()),
                      fmt::format("{} → {}", count_text(figure.before), count_text(figure.after))});
  if (bars.empty()) return "";
  return "<h3>Instructions by class</h3>\n" +
         change_chart(bars, "change in the number of instructions of each class");
}

std::string code_blocks(const KernelDiff& kernel, size_t& lines_left) {
  std::string out;
  size_t count = 0;
  bool all = true;
  for (const BlockDiff& block : kernel.blocks) {
    if (!block.changed) continue;
    ++count;
    all = all && lines_left >= block.lines.size();
    if (!all) continue;
    lines_left -= block.lines.size();
    out += fmt::format("<h3>{}</h3>\n<div class=\"diff\">", escape(block.label));
    for (const auto& [mark, line] : block.lines)
      out += fmt::format("<div{}>{} {}</div>",
                         mark == '+'   ? " class=\"plus\""
                         : mark == '-' ? " class=\"minus\""
                                       : "",
                         mark, escape(line));
    out += "</div>\n";
  }
  if (!count) return "";
  if (!all) out += "<p class=\"soft\">More: <code>kiln diff --sass</code></p>\n";
  return fmt::format("<details><summary>SASS: {} block{} differ{}</summary>\n{}</details>\n", count,
                     count == 1 ? "" : "s", count == 1 ? "s" : "", out);
}

std::string kernel_section(const KernelDiff& kernel, size_t index, size_t& lines_left) {
  const KernelName name = split_name(kernel.name);
  std::vector<std::vector<std::string>> rows = {{"", "before", "after", "change"}};
  const bool both = kernel.change != Change::Added && kernel.change != Change::Removed;
  for (const Figure& figure : kernel.figures) {
    if (!figure.before && !figure.after) continue;
    rows.push_back({escape(figure.name),
                    kernel.change == Change::Added ? "" : count_text(figure.before),
                    kernel.change == Change::Removed ? "" : count_text(figure.after),
                    both && figure.delta() ? delta_text(figure) : ""});
  }
  return fmt::format(
             "<details class=\"card\" id=\"kernel{}\"{}><summary><b>{}</b> {} {}</summary>\n"
             "<p class=\"soft\"><code>{}</code></p>\n",
             index, index < 3 ? " open" : "", escape(name.function), escape(kernel.arch),
             change_tag(kernel), escape(kernel.name)) +
         table(rows) + (both ? mix_chart(kernel) : "") + code_blocks(kernel, lines_left) +
         "</details>\n";
}

std::string bytes_section(const FileDiff& diff) {
  std::vector<std::vector<std::string>> rows = {{"bytes", "before", "after", "change"}};
  for (const Figure& group : diff.groups)
    if (group.delta())
      rows.push_back({escape(group.name), count_text(group.before), count_text(group.after),
                      delta_text(group)});
  std::string out;
  if (rows.size() > 1) out += "<h2>File size</h2>\n" + table(rows);
  const auto list = [&](const std::vector<std::string>& images, const char* what) {
    if (!images.empty())
      out += fmt::format("<p>Images {}: {}.</p>\n", what, escape(text::join(images, ", ")));
  };
  list(diff.images_added, "added");
  list(diff.images_removed, "removed");
  return out;
}

std::string scope_notes(const FileDiff& diff) {
  std::string out;
  if (!diff.before_arch.empty())
    out += fmt::format(
        "<p>No common architecture: {} of the first is compared with {} of the second.</p>\n",
        escape(diff.before_arch), escape(diff.after_arch));
  for (const auto& [archs, which] :
       {std::pair(&diff.only_before, "first"), std::pair(&diff.only_after, "second")})
    if (!archs->empty())
      out += fmt::format("<p>{} only in the {}: not compared.</p>\n",
                         escape(text::join(*archs, ", ")), which);
  return out;
}

// "2 kernels changed: 1 with more resources, 1 added; 12 unchanged"
std::string summary_text(const FileDiff& diff, const std::vector<const KernelDiff*>& changed) {
  if (diff.kernels.empty()) return "Neither file contains kernels in SASS.";
  const size_t same = diff.kernels.size() - changed.size();
  if (changed.empty()) return fmt::format("No kernel changed ({} compared).", grouped(same));
  std::vector<std::string> parts;
  for (const Change change : {Change::MoreResources, Change::FewerResources, Change::Mixed,
                              Change::Added, Change::Removed, Change::Same}) {
    const auto count = std::ranges::count(changed, change, &KernelDiff::change);
    if (count)
      parts.push_back(fmt::format("{} {}", count,
                                  change == Change::Same ? "with other code and the same figures"
                                  : change == Change::MoreResources ? "with more resources"
                                  : change == Change::FewerResources
                                      ? "with fewer resources"
                                      : text::replace_all(results::name_of(change), "_", " ")));
  }
  return fmt::format("{} kernel{} changed: {}; {} unchanged.", grouped(changed.size()),
                     changed.size() == 1 ? "" : "s", text::join(parts, ", "), grouped(same));
}

}  // namespace

std::string diff_page(const FileDiff& diff) {
  std::vector<const KernelDiff*> changed;
  for (const KernelDiff& kernel : diff.kernels)
    if (differs(kernel)) changed.push_back(&kernel);
  // What needs more of the GPU comes first: that is what a reviewer has to see.
  const auto rank = [](const KernelDiff* kernel) {
    switch (kernel->change) {
      case Change::MoreResources:
        return 0;
      case Change::Mixed:
        return 1;
      case Change::Added:
        return 2;
      case Change::Removed:
        return 3;
      case Change::FewerResources:
        return 4;
      default:
        return 5;
    }
  };
  std::ranges::stable_sort(changed, {}, rank);
  std::string body =
      fmt::format("<h1>{} → {}</h1>\n<p class=\"card\" id=\"summary\">{}</p>\n",
                  escape(diff.before), escape(diff.after), summary_text(diff, changed));
  body += scope_notes(diff);
  if (!changed.empty()) body += kernels_table(changed);
  body += bytes_section(diff);
  size_t lines_left = kMaxCodeLines;
  if (!changed.empty()) body += "<h2>Kernel by kernel</h2>\n";
  for (size_t i = 0; i < changed.size() && i < kMaxSections; ++i)
    body += kernel_section(*changed[i], i, lines_left);
  if (changed.size() > kMaxSections)
    body += fmt::format("<p class=\"soft\">{} more without a section: --kernel TEXT chooses.</p>\n",
                        grouped(changed.size() - kMaxSections));
  return page({.title = fmt::format("kiln diff: {} → {}", diff.before, diff.after),
               .body = body,
               .style = kLook_diff_css});
}

}  // namespace kiln::report
