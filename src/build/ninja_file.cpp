// SPDX-License-Identifier: Apache-2.0
// How is a graph written for ninja, and what does ninja's log say about it afterwards?
#include "build/ninja_file.h"

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

std::string word_with_staging(const std::string& word, std::string_view staging) {
  if (!word.starts_with(kStaging)) return text::shell_quote(word);
  return fmt::format("{}/{}", staging, text::shell_quote(word.substr(kStaging.size())));
}

std::string command_line(const Edge& edge, std::string_view staging) {
  std::string line;
  for (const std::string& word : edge.arguments) line += (line.empty() ? "" : " ") + word_with_staging(word, staging);
  return line;
}

// One mv for all files, the output last: each process more is a millisecond more.
std::string whole_command(const Edge& edge) {
  std::string staging = fmt::format("\"${}\"", kStagingVariable);
  std::string key = fmt::format("{}/{}", staging, text::shell_quote(edge.key));
  std::string moved = key + ".log";
  if (edge.writes_depfile) moved += " " + key + ".d";
  moved += edge.writes_depfile ? " " + key + ".o" : " " + key;
  return fmt::format("{} > {}.log 2>&1 && mv -f {} obj/", command_line(edge, staging), key, moved);
}

}  // namespace

std::string ninja_file(const Graph& graph) {
  std::string text = "ninja_required_version = 1.5\nrule run\n  command = $line\n  description = $what\n";
  for (const Edge& edge : graph.edges) {
    text += fmt::format("build {}: run", escape_path(edge.output));
    for (const std::string& input : edge.inputs) text += " " + escape_path(input);
    text += " |";
    for (const std::string& input : edge.implicit) text += " " + escape_path(input);
    text += fmt::format("\n  line = {}\n  what = {}\n", escape_value(whole_command(edge)), escape_value(edge.what));
    if (edge.writes_depfile) text += fmt::format("  depfile = {}\n", escape_value("obj/" + edge.key + ".d"));
  }
  return text + fmt::format("default {}\n", escape_path(graph.result().output));
}

std::string shown_command(const Edge& edge, std::string_view staging) { return command_line(edge, staging); }

std::map<std::string, double> parse_ninja_log(std::string_view text) {
  std::map<std::string, double> seconds;
  for (std::string_view line : text::lines(text)) {
    auto fields = text::split(line, '\t');  // start, end, mtime, output, command hash
    if (line.starts_with('#') || fields.size() < 5) continue;
    auto begin = text::to_int(fields[0]), end = text::to_int(fields[1]);
    if (begin && end) seconds[std::string(fields[3])] = static_cast<double>(*end - *begin) / 1e3;
  }
  return seconds;
}

}  // namespace kiln::build
