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

// ninja believes the times of files, so that it is shown none but those that steps made and kiln
// wrote. What came from outside is in the records of what was read: a step that is stale by its own
// runs whatever the times are.
std::string ninja_file(const Graph& graph, const fs::path& kiln,
                       const std::set<std::string>& stale) {
  std::string text = fmt::format(
      "ninja_required_version = 1.5\nrule run\n  command = {} step $in_file\n  description = "
      "$what\n  restat = 1\n",
      escape_value(text::shell_quote(kiln.string())));
  text += "build always: phony\n";
  for (const Step& step : graph.steps) {
    text += "build";
    for (const std::string& output : step.outputs) text += " " + escape_path("obj/" + output);
    text += ": run";
    for (const std::string& input : step.inputs)
      if (!input.starts_with('/')) text += " " + escape_path(input);
    text += fmt::format(" | {}{}\n  in_file = {}\n  what = {}\n", escape_path(step.step_file()),
                        stale.contains(step.key) ? " always" : "",
                        escape_value(text::shell_quote(step.step_file())), escape_value(step.what));
  }
  return text + fmt::format("default {}\n", escape_path("obj/" + graph.result().outputs[0]));
}

}  // namespace kiln::build
