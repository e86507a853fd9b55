// SPDX-License-Identifier: Apache-2.0
#include "host/array.h"

#include <kiln/abi.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "host/small_float.h"

namespace kiln::host {
namespace {

// A storage size stays far from overflow when multiplied by 16 bytes.
constexpr int64_t kMaxElements = int64_t{1} << 58;

template <class T>
T read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void write(uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

double load_part(const DType& type, const uint8_t* bytes) {
  switch (type.code) {
    case KILN_F16:
    case KILN_C32:
      return decode(kF16, read<uint16_t>(bytes));
    case KILN_BF16:
      return decode(kBF16, read<uint16_t>(bytes));
    case KILN_F8E4M3:
      return decode(kF8E4M3, *bytes);
    case KILN_F8E5M2:
      return decode(kF8E5M2, *bytes);
    case KILN_F32:
    case KILN_C64:
      return read<float>(bytes);
    default:
      return read<double>(bytes);
  }
}

void store_part(const DType& type, uint8_t* bytes, double value) {
  switch (type.code) {
    case KILN_F16:
    case KILN_C32:
      return write(bytes, encode(kF16, value));
    case KILN_BF16:
      return write(bytes, encode(kBF16, value));
    case KILN_F8E4M3:
      return write(bytes, static_cast<uint8_t>(encode(kF8E4M3, value)));
    case KILN_F8E5M2:
      return write(bytes, static_cast<uint8_t>(encode(kF8E5M2, value)));
    case KILN_F32:
    case KILN_C64:
      return write(bytes, static_cast<float>(value));
    default:
      return write(bytes, value);
  }
}

uint64_t load_unsigned(const uint8_t* bytes, size_t size) {
  switch (size) {
    case 1:
      return *bytes;
    case 2:
      return read<uint16_t>(bytes);
    case 4:
      return read<uint32_t>(bytes);
    default:
      return read<uint64_t>(bytes);
  }
}

uint64_t sign_extended(uint64_t value, size_t size) {
  const int unused = 64 - static_cast<int>(size) * 8;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

size_t physical_memory_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Error too_big(const Dims& sizes) {
  return {Fault::Usage, "cannot create a tensor of shape " + shape_text(sizes),
          "it has too many elements", "use smaller sizes"};
}

}  // namespace

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}

bool is_contiguous(const Layout& layout) {
  int64_t step = 1;
  for (int64_t size : layout.sizes)
    if (size == 0) return true;
  for (size_t d = layout.sizes.size(); d-- > 0;) {
    if (layout.sizes[d] == 1) continue;
    if (layout.strides[d] != step) return false;
    step *= layout.sizes[d];
  }
  return true;
}

std::optional<int64_t> element_count(const Dims& sizes) {
  int64_t count = 1;
  int64_t nonzero = 1;  // a size of 0 must not hide sizes that overflow the strides
  for (int64_t size : sizes) {
    if (size < 0 || (size > 0 && nonzero > kMaxElements / size)) return std::nullopt;
    if (size > 0) nonzero *= size;
    count *= size;
  }
  return count;
}

int64_t element_count(const Array& array) { return element_count(array.layout.sizes).value_or(0); }

int64_t storage_elements(const Layout& layout) {
  const std::optional<int64_t> count = element_count(layout.sizes);
  if (!count || layout.offset < 0 || layout.offset > kMaxElements) return -1;
  if (*count == 0) return layout.offset;
  int64_t last = layout.offset;
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    const int64_t steps = layout.sizes[d] - 1, stride = layout.strides[d];
    if (stride < 0 || (steps > 0 && stride > (kMaxElements - last) / steps)) return -1;
    last += steps * stride;
  }
  return last + 1;
}

Result<Array> make_array(int32_t dtype, Dims sizes) {
  if (sizes.size() > kMaxDims || !element_count(sizes)) return too_big(sizes);
  Dims strides = contiguous_strides(sizes);
  return make_array(dtype, Layout{std::move(sizes), std::move(strides), 0});
}

Result<Array> make_array(int32_t dtype, Layout layout) {
  const int64_t elements = storage_elements(layout);
  if (elements < 0) return too_big(layout.sizes);
  Array array{dtype, std::move(layout), {}};
  const size_t bytes = static_cast<size_t>(elements) * array.type().bytes;
  const Error too_little{
      Fault::Environment, "cannot create a tensor of shape " + shape_text(array.layout.sizes),
      "it takes " + std::to_string(bytes) + " bytes, more than this machine can allocate",
      "use smaller sizes"};
  // More than the machine has would be granted and then end the process when it is filled.
  if (bytes > physical_memory_bytes()) return too_little;
  try {
    array.storage.resize(bytes);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return too_little;
  }
  return array;
}

Array contiguous(const Array& array) {
  const size_t bytes = array.type().bytes;
  Array copy{array.dtype, {array.layout.sizes, contiguous_strides(array.layout.sizes), 0}, {}};
  copy.storage.resize(static_cast<size_t>(element_count(array)) * bytes);
  const auto start = static_cast<size_t>(array.layout.offset) * bytes;
  if (copy.storage.empty()) return copy;
  if (is_contiguous(array.layout)) {
    std::memcpy(copy.storage.data(), array.storage.data() + start, copy.storage.size());
    return copy;
  }
  for_each_element(array.layout, [&](int64_t linear, int64_t offset) {
    std::memcpy(copy.storage.data() + static_cast<size_t>(linear) * bytes,
                array.storage.data() + static_cast<size_t>(offset) * bytes, bytes);
  });
  return copy;
}

Element load_element(const DType& type, const uint8_t* bytes) {
  Element element{type.kind, 0, {}};
  switch (type.kind) {
    case Kind::Bool:
      element.integer = *bytes != 0;
      element.number = static_cast<double>(element.integer);
      break;
    case Kind::Unsigned:
      element.integer = load_unsigned(bytes, type.bytes);
      element.number = static_cast<double>(element.integer);
      break;
    case Kind::Signed:
      element.integer = sign_extended(load_unsigned(bytes, type.bytes), type.bytes);
      element.number = static_cast<double>(static_cast<int64_t>(element.integer));
      break;
    case Kind::Float:
      element.number = load_part(type, bytes);
      break;
    case Kind::Complex:
      element.number = {load_part(type, bytes), load_part(type, bytes + type.part_bytes)};
      break;
  }
  return element;
}

void store_number(const DType& type, uint8_t* bytes, std::complex<double> number) {
  if (is_integral(type.kind)) {
    const double real = number.real();
    const bool fits = real >= -0x1p63 && real < 0x1p63;  // else the conversion is undefined
    return store_integer(type, bytes, fits ? static_cast<uint64_t>(static_cast<int64_t>(real)) : 0);
  }
  store_part(type, bytes, number.real());
  if (type.kind == Kind::Complex) store_part(type, bytes + type.part_bytes, number.imag());
}

void store_integer(const DType& type, uint8_t* bytes, uint64_t integer) {
  switch (type.kind) {
    case Kind::Bool:
      *bytes = integer != 0;
      return;
    case Kind::Unsigned:
    case Kind::Signed:
      for (size_t i = 0; i < type.bytes; ++i) bytes[i] = static_cast<uint8_t>(integer >> (8 * i));
      return;
    default:
      store_number(type, bytes, static_cast<double>(static_cast<int64_t>(integer)));
  }
}

std::string shape_text(const Dims& sizes) {
  if (sizes.empty()) return "scalar";
  std::string text;
  for (int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = digits > 0 ? std::to_chars(buffer, buffer + sizeof buffer, value,
                                              std::chars_format::general, digits)
                              : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

namespace {

// The fewest digits that tell the value from its neighbours in its own format: 0.1 in f32 is not
// 0.10000000149011612.
std::string part_text(const DType& type, double value, int digits) {
  if (digits == 0 && type.mantissa_bits == 24 && std::isfinite(value)) {
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
    return {buffer, end.ptr};
  }
  // 1 + ceil(bits log10(2)) digits always suffice.
  if (digits == 0 && type.mantissa_bits < 24)
    digits = 1 + (type.mantissa_bits * 30103 + 99999) / 100000;
  return number_text(value, digits);
}

}  // namespace

std::string element_text(const DType& type, const Element& element, int digits) {
  switch (element.kind) {
    case Kind::Bool:
      return element.integer ? "true" : "false";
    case Kind::Unsigned:
      return std::to_string(element.integer);
    case Kind::Signed:
      return std::to_string(static_cast<int64_t>(element.integer));
    case Kind::Float:
      return part_text(type, element.number.real(), digits);
    case Kind::Complex:
      break;
  }
  std::string imaginary = part_text(type, element.number.imag(), digits);
  if (imaginary[0] != '-') imaginary.insert(0, "+");
  return part_text(type, element.number.real(), digits) + imaginary + "j";
}

}  // namespace kiln::host
