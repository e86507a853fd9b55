// SPDX-License-Identifier: Apache-2.0
#include "host/npy_header.h"

#include <charconv>
#include <optional>

namespace kiln::host {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, size_t offset)
      : text_(text), name_(name), offset_(offset) {}

  size_t position() {
    skip_blanks();
    return offset_ + at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  bool accept(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Error wanted(const std::string& what) {
    return {Fault::Work, "cannot read " + name_,
            "at byte " + std::to_string(position()) + ": the header should have " + what + " here",
            "write it again"};
  }
  Result<std::string> string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      if (quote == '[') return structured();
      return wanted("a string");
    }
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos || end - at_ > 64)
      return wanted("a short string with a closing quote");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    for (char c : value)
      if (c < ' ' || c > '~') return wanted("a string of plain characters");
    at_ = end + 1;
    return value;
  }
  Result<bool> boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    return wanted("True or False");
  }
  Result<Dims> shape() {
    if (!accept('(')) return wanted("a tuple of sizes");
    Dims sizes;
    while (!accept(')')) {
      skip_blanks();
      int64_t size = 0;
      const auto [end, fault] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (fault != std::errc() || size < 0) return wanted("a size of at most 63 bits");
      at_ = static_cast<size_t>(end - text_.data());
      accept('L');  // Python 2 wrote long integers so
      sizes.push_back(size);
      if (!accept(',')) {
        if (!accept(')')) return wanted("a comma or the end of the shape");
        break;
      }
    }
    return sizes;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  Error structured() {
    return {Fault::Work, "cannot read " + name_,
            "at byte " + std::to_string(position()) +
                ": it contains records with several fields, not one dtype",
            "save one field: numpy.save(path, a['field'])"};
  }

  std::string_view text_;
  const std::string& name_;
  size_t offset_;
  size_t at_ = 0;
};

}  // namespace

// The header is a Python literal. NumPy evaluates it; a file from somewhere gets no such power
// here, so the few forms that NumPy writes are parsed by hand.
Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& name, size_t offset) {
  Reader reader(text, name, offset);
  NpyHeader header;
  bool has_descr = false, has_order = false, has_shape = false;
  if (!reader.accept('{')) return reader.wanted("a '{'");
  while (!reader.accept('}')) {
    TRY(const std::string key, reader.string());
    if (!reader.accept(':')) return reader.wanted("a ':'");
    const size_t value_at = reader.position();
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    if (!seen || *seen)
      return reader.wanted("each of 'descr', 'fortran_order' and 'shape' once; '" + key +
                           "' is not");
    *seen = true;
    if (seen == &has_descr) {
      TRY(header.descr, reader.string());
      header.descr_offset = value_at;
    } else if (seen == &has_order) {
      TRY(header.fortran_order, reader.boolean());
    } else {
      TRY(header.shape, reader.shape());
      header.shape_offset = value_at;
    }
    if (!reader.accept(',')) {
      if (!reader.accept('}')) return reader.wanted("a comma or the end of the dict");
      break;
    }
  }
  if (!has_descr || !has_order || !has_shape)
    return reader.wanted("'descr', 'fortran_order' and 'shape' before it ends");
  if (!reader.at_end()) return reader.wanted("nothing more");
  return header;
}

}  // namespace kiln::host
