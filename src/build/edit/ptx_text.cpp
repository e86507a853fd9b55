// SPDX-License-Identifier: Apache-2.0
// Are two texts of PTX the same to the host, and the same code?
#include "build/edit/ptx_text.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text.h"

namespace kiln::build {

namespace {

struct Function {
  std::string head;  // its parameters, without linkage
  std::string body;  // without .loc and comments
};

struct Outline {
  std::vector<std::string> entries;
  std::map<std::string, Function> functions;
  std::set<std::string> variables;  // that the host may know by name
};

// Between the last blank or parenthesis before the first "(" and that "(": "_Z3addPf".
std::string name_in(std::string_view head) {
  size_t from = head.find(".entry ");
  size_t skip = 7;
  if (from == std::string_view::npos) {
    from = head.find(".func ");
    skip = 6;
  }
  if (from == std::string_view::npos) return "";
  std::string_view rest = text::trim(head.substr(from + skip));
  if (rest.starts_with('(')) rest = text::trim(rest.substr(rest.find(')') + 1));  // a result
  return std::string(text::trim(rest.substr(0, rest.find_first_of("( \t;"))));
}

// nvcc and NVRTC give templates other linkage; who launches does not see it.
std::string without_linkage(std::string_view head) {
  std::string out;
  for (std::string_view word : text::split_any(head, " \t"))
    if (word != ".visible" && word != ".weak") out.append(word).append(" ");
  return out;
}

Outline outline_of(std::string_view ptx) {
  Outline outline;
  std::string head, body;
  int depth = 0;
  bool in_section = false;
  for (std::string_view line : text::lines(ptx)) {
    std::string_view bare = text::trim(line.substr(0, line.find("//")));
    if (bare.empty() || bare.starts_with(".loc") || bare.starts_with(".file")) continue;
    if (bare.starts_with(".version") || bare.starts_with(".target") ||
        bare.starts_with(".address_size"))
      continue;
    if (depth == 0 && bare.starts_with(".section")) in_section = true;
    for (char c : bare) {
      if (c == '{') ++depth;
      if (c == '}') --depth;
    }
    if (in_section) {
      if (depth == 0 && bare.find('}') != std::string_view::npos) in_section = false;
      continue;
    }
    bool closes = depth == 0 && bare == "}";
    if (depth > 0 || closes) {
      body.append(bare).append("\n");
      if (!closes) continue;
      std::string name = name_in(head);
      if (head.find(".entry ") != std::string::npos) outline.entries.push_back(name);
      outline.functions[name] = {without_linkage(head), body};
      head.clear();
      body.clear();
      continue;
    }
    head.append(bare).append(" ");
    if (!bare.ends_with(';')) continue;
    bool variable =
        head.find(".global") != std::string::npos || head.find(".const") != std::string::npos;
    // .weak: of a template, which the edit may have used for the first time.
    if (variable &&
        (head.find(".visible") != std::string::npos || head.find(".weak") != std::string::npos))
      outline.variables.insert(without_linkage(head));
    head.clear();
  }
  return outline;
}

std::string interface_difference(const Outline& before, const Outline& after) {
  std::set<std::string> old_names(before.entries.begin(), before.entries.end());
  std::set<std::string> new_names(after.entries.begin(), after.entries.end());
  if (old_names != new_names) {
    for (const std::string& name : old_names)
      if (!new_names.contains(name)) return fmt::format("the kernel {} is missing", name);
    return "there is an additional kernel";
  }
  for (const std::string& name : old_names)
    if (before.functions.at(name).head != after.functions.at(name).head)
      return fmt::format("the parameters or bounds of {} differ", name);
  if (before.variables != after.variables) return "the device variables differ";
  return "";
}

}  // namespace

std::vector<std::string> entry_names(std::string_view ptx) { return outline_of(ptx).entries; }

std::string why_interface_differs(std::string_view before, std::string_view after) {
  return interface_difference(outline_of(before), outline_of(after));
}

std::string why_code_differs(std::string_view before, std::string_view after) {
  Outline old_outline = outline_of(before), new_outline = outline_of(after);
  if (std::string why = interface_difference(old_outline, new_outline); !why.empty()) return why;
  for (const auto& [name, function] : old_outline.functions) {
    auto now = new_outline.functions.find(name);
    if (now == new_outline.functions.end()) return fmt::format("the function {} is missing", name);
    if (now->second.body != function.body) return fmt::format("the code of {} differs", name);
  }
  return "";
}

}  // namespace kiln::build
