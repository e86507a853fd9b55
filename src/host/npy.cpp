// SPDX-License-Identifier: Apache-2.0
#include "host/npy.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "host/npy_header.h"
#include "sys/files.h"

namespace kiln::host {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

Error bad(const std::string& name, size_t offset, std::string why, std::string fix = {}) {
  return {Fault::Work, "cannot read " + name,
          "at byte " + std::to_string(offset) + ": " + std::move(why), std::move(fix)};
}

struct Preamble {
  size_t header_begin, header_bytes;
};

Result<Preamble> read_preamble(std::span<const uint8_t> file, const std::string& name) {
  if (file.size() < kMagic.size() + 2 ||
      std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return bad(name, 0, "it does not start with \\x93NUMPY: not a .npy file",
               "write it with numpy.save");
  const int major = file[6];
  if (major < 1 || major > 3)
    return bad(name, 6, "format version " + std::to_string(major) + "; supported are 1, 2 and 3");
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < 8 + length_bytes)
    return bad(name, 8, "the file ends before the length of its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= static_cast<size_t>(file[8 + i]) << (8 * i);
  const size_t begin = 8 + length_bytes;
  if (length > file.size() - begin)
    return bad(name, 8,
               "the header claims " + std::to_string(length) + " bytes; the file has " +
                   std::to_string(file.size() - begin) + " more");
  return Preamble{begin, length};
}

struct ElementType {
  const DType* type;
  bool big_endian;
};

// "<f4", "|b1", ">i8", "|V2".
Result<ElementType> element_type(const std::string& descr, std::optional<int32_t> as,
                                 const std::string& name, size_t offset) {
  const auto refuse = [&](std::string why, std::string fix) {
    return bad(name, offset, "dtype '" + descr + "' " + std::move(why), std::move(fix));
  };
  const bool has_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view body = std::string_view(descr).substr(has_order ? 1 : 0);
  const bool big_endian = has_order && descr[0] == '>';
  if (body.starts_with('O')) return refuse("contains Python objects", "save an array of numbers");
  if (body == "V1" && !as)
    return refuse("may be either fp8 format", "say which: " + name + ":as=f8e4m3");
  for (const DType& type : dtypes()) {
    if (body != type.npy) continue;
    if (!as) return ElementType{&type, big_endian};
    const DType& wanted = *find_dtype(*as);
    if (wanted.bytes != type.bytes)
      return refuse("has elements of " + std::to_string(type.bytes) + " bytes; " + wanted.name +
                        " has " + std::to_string(wanted.bytes),
                    "leave as= out");
    return ElementType{&wanted, big_endian};
  }
  return refuse("is not supported by kernels",
                "convert it first: numpy.save(path, a.astype(numpy.float32))");
}

void swap_bytes(Array& array) {
  const size_t part = array.type().part_bytes;
  for (size_t at = 0; at + part <= array.storage.size(); at += part)
    std::reverse(array.storage.begin() + static_cast<ptrdiff_t>(at),
                 array.storage.begin() + static_cast<ptrdiff_t>(at + part));
}

Dims fortran_strides(const Dims& sizes) {
  Dims reversed(sizes.rbegin(), sizes.rend());
  Dims strides = contiguous_strides(reversed);
  return {strides.rbegin(), strides.rend()};
}

}  // namespace

Result<Array> parse_npy(std::span<const uint8_t> file, const std::string& name,
                        std::optional<int32_t> as) {
  TRY(const Preamble preamble, read_preamble(file, name));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + preamble.header_begin,
                              preamble.header_bytes);
  TRY(const NpyHeader header, parse_npy_header(text, name, preamble.header_begin));
  TRY(const ElementType element, element_type(header.descr, as, name, header.descr_offset));
  const std::optional<int64_t> count = element_count(header.shape);
  if (!count || header.shape.size() > kMaxDims)
    return bad(name, header.shape_offset, "shape " + shape_text(header.shape) + " is too large");
  const size_t begin = preamble.header_begin + preamble.header_bytes;
  const size_t wanted = static_cast<size_t>(*count) * element.type->bytes;
  if (file.size() - begin != wanted)
    return bad(name, begin,
               "shape " + shape_text(header.shape) + " of " + element.type->name + " takes " +
                   std::to_string(wanted) + " bytes; the file has " +
                   std::to_string(file.size() - begin),
               "write it again: it is truncated, or contains more than one array");
  Array array{element.type->code, {header.shape, contiguous_strides(header.shape), 0}, {}};
  if (header.fortran_order) array.layout.strides = fortran_strides(header.shape);
  array.storage.assign(file.begin() + static_cast<ptrdiff_t>(begin), file.end());
  if (element.type->kind == Kind::Bool)
    for (size_t i = 0; i < array.storage.size(); ++i)
      if (array.storage[i] > 1)
        return bad(
            name, begin + i,
            "the byte " + std::to_string(array.storage[i]) + " is neither false (0) nor true (1)");
  if (element.big_endian) swap_bytes(array);
  return array;
}

Result<Array> read_npy(const std::filesystem::path& path, std::optional<int32_t> as) {
  TRY(const std::string file, sys::real_files().read(path));
  return parse_npy({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, path.string(), as);
}

Status write_npy(const std::filesystem::path& path, const Array& array) {
  const Array values = contiguous(array);
  std::string file = npy_header(values);
  file.append(reinterpret_cast<const char*>(values.storage.data()), values.storage.size());
  return sys::real_files().write(path, file);
}

std::string npy_header(const Array& array) {
  const DType& type = array.type();
  std::string shape;
  for (int64_t size : array.layout.sizes) shape += std::to_string(size) + ", ";
  // Python writes (2, 3) and (2,) and ().
  if (!shape.empty()) shape.resize(shape.size() - (array.layout.sizes.size() == 1 ? 1 : 2));
  std::string dict = std::string("{'descr': '") + (type.bytes == 1 ? '|' : '<') + type.npy +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data begins at a multiple of 64, as numpy has it.
  const size_t unpadded = kMagic.size() + 4 + dict.size() + 1;
  dict.append((64 - unpadded % 64) % 64, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

std::string npy_note(int32_t dtype) {
  const DType& type = *find_dtype(dtype);
  if (type.npy[0] != 'V') return {};
  const std::string carrier = type.bytes == 1 ? "uint8" : type.bytes == 2 ? "uint16" : "uint32";
  return std::string("numpy has no ") + type.torch_name +
         "; in torch: torch.from_numpy(numpy.load(path).view(numpy." + carrier + ")).view(torch." +
         type.torch_name + ")";
}

}  // namespace kiln::host
