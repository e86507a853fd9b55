// SPDX-License-Identifier: Apache-2.0
// What do torch's checks and errors say? Its own texts, word by word: sources and tests compare
// them.
#include "text.h"

#include <kiln/compat/dispatch.h>
#include <kiln/compat/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdexcept>

#include "convert.h"
#include "front.h"

namespace c10 {
inline namespace kc {

Error::~Error() = default;

const char* toString(ScalarType type) {
  switch (type) {
#define X(cpp, name, number) \
  case ScalarType::name:     \
    return #name;
    KILN_SCALAR_TYPES(X)
#undef X
#define X(name, number)  \
  case ScalarType::name: \
    return #name;
    KILN_BARE_SCALAR_TYPES(X)
#undef X
    case ScalarType::Undefined:
      return "Undefined";
    default:
      return "UNKNOWN_SCALAR";
  }
}

int64_t elementSize(ScalarType type) {
  switch (type) {
#define X(cpp, name, number) \
  case ScalarType::name:     \
    return static_cast<int64_t>(sizeof(cpp));
    KILN_SCALAR_TYPES(X)
#undef X
    case ScalarType::QInt32:
      return 4;
    case ScalarType::Bits16:
      return 2;
    case ScalarType::Undefined:
    case ScalarType::NumOptions:
      throw Error("Unknown ScalarType");
    default:
      return 1;
  }
}

std::string DeviceTypeName(DeviceType type, bool lower_case) {
  switch (type) {
    case DeviceType::CPU:
      return lower_case ? "cpu" : "CPU";
    case DeviceType::CUDA:
      return lower_case ? "cuda" : "CUDA";
    case DeviceType::Meta:
      return lower_case ? "meta" : "META";
    case DeviceType::MPS:
      return lower_case ? "mps" : "MPS";
    case DeviceType::XPU:
      return lower_case ? "xpu" : "XPU";
    default:
      return lower_case ? "device" : "DEVICE";
  }
}

std::string Device::str() const {
  std::string text = DeviceTypeName(type_, true);
  if (index_ >= 0) text += ":" + std::to_string(index_);
  return text;
}

Device::Device(const std::string& text) : type_(kCPU), index_(-1) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "cuda")
    type_ = kCUDA;
  else if (name == "meta")
    type_ = kMeta;
  else if (name != "cpu")
    throw Error("Expected one of cpu, cuda, meta device type at start of device string: " + name);
  if (colon != std::string::npos) index_ = static_cast<DeviceIndex>(atoi(text.c_str() + colon + 1));
}

namespace {
template <class T>
std::optional<T> unless_unset(int8_t number) {
  return number < 0 ? std::nullopt : std::optional<T>(static_cast<T>(number));
}
}  // namespace
TensorOptions TensorOptions::with_dtype(const std::optional<ScalarType>& type) const {
  TensorOptions changed = *this;
  changed.dtype_ = type ? static_cast<int8_t>(*type) : int8_t(-1);
  return changed;
}
TensorOptions TensorOptions::with_device(const std::optional<Device>& device) const {
  TensorOptions changed = *this;
  changed.device_type_ = device ? static_cast<int8_t>(device->type()) : int8_t(-1);
  changed.device_index_ = device ? device->index() : DeviceIndex(-1);
  return changed;
}
TensorOptions TensorOptions::with_layout(const std::optional<Layout>& layout) const {
  TensorOptions changed = *this;
  changed.layout_ = layout ? static_cast<int8_t>(*layout) : int8_t(-1);
  return changed;
}
TensorOptions TensorOptions::with_requires_grad(const std::optional<bool>& wanted) const {
  TensorOptions changed = *this;
  changed.grad_ = wanted ? *wanted : int8_t(-1);
  return changed;
}
TensorOptions TensorOptions::with_pinned_memory(const std::optional<bool>& wanted) const {
  TensorOptions changed = *this;
  changed.pinned_ = wanted ? *wanted : int8_t(-1);
  return changed;
}
std::optional<caffe2::TypeMeta> TensorOptions::dtype_opt() const {
  return dtype_ < 0 ? std::nullopt : std::optional<caffe2::TypeMeta>(dtype());
}
std::optional<Device> TensorOptions::device_opt() const {
  return device_type_ < 0 ? std::nullopt : std::optional<Device>(device());
}
std::optional<Layout> TensorOptions::layout_opt() const { return unless_unset<Layout>(layout_); }
std::optional<bool> TensorOptions::pinned_memory_opt() const { return unless_unset<bool>(pinned_); }
std::optional<bool> TensorOptions::requires_grad_opt() const { return unless_unset<bool>(grad_); }
std::optional<MemoryFormat> TensorOptions::memory_format_opt() const {
  return unless_unset<MemoryFormat>(format_);
}

OptionalIntArrayRef::OptionalIntArrayRef(const std::optional<IntArrayRef>& list)
    : has_(list.has_value()) {
  if (list) list_ = *list;
}

namespace kiln_detail {

Message& Message::put(const char* piece) {
  text += piece ? piece : "";
  return *this;
}
Message& Message::put(const std::string& piece) {
  text += piece;
  return *this;
}
Message& Message::put_text(const char* piece, size_t size) {
  text.append(piece, size);
  return *this;
}
Message& Message::put(char one) {
  text += one;
  return *this;
}
Message& Message::put(long long value) { return put(std::to_string(value)); }
Message& Message::put(unsigned long long value) { return put(std::to_string(value)); }
Message& Message::put(double value) {
  // As a stream of the "C" locale writes it, whatever locale the process has set.
  const kiln::detail::CLocale locale;
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%g", value);
  return put(buffer);
}
Message& Message::put(const void* value) {
  char buffer[32];
  if (value)
    snprintf(buffer, sizeof buffer, "%p", value);
  else
    snprintf(buffer, sizeof buffer, "0");
  return put(buffer);
}
Message& Message::put(Layout layout) {
  constexpr const char* names[] = {"Strided",   "Sparse",    "SparseCsr", "Mkldnn",
                                   "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  return put(names[static_cast<int>(layout)]);
}
Message& Message::put(MemoryFormat format) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return put(names[static_cast<int>(format)]);
}
Message& Message::put(const Scalar& scalar) {
  if (scalar.isFloatingPoint()) return put(scalar.toDouble());
  if (scalar.isBoolean()) return put(scalar.toBool() ? "True" : "False");
  return put(static_cast<long long>(scalar.toLong()));
}
// As torch prints them: what is not set is marked as its default.
Message& Message::put(const TensorOptions& o) {
  auto mark = [&](bool given) { put(given ? "" : " (default)"); };
  auto word = [](bool value) { return value ? "true" : "false"; };
  put("TensorOptions(dtype=").put(o.dtype());
  mark(o.has_dtype());
  put(", device=").put(o.device());
  mark(o.has_device());
  put(", layout=").put(o.layout());
  mark(o.has_layout());
  put(", requires_grad=").put(word(o.requires_grad()));
  mark(o.has_requires_grad());
  put(", pinned_memory=").put(word(o.pinned_memory()));
  mark(o.has_pinned_memory());
  put(", memory_format=");
  if (const auto format = o.memory_format_opt())
    put(*format);
  else
    put("(nullopt)");
  return put(')');
}
Message& Message::put(const at::DeprecatedTypeProperties& type) { return put(type.toString()); }
Message& Message::put(const at::Tensor& tensor) {
  if (!tensor.defined()) return put("[ Tensor (undefined) ]");
  if (!kiln::compat::has_python()) return put("[ Tensor ").put(tensor.sizes()).put(" ]");
  kiln::compat::WithGil gil;
  return put(kiln::compat::text_of(kiln::compat::object_from(tensor).get()));
}

void fail(Place, ErrorKind kind, const std::string& text) { throw Error(kind, text); }

// The condition is asked, not the text: authors word it as they like ("x must be a CUDA tensor").
std::string with_device_hint(const char* condition, std::string text) {
  const auto wish = kiln::detail::wished_device();
  if (wish == kiln::detail::Wish::engine)
    for (const char* sign : {"is_cpu", "kCPU", "DeviceType::CPU"})
      if (strstr(condition, sign) != nullptr)
        return text +
               "\n  why: KILN_DEVICE=engine shows CPU tensors to this source as CUDA tensors"
               "\n  fix: unset KILN_DEVICE: this source asks for CPU tensors";
  bool asks = false;
  for (const char* sign : {"is_cuda", "kCUDA", "DeviceType::CUDA"})
    asks = asks || strstr(condition, sign) != nullptr;
  if (!asks || wish != kiln::detail::Wish::none || kiln::detail::machine_has_gpu()) return text;
  return text +
         "\n  why: this machine has no GPU: kernels run on kiln's engine, with CPU tensors"
         "\n  fix: set KILN_DEVICE=engine, which shows CPU tensors to this source as CUDA tensors";
}

void fail_without_text(Place, const char* condition) {
  throw Error(
      ErrorKind::runtime,
      with_device_hint(condition, join("Expected ", condition,
                                       " to be true, but got false.  (Could this error message be "
                                       "improved?  If so, please report an "
                                       "enhancement request to PyTorch.)")));
}
void fail_internally(Place place, const char* condition, const std::string& text) {
  throw Error(ErrorKind::runtime,
              join(condition, " INTERNAL ASSERT FAILED at \"", place.file, "\":", place.line,
                   ", please report a bug to PyTorch. ", text));
}
void fail_plainly(const std::string& text) { throw std::runtime_error(text); }
void warn(Place place, const std::string& text) {
  if (kiln::compat::has_python()) {
    kiln::compat::WithGil gil;
    const std::string whole =
        join(text, " (Triggered internally at ", place.file, ":", place.line, ".)");
    if (PyErr_WarnEx(PyExc_UserWarning, whole.c_str(), 1)) kiln::compat::throw_python_error();
  } else {
    fprintf(stderr, "[W %s:%u] Warning: %s (function %s)\n", place.file, place.line, text.c_str(),
            place.function);
  }
}
void bad_index(const char* text, int64_t index, int64_t size) {
  throw Error(ErrorKind::runtime, join(text, " Index = ", index, "; Length = ", size));
}

}  // namespace kiln_detail
}  // namespace kc
}  // namespace c10

namespace caffe2 {
inline namespace kc {
const char* TypeMeta::name() const {
  switch (type_) {
#define X(cpp, name, number)  \
  case c10::ScalarType::name: \
    return #cpp;
    X(unsigned char, Byte, 0)
    X(signed char, Char, 1)
    X(short int, Short, 2)
    X(int, Int, 3)
    X(long int, Long, 4)
    X(c10::Half, Half, 5)
    X(float, Float, 6)
    X(double, Double, 7)
    X(c10::complex<c10::Half>, ComplexHalf, 8)
    X(c10::complex<float>, ComplexFloat, 9)
    X(c10::complex<double>, ComplexDouble, 10)
    X(bool, Bool, 11)
    X(c10::BFloat16, BFloat16, 15)
    X(c10::Float8_e5m2, Float8_e5m2, 23)
    X(c10::Float8_e4m3fn, Float8_e4m3fn, 24)
    X(short unsigned int, UInt16, 27)
    X(unsigned int, UInt32, 28)
    X(long unsigned int, UInt64, 29)
#undef X
    default:
      return "nullptr (uninitialized)";
  }
}
}  // namespace kc
}  // namespace caffe2

namespace at {
inline namespace kc {
namespace kiln_detail {

void undefined_tensor() { throw Error("tensor does not have a device"); }
void wrong_dtype(ScalarType wanted, ScalarType found) {
  throw Error(c10::str("expected scalar type ", wanted, " but found ", found));
}
void wrong_dims(const char* accessor, int64_t wanted, int64_t found) {
  throw Error(c10::str(accessor, " expected ", wanted, " dims but tensor has ", found));
}
void too_many_elements() {
  throw Error(
      "numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64");
}
int64_t wrapped(int64_t dim, int64_t ndim) {
  if (ndim == 0 && (dim == 0 || dim == -1))
    throw Error(ErrorKind::index,
                c10::str("Dimension specified as ", dim, " but tensor has no dimensions"));
  if (ndim == 0)
    throw Error(ErrorKind::index,
                c10::str("Dimension specified as ", dim, " but tensor has no dimensions"));
  if (dim < -ndim || dim >= ndim)
    throw Error(ErrorKind::index, c10::str("Dimension out of range (expected to be in range of [",
                                           -ndim, ", ", ndim - 1, "], but got ", dim, ")"));
  return dim + ndim;
}
void not_dispatched(const char* name, ScalarType type) {
  throw Error(ErrorKind::not_implemented,
              c10::str('"', name, "\" not implemented for '", type, "'"));
}

}  // namespace kiln_detail
}  // namespace kc
}  // namespace at
