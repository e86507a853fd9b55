// SPDX-License-Identifier: Apache-2.0
// What did a build with the compat headers lack, and what follows from it?
#include "build/plan/lacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "build/plan/light_headers.h"
#include "build/plan/source_tokens.h"
#include "project/own_cache.h"

namespace kiln::build {

namespace {

constexpr int kMemoryVersion = 2;
constexpr size_t kSourceDigits = 16;

// By the file, which may be edited, and by its content, which another checkout has too.
Result<fs::path> memory_file(std::string_view what, const World& world) {
  TRY(fs::path cache, project::own_cache_folder(world.files, world.env));
  return cache / "compat" / (hash_hex(what).substr(0, kSourceDigits) + ".json");
}

// "/w/add.h" of "/w/add.h:14:7" and of "/w/add.h(14)".
fs::path file_of(std::string_view place) {
  for (size_t at = place.find_first_of(":("); at != std::string_view::npos;
       at = place.find_first_of(":(", at + 1))
    if (at + 1 < place.size() && place[at + 1] >= '0' && place[at + 1] <= '9')
      return place.substr(0, at);
  return place;
}

bool still_lacks(const std::string& hash, const std::string& symbol,
                 const Result<std::string>& content) {
  if (!content) return false;
  return hash == hash_hex(*content) ||
         (!symbol.empty() && content->find(symbol) != std::string::npos);
}

// A memory holds while the kiln is the same, and the source, and the header in which something was
// lacking, are as they were or still name it.
std::optional<Lack> remembered_in(const fs::path& file, const Source& source,
                                  const std::string& content, const World& world) {
  auto text = world.files.read(file);
  auto json = text ? parse_json(*text, "compat memory") : Result<Json>(Json());
  if (!json || !json->is_object() || json->value("kiln_compat", 0) != kMemoryVersion)
    return std::nullopt;
  if (json->value("version", "") != KILN_VERSION_STRING) return std::nullopt;
  std::string symbol = json->value("symbol", ""), header = json->value("header", "");
  if (!still_lacks(json->value("content", ""), symbol, content)) return std::nullopt;
  // Beside the source, wherever the checkout is.
  if (!header.empty() && !still_lacks(json->value("header_content", ""), symbol,
                                      world.files.read(source.file.parent_path() / header)))
    return std::nullopt;
  Lack lack{source.shown, json->value("place", ""), symbol};
  for (const Json& one : json->value("added", Json::array()))
    if (one.is_string()) lack.added.insert(one.get<std::string>());
  return lack;
}

// Whose fault is it? A syntax error is the author's, and another minute with torch's headers
// would not fix it.
constexpr std::string_view kOwnSigns[] = {"expected a ",
                                          "expected an ",
                                          "expected ';'",
                                          "expected '}'",
                                          "expected ‘",
                                          "unrecognized token",
                                          "unterminated",
                                          "missing terminating",
                                          "invalid preprocessing directive",
                                          "without #if",
                                          "missing closing quote",
                                          "stray ‘",
                                          "was not declared in this scope; did you mean ‘std::",
                                          "unrecognized command",
                                          "nvcc fatal",
                                          "Unknown option",
                                          "ptxas "};

std::string_view quoted(std::string_view line) {
  for (auto [open, close] : {std::pair<std::string_view, std::string_view>{"\"", "\""},
                             {"‘", "’"},
                             {"'", "'"},
                             {"`", "'"}}) {
    size_t begin = line.find(open);
    if (begin == std::string_view::npos) continue;
    size_t end = line.find(close, begin + open.size());
    if (end != std::string_view::npos)
      return line.substr(begin + open.size(), end - begin - open.size());
  }
  return {};
}

bool is_own_mistake(std::string_view line) {
  return std::any_of(std::begin(kOwnSigns), std::end(kOwnSigns),
                     [&](std::string_view sign) { return line.find(sign) != line.npos; });
}

bool looks_like_torchs_macro(std::string_view word) {
  const bool small =
      std::any_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (small) return false;
  for (std::string_view prefix : {"TORCH_", "C10_", "AT_", "PYBIND11_", "CAFFE2_", "TENSOR_"})
    if (word.starts_with(prefix)) return true;
  return false;
}

// A macro that nobody defined is a word too many, and what follows it a syntax error: one of
// torch's in the line that the compiler shows below its message.
std::vector<std::string> torchs_macros(std::string_view log, std::string_view message) {
  constexpr int kShownLines = 3;
  std::vector<std::string> macros;
  const size_t at = static_cast<size_t>(message.data() - log.data());
  int shown = 0;
  for (std::string_view line : text::lines(log.substr(at))) {
    if (shown++ > kShownLines) break;
    if (shown > 1 && line.find("error") != line.npos) break;
    auto is_end = [](char c) { return !is_word(c); };
    for (auto from = line.begin(); from != line.end();) {
      auto begin = std::find_if(from, line.end(), is_word);
      from = std::find_if(begin, line.end(), is_end);
      if (std::string word(begin, from); looks_like_torchs_macro(word))
        macros.push_back(std::move(word));
    }
  }
  return macros;
}

// Does a header in the folder, or below it, have "#define NAME"?
bool defines_macro(const fs::path& folder, const std::string& name, const sys::Files& files) {
  std::vector<fs::path> waiting = {folder};
  while (!waiting.empty()) {
    const fs::path path = waiting.back();
    waiting.pop_back();
    if (!files.state(path).is_file()) {
      for (const std::string& entry : files.list(path)) waiting.push_back(path / entry);
      continue;
    }
    auto content = files.read(path);
    const std::string sign = "define " + name;
    for (size_t at = content ? content->find(sign) : std::string::npos; at != std::string::npos;
         at = content->find(sign, at + 1))
      if (at + sign.size() == content->size() || !is_word((*content)[at + sign.size()]))
        return true;
  }
  return false;
}

// gcc quotes by the locale, nvcc in a manner of its own; the inline namespace is kiln's.
std::string plainly(std::string_view message) {
  std::string out = text::replace_all(message, "::kc", "");
  for (std::string_view quote : {"‘", "’", "\"", "`"}) out = text::replace_all(out, quote, "'");
  return out;
}

// `namespace "pybind11" has no member "class_"`: the last quoted word says more than the first.
std::string symbol_in(std::string_view message) {
  if (size_t at = message.find(": No such file or directory"); at != std::string_view::npos) {
    std::string_view name = text::trim(message.substr(0, at));
    return std::string(
        name.substr(name.rfind(' ') == std::string_view::npos ? 0 : name.rfind(' ') + 1));
  }
  size_t member = message.find("has no member");
  if (member != std::string_view::npos) return std::string(quoted(message.substr(member)));
  return std::string(quoted(message));
}

// `no matching function for call to 'exp(c10::complex<float>&)'`, and of nvcc, whose next line has
// the types: `no instance of overloaded function "std::exp" matches the argument list`.
bool is_complex_function(const std::string& symbol, const std::string& message) {
  if (message.find("no instance of overloaded function") == std::string::npos)
    return message.find("c10::complex<") != std::string::npos;
  std::string_view name = symbol;
  name.remove_prefix(name.starts_with("std::") ? 5 : name.starts_with("::") ? 2 : 0);
  for (std::string_view one : {"exp", "log",   "log10", "log2",  "sqrt", "pow",  "sin",  "cos",
                               "tan", "asin",  "acos",  "atan",  "sinh", "cosh", "tanh", "abs",
                               "arg", "asinh", "acosh", "atanh", "norm", "real", "imag", "conj"})
    if (name == one) return true;
  return false;
}

}  // namespace

std::optional<Lack> what_compat_lacks(const Error& error, const Plan& plan,
                                      const sys::Files& files) {
  if (error.fault != Fault::Work) return std::nullopt;
  if (error.why.find(kMixedSign) != std::string::npos)
    return Lack{plan.sources[0].shown, "", std::string(quoted(std::string_view(error.why))), true};
  for (std::string_view line : text::lines(error.why)) {
    size_t at = line.find("error");
    bool undefined = line.find("undefined reference to") != std::string_view::npos;
    if (at == std::string_view::npos && !undefined) continue;
    std::string macro;
    if (is_own_mistake(line)) {
      for (const std::string& word : torchs_macros(error.why, line))
        if (macro.empty() && !defines_macro(plan.home.compat(), word, files)) macro = word;
      const bool ours = line.substr(0, line.find("error")).find(plan.home.compat().string()) !=
                        std::string_view::npos;
      if (macro.empty() && !ours) return std::nullopt;
    }
    std::string_view message =
        undefined ? line.substr(line.find("undefined reference")) : line.substr(at);
    std::string place(text::trim(undefined ? line.substr(0, line.find("undefined reference"))
                                           : line.substr(0, at)));
    if (place.ends_with("fatal")) place.resize(place.size() - 5);
    while (place.ends_with(':') || place.ends_with(' ')) place.pop_back();
    std::string symbol = symbol_in(message);
    // `name followed by "::" must be a class or namespace name` quotes no name.
    if (std::none_of(symbol.begin(), symbol.end(), is_word))
      symbol = text::trim(message.starts_with("error: ") ? message.substr(7) : message);
    Lack lack{plan.sources[0].shown, place, macro.empty() ? symbol : macro};
    lack.message = message;
    for (const Source& source : plan.sources)
      if (error.what.ends_with(source.file.filename().string())) lack.source = source.shown;
    return lack;
  }
  return std::nullopt;
}

std::optional<Lack> remembered(const Source& source, const World& world) {
  auto content = world.files.read(source.file);
  if (!content) return std::nullopt;
  for (const std::string& what : {source.file.string(), *content}) {
    auto file = memory_file(what, world);
    if (!file) continue;
    if (auto lack = remembered_in(*file, source, *content, world)) return lack;
  }
  return std::nullopt;
}

void remember_lack(const Plan& plan, const World& world, const Lack& lack) {
  for (const Source& source : plan.sources) {
    if (source.shown != lack.source) continue;
    auto content = world.files.read(source.file);
    if (!content) return;
    Json memory = {{"kiln_compat", kMemoryVersion},
                   {"version", KILN_VERSION_STRING},
                   {"source", source.file.string()},
                   {"symbol", lack.symbol},
                   {"place", lack.place},
                   {"added", lack.added},
                   {"content", hash_hex(*content)}};
    fs::path header = file_of(lack.place);
    const bool own = header.string().starts_with(plan.home.compat().string());
    auto of_header = header.is_absolute() && header != source.file && !own
                         ? world.files.read(header)
                         : Result<std::string>(Error{});
    if (of_header) {
      memory["header"] = header.lexically_relative(source.file.parent_path()).string();
      memory["header_content"] = hash_hex(*of_header);
    }
    for (const std::string& what : {source.file.string(), *content}) {
      auto file = memory_file(what, world);
      if (!file) return;
      (void)world.files.make_directories(file->parent_path());
      (void)world.files.write(*file, dump(memory), sys::Durable::No);
    }
  }
}

std::set<std::string> headers_with(const Lack& lack, const Plan& plan, const sys::Files& files) {
  // A name per line.
  auto more = files.read(plan.home.compat() / "kiln/compat/generated/more_names.txt");
  for (std::string_view name : text::lines(more ? std::string_view(*more) : std::string_view()))
    if (name == lack.symbol) return {std::string(kMoreOpsHeader)};
  const std::string message = plainly(lack.message);
  for (std::string_view sign : {"cannot cross from Python", "'py'", "'pybind11", "pybind11::"})
    if (message.find(sign) != std::string::npos) return {std::string(kPybindHeader)};
  if (is_complex_function(lack.symbol, message)) return {std::string(kComplexHeader)};
  return {};
}

bool is_in_torchs_scope(const Lack& lack) {
  if (looks_like_torchs_macro(lack.symbol)) return true;
  const std::string message = plainly(lack.message);
  for (std::string_view sign :
       {"member of 'torch'", "member of 'at'", "member of 'c10'", "namespace 'torch'",
        "namespace 'at'", "namespace 'c10'", "'class at::Tensor' has no member",
        "'at::Tensor' has no member", "'struct at::Tensor' has no member"})
    if (message.find(sign) != std::string::npos) return true;
  return false;
}

bool torch_knows(const fs::path& package, const std::string& name, const sys::Files& files) {
  const fs::path include = package / "include";
  const fs::path ops = include / "ATen" / "ops";
  for (std::string_view ending : {"", "_", "_out", "_outf", "_symint", "_symint_out"})
    if (name.ends_with(ending) &&
        files.state(ops / (name.substr(0, name.size() - ending.size()) + ".h")).is_file())
      return true;
  // Those that are written by hand.
  std::vector<fs::path> waiting = {ops / "from_blob.h", ops / "tensor.h"};
  for (const char* folder : {"ATen", "c10", "torch", "pybind11", "caffe2"})
    waiting.push_back(include / folder);
  while (!waiting.empty()) {
    const fs::path path = waiting.back();
    waiting.pop_back();
    if (path.filename() == "ops") continue;  // a header per op, seen above
    if (!files.state(path).is_file()) {
      for (const std::string& entry : files.list(path)) waiting.push_back(path / entry);
      continue;
    }
    auto content = files.read(path);
    for (size_t at = content ? content->find(name) : std::string::npos; at != std::string::npos;
         at = content->find(name, at + 1)) {
      const size_t end = at + name.size();
      const bool whole = (at == 0 || !is_word((*content)[at - 1])) &&
                         (end == content->size() || !is_word((*content)[end]));
      if (whole) return true;
    }
  }
  return false;
}

bool is_header(const Lack& lack) {
  return lack.message.find(": No such file or directory") != std::string::npos;
}

bool has_header(const std::vector<fs::path>& folders, const std::string& name,
                const sys::Files& files) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const fs::path& folder) { return files.state(folder / name).is_file(); });
}

Error unknown_header(Error error, const Lack& lack, const std::vector<fs::path>& folders,
                     const sys::Files& files) {
  std::vector<std::string> beside;
  const fs::path folder = fs::path(lack.symbol).parent_path();
  if (!folder.empty())
    for (const fs::path& one : folders)
      for (const std::string& entry : files.list(one / folder))
        beside.push_back((folder / entry).string());
  auto meant = text::closest(lack.symbol, beside);
  error.fix = fmt::format("torch has no {} either; {}", lack.symbol,
                          meant ? fmt::format("did you mean {}?", *meant)
                                : "say with -I FOLDER where it is, or install what it belongs to");
  return error;
}

Error unknown_name(Error error, const Lack& lack, const fs::path& package,
                   const sys::Files& files) {
  std::vector<std::string> ops;
  for (const std::string& entry : files.list(package / "include" / "ATen" / "ops"))
    if (entry.ends_with(".h") && entry.find("_native") == std::string::npos)
      ops.push_back(entry.substr(0, entry.size() - 2));
  error.fix = fmt::format("torch has no {} either", lack.symbol);
  if (auto meant = text::closest(lack.symbol, ops))
    error.fix += fmt::format("; did you mean {}?", *meant);
  return error;
}

std::string fallback_note(const Lack& lack, size_t sources) {
  // Measured: 25 to 60 CPU seconds per source with torch 2.11.
  const std::string long_time =
      sources < 4 ? "which takes about a minute"
                  : fmt::format("which takes about a minute for each of {} sources", sources);
  if (lack.mixed)
    return fmt::format(
        "{}: {} is in an object that was compiled with torch's own headers: building with those, "
        "{}",
        lack.source, lack.symbol, long_time);
  return fmt::format("{}: kiln's compat headers lack {}: building with torch's own headers, {}",
                     lack.place.empty() ? lack.source : lack.place, lack.symbol, long_time);
}

}  // namespace kiln::build
