// SPDX-License-Identifier: Apache-2.0
// What did ptxas find that makes a kernel slow?
//
//   ptxas warning : Registers are spilled to local memory in function '_Z4workPf', 8 bytes spill
//   stores, 16 bytes spill loads ptxas info    : (C7510) Potential Performance Loss:
//   wgmma.mma_async instructions are serialized due to ... in the
//                   function '_Z4workPf'
#include "build/run/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "binary/symbols.h"

namespace kiln::build {

namespace {

bool is_finding(std::string_view line) {
  if (!line.starts_with("ptxas ")) return false;
  return line.find("are spilled to local memory") != std::string_view::npos ||
         line.find("Potential Performance Loss") != std::string_view::npos;
}

std::string function_in(std::string_view line) {
  size_t open = line.find("unction '");
  if (open == std::string_view::npos) return "";
  open += 9;
  return binary::demangle(std::string(line.substr(open, line.find('\'', open) - open)));
}

}  // namespace

std::vector<std::string> ptxas_findings(std::string_view log) {
  std::vector<std::string> findings;
  for (std::string_view line : text::lines(log)) {
    if (!is_finding(line)) continue;
    std::string function = function_in(line), what;
    if (size_t at = line.find("Potential Performance Loss: "); at != std::string_view::npos) {
      what = line.substr(at + 28);
      what = what.substr(0, what.find(" in the function '"));
      what = what.substr(0, what.find(" in function '"));
    } else {
      size_t comma = line.find("', ");
      what = "registers spill to local memory";
      if (comma != std::string_view::npos) what += ": " + std::string(line.substr(comma + 3));
    }
    std::string finding = function.empty() ? what : fmt::format("{}: {}", function, what);
    if (std::find(findings.begin(), findings.end(), finding) == findings.end())
      findings.push_back(finding);
  }
  return findings;
}

std::string without_findings(std::string_view log) {
  std::string out;
  for (std::string_view line : text::lines(log))
    if (!is_finding(line)) out.append(line).append("\n");
  return out;
}

}  // namespace kiln::build
