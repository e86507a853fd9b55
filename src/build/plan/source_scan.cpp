// SPDX-License-Identifier: Apache-2.0
// What is known from a source's text before it is compiled?
#include "build/plan/source_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/text.h"
#include "build/plan/lambda_scan.h"
#include "build/plan/source_tokens.h"

namespace kiln::build {

namespace {

using sys::fs::path;

constexpr size_t kMostFiles = 1024;
constexpr uint64_t kMostSourceBytes = uint64_t{1} << 30;

// Comments become one blank, so that prose is not taken for code. Strings keep their text, in which
// PTX may be.
std::string code_only(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t kept = 0;  // up to here all is in `out`
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '/' && text[i] != '"') continue;
    if (text[i] == '"') {  // "http://"
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      continue;
    }
    std::string_view two = text.substr(i, 2);
    if (two != "//" && two != "/*") continue;
    out.append(text.substr(kept, i - kept));
    size_t end = two == "//" ? text.find('\n', i) : text.find("*/", i + 2);
    out += two == "//" ? '\n' : ' ';
    kept = end == std::string_view::npos ? text.size() : end + (two == "//" ? 1 : 2);
    i = kept - 1;
  }
  if (kept < text.size()) out.append(text.substr(kept));
  return out;
}

// `word` followed by '(', as a word of its own.
bool calls(std::string_view code, std::string_view word) {
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    if (at > 0 && is_word(code[at - 1])) continue;
    size_t end = at + word.size();
    while (end < code.size() && is_space(code[end])) ++end;
    if (end < code.size() && code[end] == '(') return true;
  }
  return false;
}

bool defines_main(std::string_view code) {
  for (size_t at = code.find("main"); at != std::string_view::npos;
       at = code.find("main", at + 1)) {
    size_t end = at + 4;
    while (end < code.size() && is_space(code[end])) ++end;
    bool opens = end < code.size() && code[end] == '(';
    size_t type = code.substr(0, at).find_last_not_of(" \t\r\n");
    bool typed = type != std::string_view::npos && type >= 2 && type + 1 < at &&
                 code.substr(type - 2, 3) == "int" && (type == 2 || !is_word(code[type - 3]));
    if (opens && typed) return true;
  }
  return false;
}

// PTX ISA, "Target ISA Notes" of wgmma, setmaxnreg and tcgen05; then what CuTe calls them.
constexpr std::array<std::string_view, 5> kHopperOnly = {
    "wgmma.", "setmaxnreg.", "warpgroup_arrive", "warpgroup_reg_", "SM90_64x"};
constexpr std::array<std::string_view, 5> kBlackwellOnly = {
    "tcgen05.", "setmaxnreg.", "tcgen05::", "warpgroup_reg_", "SM100_MMA"};

template <class Words>
std::string first_of(std::string_view code, const Words& words) {
  for (std::string_view word : words)
    if (code.find(word) != std::string_view::npos)
      return std::string(word.substr(0, word.find_first_of(".:")));
  return "";
}

// Words of a source for torch 2.13 or newer, which compiles as C++20.
constexpr std::array<std::string_view, 8> kOnlyCxx20 = {
    "concept", "requires", "consteval", "constinit", "co_await", "co_return", "co_yield", "<=>"};
constexpr std::array<std::string_view, 12> kHeadersOfCxx20 = {
    "barrier", "bit",     "compare", "concepts",  "coroutine",       "format",
    "latch",   "numbers", "ranges",  "semaphore", "source_location", "span"};

template <class List>
bool is_of_cxx20(std::string_view word, const List& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool has_words_of_cxx20(std::string_view code) {
  if (std::none_of(kOnlyCxx20.begin(), kOnlyCxx20.end(),
                   [&](std::string_view word) { return code.find(word) != code.npos; }))
    return false;
  const auto tokens = tokens_of(code);
  if (!tokens) return false;
  for (size_t i = 0; i < tokens->size(); ++i) {
    const Token& token = (*tokens)[i];
    if (is_of_cxx20(token.text, kOnlyCxx20)) return true;
    // Two tokens side by side, and the first of three characters.
    if (token.text == "<" && code.substr(token.begin, 3) == "<=>") return true;
  }
  return false;
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
// Which name comes from which header. Cheap ones that the compat headers have themselves are not
// here.
constexpr Leak kLeaks[] = {
#define LEAK(word, header) {word, header},
#include "build/plan/leaks.def"
#undef LEAK
};

// "double half(": the source declares a function of this name. Nothing but a type stands there; a
// call has an operator or one of these words before it.
bool declares(std::string_view code, size_t at, size_t end) {
  end = code.find_first_not_of(" \t\r\n", end);
  size_t last = code.substr(0, at).find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos || code[end] != '(' || last == std::string_view::npos ||
      last + 1 == at || !is_word(code[last]))
    return false;
  size_t first = last;
  while (first > 0 && is_word(code[first - 1])) --first;
  std::string_view before = code.substr(first, last + 1 - first);
  for (std::string_view word :
       {"return", "throw", "else", "do", "case", "and", "or", "not", "operator"})
    if (before == word) return false;
  return true;
}

// Does the source use the name as one that it does not declare itself?
bool is_leaked(std::string_view code, std::string_view name) {
  bool used = false;
  for (size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    size_t end = at + name.size();
    if (at > 0 && is_word(code[at - 1])) continue;
    if (is_word(name.back()) && end < code.size() && is_word(code[end])) continue;
    if (declares(code, at, end)) return false;
    used = true;
  }
  return used;
}

std::set<std::string> leaked_headers(std::string_view code) {
  std::set<std::string> found;
  const bool all_of_std = code.find("using namespace std") != std::string_view::npos;
  for (const Leak& leak : kLeaks) {
    if (found.contains(std::string(leak.header))) continue;
    if (is_leaked(code, leak.word) ||
        (all_of_std && leak.word.starts_with("std::") && is_leaked(code, leak.word.substr(5))))
      found.emplace(leak.header);
  }
  if (code.find("_symint") != std::string_view::npos) found.emplace("kiln/compat/symint.h");
  return found;
}

struct Included {
  std::string name;
  bool quoted = false;
};

std::vector<Included> included_names(std::string_view code) {
  std::vector<Included> names;
  for (size_t at = code.find('#'); at != std::string_view::npos; at = code.find('#', at + 1)) {
    std::string_view rest = code.substr(at + 1, code.find('\n', at) - at - 1);
    rest = text::trim(rest);
    if (!rest.starts_with("include")) continue;
    rest = text::trim(rest.substr(7));
    if (rest.size() < 3 || (rest[0] != '"' && rest[0] != '<')) continue;
    size_t end = rest.find(rest[0] == '<' ? '>' : '"', 1);
    if (end != std::string_view::npos)
      names.push_back({std::string(rest.substr(1, end - 1)), rest[0] == '"'});
  }
  return names;
}

// What counts wherever it stands. A library's headers are many, and their text is looked through in
// each build.
SourceFacts scan_any(std::string_view code) {
  SourceFacts facts;
  const Lambdas lambdas = extended_lambdas(code);
  facts.extended_lambda = facts.own_lambda = lambdas.in_code || lambdas.in_macro;
  facts.macro_lambda = lambdas.in_macro;
  facts.defines_op = calls(code, "KILN_OP");
  facts.extern_c = code.find("extern \"C\"") != std::string_view::npos;
  facts.defines_main = defines_main(code);
  facts.defines_python_module = calls(code, "PYBIND11_MODULE");
  for (const Included& one : included_names(code)) {
    facts.kiln_header |= one.name.starts_with("kiln/");
    facts.only_cxx20 |= is_of_cxx20(one.name, kHeadersOfCxx20);
    if (!is_torch_header(one.name)) continue;
    if (facts.torch_header.empty()) facts.torch_header = one.name;
    facts.torch_headers.insert(one.name);
  }
  return facts;
}

SourceFacts scan_own(std::string_view code) {
  SourceFacts facts = scan_any(code);
  facts.only_cxx20 |= has_words_of_cxx20(code);
  // A source that asks has both forms.
  for (std::string_view asks : {"__cplusplus", "__cpp_", "__has_include"})
    if (code.find(asks) != code.npos) facts.only_cxx20 = false;
  facts.hopper_only = first_of(code, kHopperOnly);
  facts.blackwell_only = first_of(code, kBlackwellOnly);
  return facts;
}

}  // namespace

SourceFacts scan_text(std::string_view text) {
  std::string code = code_only(text);
  SourceFacts facts = scan_own(code);
  facts.leaked = leaked_headers(code);
  return facts;
}

SourceFacts scan_source(const sys::Files& files, const path& source,
                        const std::vector<path>& include_folders, const path& own) {
  SourceFacts facts;
  const std::string own_folder = (own.empty() ? source.parent_path() : own).string() + "/";
  std::set<std::string> seen, asked;
  std::vector<path> waiting = {source};
  auto find_in = [&](const path& folder, const std::string& name) {
    path file = folder / name;
    if (!files.state(file).is_file()) return false;
    waiting.push_back(std::move(file));
    return true;
  };
  while (!waiting.empty() && seen.size() < kMostFiles) {
    path file = waiting.back().lexically_normal();
    waiting.pop_back();
    if (!seen.insert(file.string()).second) continue;
    if (const uint64_t bytes = files.state(file).size_bytes; bytes > kMostSourceBytes) {
      facts.unreadable = fmt::format("{} has {} bytes; a source has at most {}", file.string(),
                                     bytes, kMostSourceBytes);
      break;
    }
    auto content = files.read(file);
    if (!content) {
      // A compiler would wait for a pipe forever.
      if (content.error().why.ends_with("not a regular file"))
        facts.unreadable = fmt::format("{}: {}", file.string(), content.error().why);
      continue;
    }
    const std::string code = code_only(*content);
    const bool is_source = file == source.lexically_normal();
    const bool is_own = is_source || file.string().starts_with(own_folder);
    SourceFacts here = is_own ? scan_own(code) : scan_any(code);
    facts.extended_lambda |= here.extended_lambda;
    facts.own_lambda |= here.macro_lambda || (is_source && here.own_lambda);
    facts.defines_op |= here.defines_op;
    facts.defines_main |= here.defines_main;
    facts.defines_python_module |= here.defines_python_module;
    if (facts.torch_header.empty()) facts.torch_header = here.torch_header;
    facts.torch_headers.merge(here.torch_headers);
    facts.kiln_header |= here.kiln_header;
    facts.only_cxx20 |= is_own && here.only_cxx20;
    facts.extern_c |= is_source && here.extern_c;
    if (facts.hopper_only.empty()) facts.hopper_only = here.hopper_only;
    if (facts.blackwell_only.empty()) facts.blackwell_only = here.blackwell_only;
    for (const Included& one : included_names(code)) {
      // Thousands, which compile without the flag, and whose names are not what the source relies
      // on.
      if (is_torch_header(one.name)) continue;
      if (one.quoted && find_in(file.parent_path(), one.name)) continue;
      if (!asked.insert(one.name).second) continue;
      for (const path& folder : include_folders)
        if (find_in(folder, one.name)) break;
    }
  }
  if (!facts.torch_header.empty())
    for (const std::string& file : seen)
      if (auto content = files.read(file)) facts.leaked.merge(leaked_headers(code_only(*content)));
  // A module's PyInit_ beside sources that use torch.
  if (asked.contains("Python.h")) facts.leaked.insert("Python.h");
  // More than was looked at: take the safe side.
  if (!waiting.empty()) facts.extended_lambda = facts.own_lambda = true;
  return facts;
}

}  // namespace kiln::build
