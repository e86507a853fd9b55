// SPDX-License-Identifier: Apache-2.0
// What does `std::cout << tensor` print? torch's C++ format, which is not Python's: columns of
// equal width, a factor in front where numbers are large or small, the type and the sizes at the
// end.
#include <kiln/compat/tensor.h>
#include <math.h>
#include <stdio.h>

#include "convert.h"
#include "front.h"

namespace c10 {
inline namespace kc {
namespace kiln_detail {

namespace {

constexpr int64_t kLineWidth = 80;

// How the numbers of a matrix are printed: all alike.
struct Format {
  const char* number = "%*g";
  int width = 0;
  double scale = 1;
};

double digits_of(double magnitude) { return magnitude != 0 ? floor(log10(magnitude)) + 1 : 1; }

Format format_of(const double* data, int64_t count) {
  bool whole = true;
  double least = 1, most = 1;
  bool any = false;
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(data[i])) continue;
    whole = whole && data[i] == ceil(data[i]);
    const double magnitude = fabs(data[i]);
    if (!any || magnitude < least) least = magnitude;
    if (!any || magnitude > most) most = magnitude;
    any = true;
  }
  if (any) {
    least = digits_of(least);
    most = digits_of(most);
  }
  if (whole) return most > 9 ? Format{"%*.4e", 11} : Format{"%*g", static_cast<int>(most) + 1};
  if (most - least > 4) return {"%*.4e", fabs(most) > 99 || fabs(least) > 99 ? 12 : 11};
  if (most > 5 || most < 0) return {"%*.4f", 7, pow(10, most - 1)};
  return {"%*.4f", most == 0 ? 7 : static_cast<int>(most) + 6};
}

class Printer {
 public:
  explicit Printer(Message& out) : out_(out) {}

  void print(const double* data, at::IntArrayRef sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    if (sizes.empty()) {
      number({}, data[0]);
      out_.put('\n');
    } else if (count == 0) {
      return;
    } else if (sizes.size() == 1) {
      const Format format = format_of(data, count);
      if (format.scale != 1) print_scale(format.scale);
      for (int64_t i = 0; i < count; i++) {
        number(format, data[i]);
        out_.put('\n');
      }
    } else if (sizes.size() == 2) {
      matrix(data, sizes[0], sizes[1], 0);
    } else {
      matrices(data, sizes);
    }
  }

 private:
  void number(const Format& format, double value) {
    char text[64];
    snprintf(text, sizeof text, format.number, format.width, value / format.scale);
    out_.put(text);
  }
  void print_scale(double scale) {
    char text[64];
    snprintf(text, sizeof text, "%.4g *\n", scale);
    out_.put(text);
  }
  void indent(int64_t by) {
    while (by-- > 0) out_.put(' ');
  }

  void matrix(const double* data, int64_t rows, int64_t columns, int64_t by) {
    const Format format = format_of(data, rows * columns);
    const int64_t per_line = (kLineWidth - by) / (format.width + 1);
    for (int64_t first = 0; first < columns;) {
      const int64_t last = (first + per_line <= columns ? first + per_line : columns) - 1;
      if (per_line < columns) {
        if (first != 0) out_.put('\n');
        out_.put("Columns ").put(first + 1).put(" to ").put(last + 1);
        indent(by);
      }
      if (format.scale != 1) {
        print_scale(format.scale);
        indent(by);
      }
      for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = first; column <= last; column++) {
          number(format, data[row * columns + column]);
          out_.put(column == last ? '\n' : ' ');
        }
        if (row == rows - 1) continue;
        indent(by + (format.scale != 1));
      }
      first = last + 1;
    }
  }

  // The first dimension runs fastest.
  void matrices(const double* data, at::IntArrayRef sizes) {
    const size_t outer = sizes.size() - 2;
    const int64_t rows = sizes[outer], columns = sizes[outer + 1];
    std::vector<int64_t> at(outer, 0);
    for (bool start = true;; start = false) {
      if (!start) out_.put('\n');
      out_.put('(');
      int64_t which = 0;
      for (size_t d = 0; d < outer; d++) {
        which = which * sizes[d] + at[d];
        out_.put(at[d] + 1).put(',');
      }
      out_.put(".,.) = \n");
      matrix(data + which * rows * columns, rows, columns, 1);
      size_t d = 0;
      while (d < outer && ++at[d] == sizes[d]) at[d++] = 0;
      if (d == outer) return;
    }
  }

  Message& out_;
};

}  // namespace

Message& Message::put(const at::Tensor& tensor) {
  if (!tensor.defined()) return put("[ Tensor (undefined) ]");
  const kiln::detail::CLocale locale;
  const at::Tensor plain = tensor.detach().to(at::Device(at::kCPU), at::kDouble).contiguous();
  Printer(*this).print(static_cast<const double*>(plain.data_ptr()), plain.sizes());
  put("[ ").put(tensor.toString()).put('{');
  for (int64_t d = 0; d < plain.dim(); d++) put(d ? "," : "").put(plain.size(d));
  return put("} ]");
}

}  // namespace kiln_detail
}  // namespace kc
}  // namespace c10
