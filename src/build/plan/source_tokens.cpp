// SPDX-License-Identifier: Apache-2.0
// What are the words of a CUDA source, and which of its text is comment?
#include "build/plan/source_tokens.h"

#include <utility>

#include "base/text.h"

namespace kiln::build {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

struct Range {
  size_t begin = 0, end = 0;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // False for what has no end or cannot be followed.
  bool run() {
    // Trigraphs, which C++14 knows: a backslash joins lines, "?\?=" begins a directive.
    for (char c : std::string_view("=/'()!<>-"))
      if (text_.find(std::string("?\?") + c) != std::string_view::npos) return false;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        line_begins_ = true;
        ++at_;
      } else if (is_blank(c)) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        size_t begin = at_;
        if (!skip_line()) return false;
        comments_.push_back({begin, at_});
      } else if (text_.substr(at_, 2) == "/*") {
        if (!block_comment()) return false;
      } else if (c == '#' && line_begins_) {
        if (!directive()) return false;
      } else if (!take(c)) {
        return false;
      }
    }
    return true;
  }

  std::vector<Token> tokens() { return std::move(tokens_); }
  std::vector<Range> comments() { return std::move(comments_); }

 private:
  void add(size_t begin, size_t end) {
    tokens_.push_back({text_.substr(begin, end - begin), begin, end});
  }

  // Where the line ends whose backslash is here, if blanks alone follow it: gcc joins the next one
  // to it all the same.
  bool joins_after_blanks(size_t backslash) const {
    size_t at = backslash + 1;
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return at > backslash + 1 && at < text_.size() && text_[at] == '\n';
  }

  // To the end of the line, with those that a backslash joins to it.
  bool skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (text_[at_] == '\\') {
        if (joins_after_blanks(at_)) return false;
        if (at_ + 1 < text_.size()) ++at_;
      }
      ++at_;
    }
    return true;
  }

  bool block_comment() {
    size_t begin = at_, end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) return false;
    // A star and a slash in two joined lines end it too.
    for (size_t star = text_.find("*\\", begin); star < end; star = text_.find("*\\", star + 1))
      if (joins_after_blanks(star + 1) || text_.substr(star + 2, 1) == "\n") return false;
    at_ = end + 2;
    comments_.push_back({begin, at_});
    return true;
  }

  bool directive() {
    size_t begin = at_;
    if (!skip_line()) return false;
    add(begin, at_);
    if (text_.substr(begin, at_ - begin).find("%:") != std::string_view::npos) return false;
    return comments_of_directive(begin, text_.substr(begin, at_ - begin));
  }

  // False for a comment that may go on in the next line. Behind what may not be a plain literal
  // (1'000, R"(..)", don't) nothing is taken for one.
  bool comments_of_directive(size_t begin, std::string_view text) {
    const bool names_file = directive_name(text).starts_with("include");
    for (size_t i = 1; i < text.size(); ++i) {
      if (text.substr(i, 2) == "//") {
        comments_.push_back({begin + i, begin + text.size()});
        return true;
      }
      size_t end = i;
      if (text.substr(i, 2) == "/*") {
        end = text.find("*/", i + 2);
        if (end++ == std::string_view::npos) return false;
        if (text.substr(i, end - i).find('\n') == std::string_view::npos)
          comments_.push_back({begin + i, begin + end + 1});
      } else if (text[i] == '"' || text[i] == '\'' || (names_file && text[i] == '<')) {
        const char close = text[i] == '<' ? '>' : text[i];
        for (end = i + 1; end < text.size() && text[end] != close; ++end)
          if (text[end] == '\\') ++end;
        if (end >= text.size() || text[i] == '\'' || text[i - 1] == 'R')
          return text.find("/*", i) == std::string_view::npos;
      }
      i = end;
    }
    return true;
  }

  bool take(char c) {
    line_begins_ = false;
    size_t begin = at_;
    if (c == '\\' || c == '#') return false;  // joins lines in the middle of anything; no directive
    if (begins_digraph()) return false;
    if (c == '"' || c == '\'') return literal(c);
    if (is_word(c) || static_cast<unsigned char>(c) >= 0x80) {
      bool number = c >= '0' && c <= '9';
      while (at_ < text_.size() &&
             (is_word(text_[at_]) || static_cast<unsigned char>(text_[at_]) >= 0x80 ||
              (number && (text_[at_] == '\'' || text_[at_] == '.'))))
        ++at_;
      std::string_view word = text_.substr(begin, at_ - begin);
      bool raw = word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
      if (at_ < text_.size() && text_[at_] == '"' && raw) return raw_literal();
      add(begin, at_);
      return true;
    }
    add(at_, at_ + 1);
    ++at_;
    return true;
  }

  // "%:" for "#", "<%" for "{". Not "<::", as in vector<::Half>.
  bool begins_digraph() const {
    std::string_view two = text_.substr(at_, 2);
    if (two == "<:") return text_.substr(at_, 3) != "<::";
    return two == "%:" || two == "<%" || two == "%>" || two == ":>";
  }

  bool literal(char quote) {
    size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') return false;
      if (text_[at_] == '\\') ++at_;
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    add(begin, at_);
    return true;
  }

  bool raw_literal() {
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) return false;
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    size_t end = text_.find(close, open);
    if (end == std::string_view::npos) return false;
    add(at_, end + close.size());
    at_ = end + close.size();
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool line_begins_ = true;
  std::vector<Token> tokens_;
  std::vector<Range> comments_;
};

}  // namespace

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string directive_name(std::string_view text) {
  std::string_view rest = text::trim(text.substr(1));
  return std::string(rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz")));
}

std::optional<std::vector<Token>> tokens_of(std::string_view text) {
  Lexer lexer(text);
  if (!lexer.run()) return std::nullopt;
  return lexer.tokens();
}

std::optional<std::string> without_comments(std::string_view text) {
  Lexer lexer(text);
  if (!lexer.run()) return std::nullopt;
  std::string out;
  // Behind a line's last word there is nothing: the length of a comment there counts for nothing.
  auto end_line = [&] {
    while (!out.empty() && is_blank(out.back())) out.pop_back();
  };
  size_t at = 0;
  for (const Range& comment : lexer.comments()) {
    out.append(text.substr(at, comment.begin - at));
    for (char c : text.substr(comment.begin, comment.end - comment.begin)) {
      if (c == '\n') end_line();
      out.push_back(c == '\n' ? '\n' : ' ');
    }
    at = comment.end;
    if (at == text.size() || text[at] == '\n') end_line();
  }
  return out.append(text.substr(at));
}

}  // namespace kiln::build
