// SPDX-License-Identifier: Apache-2.0
// Which parts of a source are device code alone?
#include "build/edit/device_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "build/edit/macros.h"
#include "build/plan/source_tokens.h"

namespace kiln::build {

namespace {

class Items {
 public:
  explicit Items(const std::vector<Token>& tokens) : tokens_(tokens) {}

  std::optional<std::vector<Item>> run() {
    while (at_ < tokens_.size()) {
      const Token& token = tokens_[at_];
      if (token.text[0] == '#') {
        if (begun_) return std::nullopt;  // in the middle of a declaration
        items_.push_back({ItemKind::Other, token.begin, token.end, 0, 0, ""});
        ++at_;
      } else if (token.text == "}") {
        if (begun_ || depth_-- == 0) return std::nullopt;
        ++at_;
      } else if (token.text == ";") {
        end_declaration();
      } else if (token.text == "{") {
        if (!open_brace()) return std::nullopt;
      } else if (token.text == "(" || token.text == "[") {
        begin_declaration();
        if (!skip_matching()) return std::nullopt;
      } else {
        begin_declaration();
        ++at_;
      }
    }
    if (begun_ || depth_ != 0) return std::nullopt;
    return std::move(items_);
  }

 private:
  void begin_declaration() {
    if (!begun_) first_ = at_;
    begun_ = true;
  }

  bool has(std::string_view word) const {
    return std::any_of(tokens_.begin() + static_cast<long>(first_),
                       tokens_.begin() + static_cast<long>(at_),
                       [&](const Token& token) { return token.text == word; });
  }

  // `A::A() : x{1} {}`: the first brace is not the body's.
  bool has_initialisers() const {
    for (size_t i = first_ + 1; i + 1 < at_; ++i)
      if (tokens_[i].text == ":" && tokens_[i - 1].text == ")" && tokens_[i + 1].text != ":")
        return true;
    return false;
  }

  // Behind the bracket that closes the one here; no directive may be between.
  bool skip_matching() {
    int depth = 0;
    for (; at_ < tokens_.size(); ++at_) {
      std::string_view text = tokens_[at_].text;
      if (text[0] == '#' && directive_name(text) != "pragma") return false;
      if (text == "(" || text == "[" || text == "{") ++depth;
      if (text == ")" || text == "]" || text == "}") --depth;
      if (depth == 0) {
        ++at_;
        return true;
      }
    }
    return false;
  }

  // The word before the first parenthesis that is not a mark's.
  std::string function_name() const {
    for (size_t i = first_ + 1; i < at_; ++i)
      if (tokens_[i].text == "(" && is_word(tokens_[i - 1].text[0]) &&
          !tokens_[i - 1].text.starts_with("__"))
        return std::string(tokens_[i - 1].text);
    return "";
  }

  bool open_brace() {
    if (!begun_) {
      begin_declaration();
      return skip_matching() && (begun_ = false, true);
    }
    bool is_namespace = has("namespace") || (has("extern") && at_ == first_ + 2);
    if (is_namespace) {
      begun_ = false;
      ++depth_;
      ++at_;
      return true;
    }
    bool is_type = has("class") || has("struct") || has("union") || has("enum");
    bool is_value = has("=") && !has("operator");
    // `template <class T> void f()`: the word is in the list of the template.
    bool is_function =
        has("(") && tokens_[at_ - 1].text != "=" && !is_value && (!is_type || has("template"));
    size_t open = at_;
    if (!skip_matching()) return false;
    Item item{ItemKind::Other,   tokens_[first_].begin,  tokens_[at_ - 1].end,
              tokens_[open].end, tokens_[at_ - 1].begin, ""};
    if (is_function) classify(item, open);
    if (item.kind == ItemKind::Other) {
      // A type may go on: `struct {..} x;`; so may an initialiser.
      begun_ = !is_function;
      return true;
    }
    items_.push_back(std::move(item));
    begun_ = false;
    return true;
  }

  void classify(Item& item, size_t open) {
    size_t here = std::exchange(at_, open);
    bool device = has("__global__") || has("__device__");
    // What the host may look into: its value at compile time, its type, its own copy.
    bool shared_with_host = has("__host__") || has("constexpr") || has("consteval") ||
                            has("auto") || has("decltype") || has("concept") || has("requires") ||
                            has_initialisers();
    item.name = function_name();
    at_ = here;
    if (device && !shared_with_host) item.kind = ItemKind::Device;
    if (!device && !shared_with_host) item.kind = ItemKind::HostFunction;
  }

  void end_declaration() {
    if (begun_) {
      const Token& first = tokens_[first_];
      bool macro = first_ + 1 < at_ && tokens_[first_ + 1].text == "(" &&
                   std::all_of(first.text.begin(), first.text.end(), [](char c) {
                     return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                   });
      items_.push_back(
          {macro ? ItemKind::Statement : ItemKind::Other, first.begin, tokens_[at_].end, 0, 0, ""});
    }
    begun_ = false;
    ++at_;
  }

  const std::vector<Token>& tokens_;
  std::vector<Item> items_;
  size_t at_ = 0, first_ = 0;
  int depth_ = 0;
  bool begun_ = false;
};

size_t lines_in(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The words of a body that may be macros of headers that nobody looked at, in their order. Where an
// edit leaves them as they are, so are their effects.
std::vector<std::string_view> unclear_words(const std::vector<Token>& tokens,
                                            const Macros& macros) {
  std::vector<std::string_view> words;
  for (const Token& token : tokens)
    if (macros.is_unclear(token.text)) words.push_back(token.text);
  return words;
}

// Why an edit of a body may change what the preprocessor makes of the text behind it.
std::string why_body_matters(std::string_view before, std::string_view after,
                             const Macros& macros) {
  auto old_tokens = tokens_of(before), new_tokens = tokens_of(after);
  if (!old_tokens || !new_tokens) return "a kernel's body cannot be parsed";
  for (std::string_view body : {before, after})
    if (std::string why = why_reaches_out(body); !why.empty()) return "a kernel's body has " + why;
  for (const auto* tokens : {&*old_tokens, &*new_tokens})
    for (const Token& token : *tokens)
      if (std::string why = macros.reach_of(token.text); !why.empty())
        return fmt::format("a kernel's body uses the macro '{}', which has {}", token.text, why);
  const auto old_words = unclear_words(*old_tokens, macros);
  const auto new_words = unclear_words(*new_tokens, macros);
  if (old_words == new_words) return "";
  auto [was, is] =
      std::mismatch(old_words.begin(), old_words.end(), new_words.begin(), new_words.end());
  return fmt::format("'{}' in a kernel's body may be a macro of a header",
                     is != new_words.end() ? *is : *was);
}

// Outside of parentheses and of a template's list a macro may be anything, `__host__` too. Macros
// of headers that are not the user's have no small letters.
std::string macro_in_head(std::string_view head, const std::string& name, const Macros& macros) {
  auto tokens = tokens_of(head);
  if (!tokens) return "its text";
  int depth = 0, list_depth = 0;
  for (size_t i = 0; i < tokens->size(); ++i) {
    const Token& token = (*tokens)[i];
    if (token.text == "(") ++depth;
    if (token.text == ")") --depth;
    bool opens_list =
        token.text == "<" && (list_depth > 0 || (i > 0 && (*tokens)[i - 1].text == "template"));
    if (depth == 0 && opens_list) ++list_depth;
    if (depth == 0 && list_depth > 0 && token.text == ">") --list_depth;
    if (depth > 0 || list_depth > 0 || !is_word(token.text[0])) continue;
    bool capitals = token.text.size() > 1 && token.text[0] > '9' && token.text != name &&
                    std::none_of(token.text.begin(), token.text.end(),
                                 [](char c) { return c >= 'a' && c <= 'z'; });
    if (capitals || macros.contains(token.text)) return std::string(token.text);
  }
  return "";
}

// Something in the host's text below that may tell its line: __LINE__ and whatever may be a macro
// that has it.
std::string line_teller(std::string_view host_text, const Macros& macros) {
  auto tokens = tokens_of(host_text);
  if (!tokens) return "the text below";
  for (const Token& token : *tokens) {
    bool word = is_word(token.text[0]) && !(token.text[0] >= '0' && token.text[0] <= '9');
    bool upper = word && token.text.size() > 1 &&
                 std::none_of(token.text.begin(), token.text.end(),
                              [](char c) { return c >= 'a' && c <= 'z'; });
    if (upper || macros.contains(token.text) || token.text == "assert" ||
        token.text == "source_location" || token.text == "__builtin_LINE")
      return std::string(token.text);
  }
  return "";
}

// Do two texts differ in empty lines alone, so that every compiler sees the same words and
// directives in them? Not where a line goes on in the next one, nor in a raw string, to which an
// empty line belongs.
bool same_but_for_empty_lines(std::string_view before, std::string_view after) {
  auto lines_with_text = [](std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::string_view line : text::lines(text))
      if (std::string_view plain = text::trim(line); !plain.empty()) lines.push_back(plain);
    return lines;
  };
  for (std::string_view text : {before, after})
    if (text.find("\\\n") != text.npos || text.find("\\\r") != text.npos ||
        text.find("R\"") != text.npos)
      return false;
  return lines_with_text(before) == lines_with_text(after);
}

// Where the part of `after` begins whose lines are others than in `before`. From the beginning of a
// function or statement on: __LINE__ in a macro's use of several lines is the line of the last one.
// `at`: of `after` in its source.
size_t first_moved(std::string_view before, std::string_view after, const std::vector<Item>& items,
                   size_t at) {
  const auto differs =
      std::mismatch(before.begin(), before.end(), after.begin(), after.end()).second;
  const size_t found = static_cast<size_t>(differs - after.begin());
  for (const Item& item : items)
    if (item.begin < at + found && at + found < item.end)
      return item.begin > at ? item.begin - at : 0;
  return found;
}

bool is_condition(std::string_view directive) {
  const std::string name = directive_name(directive);
  return name == "if" || name == "ifdef" || name == "ifndef" || name == "elif" ||
         name == "elifdef" || name == "elifndef";
}

// What means something else to NVRTC than to nvcc, or may. Of the words that compilers define it
// knows others and other values. Overloads for operands of two types, and what asks whether a
// number is finite, have other types there: fmax(1.0f, 2) is a float, and in nvcc a double, as
// g++'s headers have it.
bool nvrtc_differs_in(std::string_view word) {
  static const std::set<std::string_view> kDiffer = {
      "assert", "typeid", "va_list",  "pow",     "fmin",     "fmax",     "fmod",
      "atan2",  "hypot",  "copysign", "fdim",    "fma",      "remquo",   "nextafter",
      "isnan",  "isinf",  "isfinite", "signbit", "isnormal", "remainder"};
  static const std::set<std::string_view> kSame = {
      "__global__",  "__device__",        "__host__",         "__shared__",   "__constant__",
      "__managed__", "__restrict__",      "__forceinline__",  "__noinline__", "__launch_bounds__",
      "__align__",   "__grid_constant__", "__cluster_dims__", "__maxnreg__",  "__attribute__",
      "__asm__",     "__volatile__",      "__inline__",       "__func__",     "__LINE__",
      "__VA_ARGS__", "__VA_OPT__",        "__CUDA_ARCH__",    "__CUDACC__",   "__block_size__",
      "__nv_pure__"};
  if (kDiffer.contains(word)) return true;
  if (word.starts_with("__has_")) return true;
  return word.starts_with("__") && word.ends_with("__") && word.size() > 4 && !kSame.contains(word);
}

// Did the compiler leave the body out of the host's code? It tells by lines: the function must be
// alone on that in which its body begins.
bool is_hidden_from_host(std::string_view text, const std::vector<Item>& items, const Item& item,
                         const Surroundings& around) {
  if (!around.hidden_bodies) return true;
  const size_t brace = item.body_begin - 1;
  const size_t begin = text.rfind('\n', brace) + 1;  // 0 where there is none
  const size_t end = std::min(text.find('\n', brace), text.size());
  for (const Item& other : items) {
    // `#line 7` or `# 7`: the compiler counts otherwise.
    std::string_view words = text.substr(other.begin, other.end - other.begin);
    if (words.starts_with('#') &&
        (directive_name(words) == "line" || directive_name(words).empty()))
      return false;
    if (other.begin != item.begin && other.begin < end && other.end > begin) return false;
  }
  return around.hidden_bodies->contains(lines_in(text.substr(0, brace)) + 1);
}

}  // namespace

std::optional<std::vector<Item>> items_of(std::string_view text) {
  auto tokens = tokens_of(text);
  if (!tokens) return std::nullopt;
  return Items(*tokens).run();
}

std::string why_host_changes(std::string_view old_text, std::string_view new_text,
                             const Surroundings& around) {
  const Macros& macros = around.macros;
  const auto old_plain = without_comments(old_text), new_plain = without_comments(new_text);
  if (!old_plain || !new_plain) return "the source's structure cannot be parsed";
  const std::string_view before = *old_plain, after = *new_plain;
  auto old_items = items_of(before), new_items = items_of(after);
  if (!old_items || !new_items) return "the source's structure cannot be parsed";
  auto bodies = [](const std::vector<Item>& items) {
    std::vector<Item> out;
    for (const Item& item : items)
      if (item.kind == ItemKind::Device) out.push_back(item);
    return out;
  };
  std::vector<Item> old_bodies = bodies(*old_items), new_bodies = bodies(*new_items);
  if (old_bodies.size() != new_bodies.size()) return "a device function was added or removed";
  size_t old_at = 0, new_at = 0;
  bool moved = false;
  std::string moved_by;
  for (size_t i = 0; i <= old_bodies.size(); ++i) {
    size_t old_end = i < old_bodies.size() ? old_bodies[i].body_begin : before.size();
    size_t new_end = i < new_bodies.size() ? new_bodies[i].body_begin : after.size();
    std::string_view between = after.substr(new_at, new_end - new_at);
    std::string_view below = between;  // what has another line than before
    if (std::string_view was = before.substr(old_at, old_end - old_at); was != between) {
      if (!same_but_for_empty_lines(was, between)) return "text outside kernel bodies changed";
      if (!moved) below.remove_prefix(first_moved(was, between, *new_items, new_at));
      if (!moved) moved_by = "an added or removed line";
      moved = true;
    }
    if (moved) {
      if (!around.line_teller.empty())
        return fmt::format("lines moved, and '{}' may tell them to the host", around.line_teller);
      if (std::string teller = line_teller(below, macros); !teller.empty())
        return fmt::format("lines moved, and '{}' below {} may depend on its line number", teller,
                           moved_by);
    }
    if (i == old_bodies.size()) break;
    const Item &was = old_bodies[i], &is = new_bodies[i];
    std::string_view old_body = before.substr(was.body_begin, was.body_end - was.body_begin);
    std::string_view new_body = after.substr(is.body_begin, is.body_end - is.body_begin);
    if (old_body != new_body) {
      if (!is_hidden_from_host(before, *old_items, was, around))
        return fmt::format("the host compiles the body of {} too", was.name);
      if (std::string why = why_body_matters(old_body, new_body, macros); !why.empty()) return why;
      std::string_view head = after.substr(is.begin, is.body_begin - is.begin);
      if (std::string macro = macro_in_head(head, is.name, macros); !macro.empty())
        return fmt::format("'{}' before the body of {} may make it host code too", macro, is.name);
      if (lines_in(old_body) != lines_in(new_body)) {
        moved = true;
        moved_by = is.name;
      }
    }
    old_at = was.body_end;
    new_at = is.body_end;
  }
  return "";
}

std::set<std::string> names_in_conditions(std::string_view text, const Macros& macros) {
  std::set<std::string> names;
  const auto plain = without_comments(text);
  const auto tokens = plain ? tokens_of(*plain) : std::nullopt;
  if (!tokens) return names;
  for (const Token& token : *tokens) {
    if (token.text[0] != '#' || !is_condition(token.text)) continue;
    std::string_view rest = token.text.substr(token.text.find(directive_name(token.text)));
    rest.remove_prefix(directive_name(token.text).size());
    auto is_end = [](char c) { return !is_word(c); };
    for (auto at = rest.begin(); at != rest.end();) {
      auto begin = std::find_if(at, rest.end(), is_word);
      at = std::find_if(begin, rest.end(), is_end);
      std::string word(begin, at);
      if (word.empty() || (word[0] >= '0' && word[0] <= '9') || word == "defined") continue;
      names.merge(macros.words_behind(word));
    }
  }
  return names;
}

std::string why_nvrtc_may_differ(std::string_view text) {
  auto tokens = tokens_of(text);
  if (!tokens) return "its structure cannot be parsed";
  for (size_t i = 0; i < tokens->size(); ++i) {
    std::string_view word = (*tokens)[i].text;
    if (nvrtc_differs_in(word)) return fmt::format("it has '{}'", word);
    if (word == "namespace" && i + 1 < tokens->size() && (*tokens)[i + 1].text == "{")
      return "it has an anonymous namespace, whose mangled names contain the path";
    if (word[0] != '#') continue;
    if (!is_condition(word)) continue;
    for (std::string_view part : text::split_any(word.substr(1), " \t()!&|<>=+-*/\\\n")) {
      if (nvrtc_differs_in(part)) return fmt::format("it has '{}'", part);
      if (part.starts_with("__") && !part.starts_with("__CUDA_ARCH") && part != "__CUDACC__")
        return fmt::format("a condition depends on {}", part);
    }
  }
  return "";
}

Slice slice_of(std::string_view text) {
  auto items = items_of(text);
  if (!items) return {"", "the source's structure cannot be parsed"};
  std::string out(text);
  std::set<std::string> host_names;
  for (const Item& item : *items) {
    if (item.kind != ItemKind::HostFunction && item.kind != ItemKind::Statement) continue;
    if (!item.name.empty()) host_names.insert(item.name);
    for (size_t i = item.begin; i < item.end; ++i)
      if (out[i] != '\n') out[i] = ' ';
  }
  if (std::string why = why_nvrtc_may_differ(out); !why.empty()) return {"", why};
  auto tokens = tokens_of(out);
  if (!tokens) return {"", "the source's structure cannot be parsed"};
  for (const Token& token : *tokens)
    if (host_names.contains(std::string(token.text)))
      return {"", fmt::format("device code uses the host's '{}'", token.text)};
  return {std::move(out), ""};
}

}  // namespace kiln::build
