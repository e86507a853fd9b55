// SPDX-License-Identifier: Apache-2.0
#include "host/summary.h"

#include <cmath>

namespace kiln::host {
namespace {

bool less(const Element& a, const Element& b) {
  if (a.kind == Kind::Signed)
    return static_cast<int64_t>(a.integer) < static_cast<int64_t>(b.integer);
  if (a.kind == Kind::Float) return a.number.real() < b.number.real();
  return a.integer < b.integer;
}

class Printer {
 public:
  Printer(const Array& array, int64_t edge, const std::string& indent)
      : array_(array), type_(array.type()), edge_(edge), indent_(indent) {}

  std::string print(size_t dimension, int64_t offset) const {
    if (dimension == array_.layout.sizes.size()) {
      const uint8_t* at = array_.storage.data() + static_cast<size_t>(offset) * type_.bytes;
      return element_text(type_, load_element(type_, at), type_.print_digits);
    }
    const int64_t size = array_.layout.sizes[dimension];
    const bool last = dimension + 1 == array_.layout.sizes.size();
    const std::string separator = last ? " " : "\n" + indent_ + std::string(dimension + 1, ' ');
    const bool cut = edge_ >= 0 && size > 2 * edge_;
    std::string text = "[";
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) text += separator;
      if (cut && i == edge_) {
        text += "...";
        i = size - edge_ - 1;
        continue;
      }
      text += print(dimension + 1, offset + i * array_.layout.strides[dimension]);
    }
    return text + "]";
  }

 private:
  const Array& array_;
  const DType& type_;
  int64_t edge_;  // below 0: nothing is cut
  const std::string& indent_;
};

}  // namespace

Summary summarise(const Array& array) {
  const DType& type = array.type();
  Summary summary;
  summary.count = element_count(array);
  // Compensated (Neumaier): the mean of 2^28 floats keeps its digits.
  double sum[2] = {0, 0}, lost[2] = {0, 0};
  auto add = [&](int part, double value) {
    const double next = sum[part] + value;
    lost[part] += std::fabs(sum[part]) >= std::fabs(value) ? (sum[part] - next) + value
                                                           : (value - next) + sum[part];
    sum[part] = next;
  };
  int64_t finite = 0;
  for_each_element(array.layout, [&](int64_t, int64_t offset) {
    const Element element =
        load_element(type, array.storage.data() + static_cast<size_t>(offset) * type.bytes);
    const double real = element.number.real(), imaginary = element.number.imag();
    if (std::isnan(real) || std::isnan(imaginary)) return void(++summary.nan_count);
    if (std::isinf(real) || std::isinf(imaginary)) return void(++summary.infinite_count);
    ++finite;
    add(0, real);
    add(1, imaginary);
    if (type.kind == Kind::Complex) return;
    if (!summary.has_range || less(element, summary.least)) summary.least = element;
    if (!summary.has_range || less(summary.greatest, element)) summary.greatest = element;
    summary.has_range = true;
  });
  if (finite > 0)
    summary.mean = {(sum[0] + lost[0]) / static_cast<double>(finite),
                    (sum[1] + lost[1]) / static_cast<double>(finite)};
  return summary;
}

std::string elements_text(const Array& array, int64_t edge, const std::string& indent) {
  const int64_t count = element_count(array);
  if (count == 0) return "[]";
  return Printer(array, count <= kShowWhole ? -1 : edge, indent).print(0, array.layout.offset);
}

}  // namespace kiln::host
