// SPDX-License-Identifier: Apache-2.0
// What can be told from a source's text before it is compiled?
#include "build/source_scan.h"

#include <array>
#include <set>
#include <string>

#include "base/text.h"

namespace kiln::build {

namespace {

using sys::fs::path;

constexpr size_t kMostFiles = 256;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Comments and string literals become one blank, so that prose is not taken for code. Raw strings keep their text: it
// can only cause a false alarm.
std::string without_comments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") {
      while (i < text.size() && text[i] != '\n') ++i;
      out += '\n';
    } else if (text.substr(i, 2) == "/*") {
      size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 1;
      out += ' ';
    } else {
      out += text[i];
    }
  }
  return out;
}

// The last character before `at` that is neither blank nor part of mutable, constexpr, noexcept or another mark.
char before_marks(std::string_view text, size_t at) {
  for (;;) {
    while (at > 0 && is_blank(text[at - 1])) --at;
    size_t end = at;
    while (at > 0 && is_word(text[at - 1])) --at;
    std::string_view word = text.substr(at, end - at);
    bool is_mark = word == "mutable" || word == "constexpr" || word == "noexcept" || word == "static" ||
                   word == "__host__" || word == "__device__" || word == "__forceinline__" || word == "inline";
    if (!is_mark) return end > 0 ? text[end - 1] : '\0';
  }
}

// Does the last '>' close the list of a template lambda, `[..]<class T>`?
bool closes_lambda_template(std::string_view code) {
  size_t at = code.rfind('>');
  for (int depth = 0; at != std::string_view::npos; at = at ? at - 1 : std::string_view::npos) {
    if (code[at] == '>') ++depth;
    if (code[at] == '<' && --depth == 0) return before_marks(code, at) == ']';
  }
  return false;
}

bool has_extended_lambda(std::string_view code) {
  for (std::string_view mark : {"__device__", "__host__"}) {
    for (size_t at = code.find(mark); at != std::string_view::npos; at = code.find(mark, at + 1)) {
      // `[..] __device__ (..)`, or `[..](..) __device__`, or a template lambda's `[..]<..>`.
      char before = before_marks(code, at);
      if (before == ']' || before == ')') return true;
      if (before == '>' && closes_lambda_template(code.substr(0, at))) return true;
    }
  }
  return false;
}

// `word` followed by '(', as a word of its own.
bool calls(std::string_view code, std::string_view word) {
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    if (at > 0 && is_word(code[at - 1])) continue;
    size_t end = at + word.size();
    while (end < code.size() && is_blank(code[end])) ++end;
    if (end < code.size() && code[end] == '(') return true;
  }
  return false;
}

bool defines_main(std::string_view code) {
  for (size_t at = code.find("main"); at != std::string_view::npos; at = code.find("main", at + 1)) {
    size_t end = at + 4;
    while (end < code.size() && is_blank(code[end])) ++end;
    bool opens = end < code.size() && code[end] == '(';
    size_t type = code.substr(0, at).find_last_not_of(" \t\r\n");
    bool typed = type != std::string_view::npos && type >= 2 && type + 1 < at && code.substr(type - 2, 3) == "int" &&
                 (type == 2 || !is_word(code[type - 3]));
    if (opens && typed) return true;
  }
  return false;
}

// PTX ISA, "Target ISA Notes" of wgmma, setmaxnreg and tcgen05; then what CuTe calls them.
constexpr std::array<std::string_view, 5> kHopperOnly = {"wgmma.", "setmaxnreg.", "warpgroup_arrive", "warpgroup_reg_",
                                                         "SM90_64x"};
constexpr std::array<std::string_view, 5> kBlackwellOnly = {"tcgen05.", "setmaxnreg.", "tcgen05::", "warpgroup_reg_",
                                                            "SM100_MMA"};

template <class Words>
std::string first_of(std::string_view code, const Words& words) {
  for (std::string_view word : words)
    if (code.find(word) != std::string_view::npos) return std::string(word.substr(0, word.find_first_of(".:")));
  return "";
}

bool is_torch_header(std::string_view name) {
  for (std::string_view folder : {"torch/", "ATen/", "c10/", "pybind11/", "THC/", "caffe2/"})
    if (name.starts_with(folder)) return true;
  return false;
}

struct Leak {
  std::string_view word;
  std::string_view header;
};
// Which name comes from which header. Cheap ones that the compat headers have themselves are not here.
constexpr Leak kLeaks[] = {
#define LEAK(word, header) {word, header},
#include "build/leaks.def"
#undef LEAK
};

std::set<std::string> leaked_headers(std::string_view code) {
  std::set<std::string> found;
  for (const Leak& leak : kLeaks) {
    if (found.contains(std::string(leak.header))) continue;
    for (size_t at = code.find(leak.word); at != std::string_view::npos; at = code.find(leak.word, at + 1)) {
      size_t end = at + leak.word.size();
      bool whole = (at == 0 || !is_word(code[at - 1])) && (end == code.size() || !is_word(code[end]));
      if (!whole) continue;
      found.emplace(leak.header);
      break;
    }
  }
  return found;
}

std::vector<std::string> included_names(std::string_view code) {
  std::vector<std::string> names;
  for (std::string_view line : text::lines(code)) {
    std::string_view rest = text::trim(line);
    if (!rest.starts_with('#')) continue;
    rest = text::trim(rest.substr(1));
    if (!rest.starts_with("include")) continue;
    rest = text::trim(rest.substr(7));
    if (rest.size() < 3 || (rest[0] != '"' && rest[0] != '<')) continue;
    size_t end = rest.find(rest[0] == '<' ? '>' : '"', 1);
    if (end != std::string_view::npos) names.emplace_back(rest.substr(1, end - 1));
  }
  return names;
}

}  // namespace

SourceFacts scan_text(std::string_view text) {
  std::string code = without_comments(text);
  SourceFacts facts;
  facts.extended_lambda = has_extended_lambda(code);
  facts.defines_op = calls(code, "KILN_OP");
  facts.defines_main = defines_main(code);
  facts.defines_python_module = calls(code, "PYBIND11_MODULE");
  for (const std::string& name : included_names(code))
    if (facts.torch_header.empty() && is_torch_header(name)) facts.torch_header = name;
  facts.leaked = leaked_headers(code);
  facts.hopper_only = first_of(code, kHopperOnly);
  facts.blackwell_only = first_of(code, kBlackwellOnly);
  return facts;
}

SourceFacts scan_source(const sys::Files& files, const path& source, const std::vector<path>& include_folders,
                        const path& own) {
  SourceFacts facts;
  const std::string own_folder = (own.empty() ? source.parent_path() : own).string() + "/";
  std::set<path> seen;
  std::vector<path> waiting = {source};
  while (!waiting.empty() && seen.size() < kMostFiles) {
    path file = waiting.back().lexically_normal();
    waiting.pop_back();
    if (!seen.insert(file).second) continue;
    auto content = files.read(file);
    if (!content) continue;
    SourceFacts here = scan_text(*content);
    facts.extended_lambda |= here.extended_lambda;
    facts.defines_op |= here.defines_op;
    facts.defines_main |= here.defines_main;
    facts.defines_python_module |= here.defines_python_module;
    if (facts.torch_header.empty()) facts.torch_header = here.torch_header;
    facts.leaked.insert(here.leaked.begin(), here.leaked.end());
    if (file == source.lexically_normal() || file.string().starts_with(own_folder)) {
      if (facts.hopper_only.empty()) facts.hopper_only = here.hopper_only;
      if (facts.blackwell_only.empty()) facts.blackwell_only = here.blackwell_only;
    }
    for (const std::string& name : included_names(*content)) {
      std::vector<path> folders = {file.parent_path()};
      folders.insert(folders.end(), include_folders.begin(), include_folders.end());
      for (const path& folder : folders) {
        if (!files.state(folder / name).is_file()) continue;
        waiting.push_back(folder / name);
        break;
      }
    }
  }
  // More than was looked at: take the safe side.
  if (!waiting.empty()) facts.extended_lambda = true;
  return facts;
}

}  // namespace kiln::build
