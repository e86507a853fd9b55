// SPDX-License-Identifier: Apache-2.0
#include "host/tensor_spec.h"

#include <kiln/abi.h>

#include <charconv>
#include <limits>
#include <vector>

#include "base/text.h"

namespace kiln::host {
namespace {

using text::split;

struct FillName {
  std::string_view name;
  Fill fill;
  size_t least_numbers, most_numbers;
  bool integral, floating;  // which dtypes it can fill
};
constexpr FillName kFills[] = {
    {"zeros", Fill::Zeros, 0, 0, true, true},     {"ones", Fill::Ones, 0, 0, true, true},
    {"eye", Fill::Eye, 0, 0, true, true},         {"rand", Fill::Rand, 0, 0, false, true},
    {"randn", Fill::Randn, 0, 0, false, true},    {"empty", Fill::Empty, 0, 0, true, true},
    {"full", Fill::Full, 1, 2, true, true},       {"arange", Fill::Arange, 0, 2, true, true},
    {"randint", Fill::RandInt, 2, 2, true, true},
};

Error bad(std::string_view text, std::string why, std::string fix) {
  return {Fault::Usage, "cannot read the tensor '" + std::string(text) + "'", std::move(why),
          std::move(fix)};
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

const FillName* find_fill(std::string_view name) {
  for (const FillName& row : kFills)
    if (row.name == name) return &row;
  return nullptr;
}

std::string fill_names() {
  std::string names;
  for (const FillName& row : kFills) names += std::string(row.name) + ", ";
  return names + "or a path that ends in .npy";
}

// The end of the path when the text names a .npy file, else npos.
size_t end_of_path(std::string_view text) {
  for (size_t at = text.find(".npy"); at != std::string_view::npos;
       at = text.find(".npy", at + 1)) {
    const size_t end = at + 4;
    if (end == text.size() || text[end] == ':' || text[end] == '@') return end;
  }
  return std::string_view::npos;
}

Result<Dims> parse_shape(std::string_view text, std::string_view whole) {
  if (text == "scalar") return Dims{};
  Dims sizes;
  for (std::string_view part : split(text, 'x')) {
    const std::optional<int64_t> size = parse_integer(part);
    if (!size || *size < 0)
      return bad(whole, quoted(part) + " is not a size",
                 "write a shape as 1024, 4x5, 2^20 or scalar");
    sizes.push_back(*size);
  }
  if (sizes.size() > kMaxDims)
    return bad(whole,
               "it has " + std::to_string(sizes.size()) + " dimensions; torch has at most 64", "");
  if (!element_count(sizes)) return bad(whole, "it has too many elements", "use smaller sizes");
  return sizes;
}

Result<Number> parse_number(std::string_view text, const DType& type, std::string_view whole) {
  Number number;
  if (!is_integral(type.kind)) {
    const std::optional<double> real = parse_float(text);
    if (!real) return bad(whole, quoted(text) + " is not a number", "");
    number.real = *real;
    return number;
  }
  if (type.kind == Kind::Bool && (text == "true" || text == "false"))
    text = text == "true" ? "1" : "0";
  const std::optional<int64_t> integer = parse_integer(text);
  const int bits = type.kind == Kind::Bool ? 1 : type.bytes * 8;
  uint64_t large = 0;  // u64 goes beyond what parse_integer holds
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), large);
  const bool is_large =
      type.code == KILN_U64 && fault == std::errc() && end == text.data() + text.size();
  if (!integer && !is_large) {
    if (parse_float(text))
      return bad(whole,
                 quoted(text) + " is not an integer, and " + type.name + " holds only integers",
                 "use a float dtype, or an integer");
    return bad(whole, quoted(text) + " is not a number", "");
  }
  if (integer) {
    const int64_t most = bits == 64
                             ? std::numeric_limits<int64_t>::max()
                             : (int64_t{1} << (type.kind == Kind::Signed ? bits - 1 : bits)) - 1;
    const int64_t least = type.kind == Kind::Signed ? -most - 1 : 0;
    if (*integer < least || *integer > most)
      return bad(whole, std::string(text) + " does not fit in " + type.name, "use a wider dtype");
  }
  number.integer = integer ? static_cast<uint64_t>(*integer) : large;
  return number;
}

Status parse_option(std::string_view option, TensorSpec& spec) {
  const size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  if (option == "t") {
    spec.transposed = true;
  } else if (name == "seed") {
    const std::optional<int64_t> seed = parse_integer(value);
    if (!seed) return bad(spec.text, quoted(value) + " is not a seed", "write an integer: seed=7");
    spec.seed = static_cast<uint64_t>(*seed);
  } else if (name == "offset") {
    const std::optional<int64_t> offset = parse_integer(value);
    if (!offset || *offset < 0)
      return bad(spec.text, quoted(value) + " is not an offset",
                 "write a count of elements: offset=1");
    spec.offset = *offset;
  } else if (name == "strides") {
    spec.strides.emplace();
    for (std::string_view part : split(value, ',')) {
      const std::optional<int64_t> stride = parse_integer(part);
      if (!stride || *stride < 0)
        return bad(spec.text,
                   quoted(part) + " is not a stride; strides are counts of elements, 0 or more",
                   "write one for each dimension: strides=10,1");
      spec.strides->push_back(*stride);
    }
  } else if (name == "as") {
    const DType* type = find_dtype(value);
    if (spec.fill != Fill::File || !type)
      return bad(spec.text, type ? "as= is for files" : "unknown dtype " + quoted(value),
                 "dtypes: " + dtype_names());
    spec.dtype = type->code;
    spec.has_dtype = true;
  } else {
    return bad(spec.text, "unknown option " + quoted(option),
               "options: seed=N, strides=N,N, offset=N, t");
  }
  return {};
}

// "randint=0,10": fills kind and numbers, once the dtype is known.
Status parse_fill(std::string_view head, TensorSpec& spec) {
  const size_t equals = head.find('=');
  const FillName* row = find_fill(head.substr(0, equals));
  if (!row)
    return bad(spec.text, "unknown kind " + quoted(head.substr(0, equals)),
               "kinds: " + fill_names());
  const DType& type = *find_dtype(spec.dtype);
  if (is_integral(type.kind) ? !row->integral : !row->floating)
    return bad(spec.text,
               std::string(row->name) + " makes floats, and " + type.name + " is not a float dtype",
               "for random integers write randint=0,10:" + std::string(type.name) + ":SHAPE");
  std::vector<std::string_view> numbers;
  if (equals != std::string_view::npos) numbers = split(head.substr(equals + 1), ',');
  if (numbers.size() < row->least_numbers || numbers.size() > row->most_numbers)
    return bad(spec.text,
               std::string(row->name) + " takes " + std::to_string(row->least_numbers) + " to " +
                   std::to_string(row->most_numbers) + " numbers, got " +
                   std::to_string(numbers.size()),
               "for example full=3:f32:8, arange=1,2:i64:5, randint=0,10:i32:4x4");
  spec.fill = row->fill;
  if (spec.fill == Fill::Arange) spec.second = {1, 1};
  if (numbers.size() == 2 && spec.fill == Fill::Full && type.kind != Kind::Complex)
    return bad(spec.text,
               "the second number is the imaginary part, and " + std::string(type.name) +
                   " is not complex",
               "write full=" + std::string(numbers[0]) + ":" + type.name + ":SHAPE");
  // The bounds of randint are integers whatever the dtype; the upper one is not reached and may lie
  // just outside of it.
  const DType& bound_type = spec.fill == Fill::RandInt ? *find_dtype(KILN_I64) : type;
  if (!numbers.empty()) {
    TRY(spec.first, parse_number(numbers[0], bound_type, spec.text));
  }
  if (numbers.size() > 1) {
    TRY(spec.second, parse_number(numbers[1], bound_type, spec.text));
  }
  if (spec.fill == Fill::RandInt &&
      static_cast<int64_t>(spec.first.integer) >= static_cast<int64_t>(spec.second.integer))
    return bad(spec.text, "randint=LOW,HIGH needs LOW below HIGH", "");
  if (spec.fill == Fill::Eye && spec.sizes.size() < 2)
    return bad(spec.text, "eye needs two dimensions", "write for example eye:f32:4x4");
  return {};
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  const size_t caret = text.find('^');
  if (caret != std::string_view::npos) {
    const std::optional<int64_t> base = parse_integer(text.substr(0, caret)),
                                 power = parse_integer(text.substr(caret + 1));
    if (!base || !power || *power < 0 || *power > 63) return std::nullopt;
    int64_t value = 1;
    for (int64_t i = 0; i < *power; ++i)
      if (__builtin_mul_overflow(value, *base, &value)) return std::nullopt;
    return value;
  }
  bool negative = false;
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  const auto [end, fault] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, hex ? 16 : 10);
  if (digits.empty() || fault != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  if (magnitude > uint64_t{1} << 63 || (!negative && magnitude == uint64_t{1} << 63))
    return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<double> parse_float(std::string_view text) {
  if (const std::optional<int64_t> integer = parse_integer(text))
    return static_cast<double>(*integer);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (fault == std::errc::result_out_of_range) return std::nullopt;
  return value;
}

Result<Device> parse_device(std::string_view text) {
  if (text == "cpu" || text == "engine") return Device{KILN_DEVICE_CPU, 0};
  if (text == "cuda") return Device{KILN_DEVICE_CUDA, 0};
  if (text.starts_with("cuda:")) {
    const std::optional<int64_t> index = parse_integer(text.substr(5));
    if (index && *index >= 0 && *index < 1024)
      return Device{KILN_DEVICE_CUDA, static_cast<int32_t>(*index)};
  }
  return Error{Fault::Usage, "unknown device " + quoted(text),
               "a device is cpu, engine (the same), cuda or cuda:N",
               "write cpu, or cuda:0 for the first GPU"};
}

std::string device_text(Device device) {
  if (device.type == KILN_DEVICE_CPU) return "cpu";
  return "cuda:" + std::to_string(device.index);
}

bool looks_like_tensor(std::string_view text) {
  if (end_of_path(text) != std::string_view::npos) return true;
  const size_t end = text.find_first_of(":=");
  return end != std::string_view::npos && find_fill(text.substr(0, end)) != nullptr;
}

std::string tensor_fix(std::string_view text) {
  const size_t end = text.find_first_of(":=");
  std::vector<std::string> kinds;
  for (const FillName& row : kFills) kinds.emplace_back(row.name);
  const auto meant = end == text.npos ? std::nullopt : text::closest(text.substr(0, end), kinds);
  if (meant) return "did you mean " + *meant + std::string(text.substr(end)) + "?";
  return "write KIND:DTYPE:SHAPE, for example randn:f32:1024, or the path of a .npy file";
}

Result<TensorSpec> parse_tensor_spec(std::string_view text) {
  TensorSpec spec;
  spec.text = text;
  std::string_view rest = text;
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    Result<Device> device = parse_device(text.substr(at + 1));
    // A path may hold an @ of its own.
    if (!device && end_of_path(text.substr(at)) == std::string_view::npos)
      return bad(text, device.error().what, device.error().why);
    if (device) {
      spec.device = *device;
      rest = text.substr(0, at);
    }
  }
  std::vector<std::string_view> options;
  if (const size_t end = end_of_path(rest); end != std::string_view::npos) {
    spec.fill = Fill::File;
    spec.path = rest.substr(0, end);
    if (end < rest.size()) options = split(rest.substr(end + 1), ':');
  } else {
    const std::vector<std::string_view> parts = split(rest, ':');
    if (!find_fill(parts[0].substr(0, parts[0].find('='))))
      return bad(text, quoted(parts[0]) + " is not a kind of tensor", "kinds: " + fill_names());
    if (parts.size() < 3)
      return bad(text, "a tensor is KIND:DTYPE:SHAPE",
                 "for example " + std::string(parts[0]) + ":f32:1024x1024");
    const DType* type = find_dtype(parts[1]);
    if (!type) return bad(text, "unknown dtype " + quoted(parts[1]), "dtypes: " + dtype_names());
    spec.dtype = type->code;
    spec.has_dtype = true;
    TRY(spec.sizes, parse_shape(parts[2], text));
    CHECK_OK(parse_fill(parts[0], spec));
    options.assign(parts.begin() + 3, parts.end());
  }
  for (std::string_view option : options) CHECK_OK(parse_option(option, spec));
  if (spec.strides && spec.transposed)
    return bad(text, "strides= and t both set the layout", "leave one of them out");
  if (spec.fill != Fill::File) {
    Result<Layout> layout = layout_of(spec, spec.sizes);
    if (!layout) return std::move(layout.error());
  }
  return spec;
}

Result<Layout> layout_of(const TensorSpec& spec, const Dims& sizes) {
  Layout layout{sizes, {}, spec.offset};
  if (spec.strides) {
    if (spec.strides->size() != sizes.size())
      return bad(spec.text,
                 "got " + std::to_string(spec.strides->size()) + " strides for " +
                     std::to_string(sizes.size()) + " dimensions",
                 "write one stride for each dimension");
    layout.strides = *spec.strides;
  } else if (spec.transposed) {
    if (sizes.size() < 2) return bad(spec.text, "t needs two dimensions", "leave t out");
    Dims swapped = sizes;
    std::swap(swapped[sizes.size() - 1], swapped[sizes.size() - 2]);
    layout.strides = contiguous_strides(swapped);
    std::swap(layout.strides[sizes.size() - 1], layout.strides[sizes.size() - 2]);
  } else {
    layout.strides = contiguous_strides(sizes);
  }
  if (storage_elements(layout) < 0) return bad(spec.text, "it is too large", "use smaller strides");
  return layout;
}

}  // namespace kiln::host
