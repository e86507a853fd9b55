// SPDX-License-Identifier: Apache-2.0
// How is a graph written for ninja?
#include "build/run/ninja_file.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::build {

namespace {

// In paths of a build line.
std::string escape_path(std::string_view path) {
  std::string out;
  for (char c : path) {
    if (c == ' ' || c == ':' || c == '$') out += '$';
    out += c;
  }
  return out;
}

std::string escape_value(std::string_view text) { return text::replace_all(text, "$", "$$"); }

}  // namespace

std::string ninja_file(const Graph& graph, const fs::path& kiln) {
  std::string text = fmt::format(
      "ninja_required_version = 1.5\nrule run\n  command = {} step $in_file\n  description = "
      "$what\n  restat = 1\n",
      escape_value(text::shell_quote(kiln.string())));
  text += "build always: phony\n";
  for (const Step& step : graph.steps) {
    text += "build";
    for (const std::string& output : step.outputs) text += " " + escape_path("obj/" + output);
    text += ": run";
    if (step.reads_source()) text += " " + escape_path(step.source);
    for (const std::string& input : step.inputs) text += " " + escape_path(input);
    // What is not cached runs in every build.
    text += fmt::format(" | {} {}{}\n  in_file = {}\n  what = {}\n", escape_path(step.step_file()),
                        escape_path(step.seen_file()), step.uncached.empty() ? "" : " always",
                        escape_value(text::shell_quote(step.step_file())), escape_value(step.what));
    if (step.writes_depfile)
      text += fmt::format("  depfile = {}\n", escape_value("obj/" + step.key + ".d"));
  }
  return text + fmt::format("default {}\n", escape_path("obj/" + graph.result().outputs[0]));
}

}  // namespace kiln::build
