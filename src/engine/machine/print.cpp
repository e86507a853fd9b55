// SPDX-License-Identifier: Apache-2.0
// How is a conversion of a kernel's printf parsed and carried out?
#include "engine/machine/print.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace kiln::engine {
namespace {

// Larger widths and precisions are reduced to this, so that a format cannot make the process run
// out of memory.
constexpr int32_t kMostWidth = 4096;

enum class Size { Int, Short, Byte, Wide };

struct Conversion {
  std::string flags;
  bool has_width = false, has_precision = false;
  int32_t width = 0, precision = 0;
  Size size = Size::Int;
  char type = 0;
};

bool is_in(std::string_view set, char c) { return set.find(c) != set.npos; }

// Reads a format from left to right.
class Reader {
 public:
  Reader(std::string_view format, PrintArguments& arguments, std::string* out, int32_t* count)
      : format_(format), arguments_(arguments), out_(*out), count_(*count) {}

  bool run() {
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      out_ += format_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ < format_.size() && !convert()) return false;
    }
    return true;
  }

 private:
  char next() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  bool convert() {
    const size_t begin = at_++;
    Conversion c;
    const int32_t count_before = count_;
    if (!flags_and_width(&c)) return false;
    size(&c);
    c.type = next();
    if (c.type) ++at_;
    if (c.type == '%') {
      out_ += '%';
      return true;
    }
    if (!is_in("cdiouxXpeEfFgGaAs", c.type) || c.type == '\0') {
      out_ += format_.substr(begin, at_ - begin);
      count_ = count_before;
      return true;
    }
    ++count_;
    return carry_out(c);
  }

  bool flags_and_width(Conversion* c) {
    for (; next() && is_in("#0-+ ", next()); ++at_) {
      if (!is_in(c->flags, next())) c->flags += next();
    }
    if (!number(&c->width, &c->has_width)) return false;
    if (c->width < 0) {
      c->flags += '-';
      c->width = -c->width;
    }
    if (next() != '.') return true;
    ++at_;
    c->has_precision = true;
    bool given = false;
    if (!number(&c->precision, &given)) return false;
    if (c->precision < 0) c->has_precision = false;
    return true;
  }

  // Digits, or an asterisk for the next argument.
  bool number(int32_t* value, bool* given) {
    if (next() == '*') {
      ++at_;
      uint32_t word = 0;
      if (!arguments_.word(&word)) return false;
      ++count_;
      *value = std::clamp(std::bit_cast<int32_t>(word), -kMostWidth, kMostWidth);
      *given = true;
      return true;
    }
    for (; next() >= '0' && next() <= '9'; ++at_) {
      *value = std::min(*value * 10 + (next() - '0'), kMostWidth);
      *given = true;
    }
    return true;
  }

  void size(Conversion* c) {
    if (next() == 'h') {
      c->size = format_.substr(at_, 2) == "hh" ? Size::Byte : Size::Short;
      at_ += c->size == Size::Byte ? 2 : 1;
    } else if (next() && is_in("ljzt", next())) {
      c->size = Size::Wide;
      at_ += format_.substr(at_, 2) == "ll" ? 2 : 1;
    }
  }

  template <class T>
  void put(const Conversion& c, std::string_view type, T value) {
    std::string one = "%" + c.flags;
    if (c.has_width) one += std::to_string(c.width);
    if (c.has_precision) one += "." + std::to_string(c.precision);
    one += type;
    const int bytes = std::snprintf(nullptr, 0, one.c_str(), value);
    if (bytes <= 0) return;
    const size_t end = out_.size();
    out_.resize(end + static_cast<size_t>(bytes) + 1);
    std::snprintf(out_.data() + end, static_cast<size_t>(bytes) + 1, one.c_str(), value);
    out_.pop_back();
  }

  bool carry_out(const Conversion& c) {
    if (c.type == 's') return put_text(c);
    if (is_in("eEfFgGaA", c.type)) {
      uint64_t bits = 0;
      if (!arguments_.wide(&bits)) return false;
      put(c, std::string_view(&c.type, 1), std::bit_cast<double>(bits));
      return true;
    }
    if (c.type == 'p') {
      uint64_t bits = 0;
      if (!arguments_.wide(&bits)) return false;
      put(c, "p", reinterpret_cast<void*>(bits));
      return true;
    }
    if (c.type == 'c') {
      uint32_t word = 0;
      if (!arguments_.word(&word)) return false;
      put(c, "c", static_cast<int>(word));
      return true;
    }
    return put_integer(c);
  }

  bool put_integer(const Conversion& c) {
    const bool is_signed = c.type == 'd' || c.type == 'i';
    uint64_t value = 0;
    if (c.size == Size::Wide) {
      if (!arguments_.wide(&value)) return false;
    } else {
      uint32_t word = 0;
      if (!arguments_.word(&word)) return false;
      const int bits = c.size == Size::Int ? 32 : c.size == Size::Short ? 16 : 8;
      value = uint64_t{word} << (64 - bits);
      value = is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value) >> (64 - bits))
                        : value >> (64 - bits);
    }
    const char type[] = {'l', 'l', c.type, '\0'};
    put(c, type, static_cast<unsigned long long>(value));
    return true;
  }

  bool put_text(const Conversion& c) {
    uint64_t address = 0;
    std::string text = "(null)";
    if (!arguments_.wide(&address)) return false;
    if (address) text.clear();
    if (address && !arguments_.text(address, &text)) return false;
    put(c, "s", text.c_str());
    return true;
  }

  std::string_view format_;
  PrintArguments& arguments_;
  std::string& out_;
  int32_t& count_;
  size_t at_ = 0;
};

}  // namespace

bool print(std::string_view format, PrintArguments& arguments, std::string* out, int32_t* count) {
  *count = 0;
  return Reader(format, arguments, out, count).run();
}

}  // namespace kiln::engine
