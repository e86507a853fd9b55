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

bool isSignedType(ScalarType t) {
  TORCH_CHECK(!isQIntType(t), "isSignedType not supported for quantized types");
  TORCH_CHECK(t < ScalarType::Bits1x8 || t > ScalarType::Bits16, "Bits types are undefined");
  TORCH_CHECK(t < ScalarType::Undefined, "Unknown ScalarType ", t);
  return t != kByte && t != kBool && (t < kUInt16 || t > ScalarType::UInt7) &&
         t != ScalarType::Float8_e8m0fnu;
}
ScalarType toQIntType(ScalarType t) {
  return t == kByte ? kQUInt8 : t == kChar ? kQInt8 : t == kInt ? kQInt32 : t;
}
ScalarType toUnderlying(ScalarType t) {
  return t == kQInt8 ? kChar : t == kQInt32 ? kInt : isQIntType(t) ? kByte : t;
}
ScalarType toRealValueType(ScalarType t) {
  return t == kComplexHalf     ? kHalf
         : t == kComplexFloat  ? kFloat
         : t == kComplexDouble ? kDouble
                               : t;
}
ScalarType toComplexType(ScalarType t) {
  TORCH_CHECK(isComplexType(t) || t == kHalf || t == kFloat || t == kDouble,
              "Unknown Complex ScalarType for ", t);
  return t == kHalf     ? kComplexHalf
         : t == kFloat  ? kComplexFloat
         : t == kDouble ? kComplexDouble
                        : t;
}
bool canCast(ScalarType from, ScalarType to) {
  if (isComplexType(from) && !isComplexType(to)) return false;
  if (isFloatingType(from) && isIntegralType(to, false)) return false;
  return from == kBool || to != kBool;
}

namespace {
struct DeviceWord {
  DeviceType type;
  const char *upper, *lower;
  bool parsed;  // Device("..."): not every name is one there
};
constexpr DeviceWord kDeviceWords[] = {
    {DeviceType::CPU, "CPU", "cpu", true},
    {DeviceType::CUDA, "CUDA", "cuda", true},
    {DeviceType::IPU, "IPU", "ipu", true},
    {DeviceType::XPU, "XPU", "xpu", true},
    {DeviceType::MKLDNN, "MKLDNN", "mkldnn", true},
    {DeviceType::OPENGL, "OPENGL", "opengl", true},
    {DeviceType::OPENCL, "OPENCL", "opencl", true},
    {DeviceType::IDEEP, "IDEEP", "ideep", true},
    {DeviceType::HIP, "HIP", "hip", true},
    {DeviceType::VE, "VE", "ve", true},
    {DeviceType::FPGA, "FPGA", "fpga", true},
    {DeviceType::MAIA, "MAIA", "maia", true},
    {DeviceType::XLA, "XLA", "xla", true},
    {DeviceType::Lazy, "LAZY", "lazy", true},
    {DeviceType::Vulkan, "VULKAN", "vulkan", true},
    {DeviceType::MPS, "MPS", "mps", true},
    {DeviceType::Meta, "META", "meta", true},
    {DeviceType::HPU, "HPU", "hpu", true},
    {DeviceType::MTIA, "MTIA", "mtia", true},
    {DeviceType::PrivateUse1, "PRIVATEUSEONE", "privateuseone", true},
    {DeviceType::Metal, "METAL", "metal", false},
};
}  // namespace

std::string DeviceTypeName(DeviceType type, bool lower_case) {
  for (const DeviceWord& one : kDeviceWords)
    if (one.type == type) return lower_case ? one.lower : one.upper;
  throw Error(c10::str("Unknown device: ", static_cast<int>(type),
                       ". If you have recently updated the caffe2.proto file to add a new device "
                       "type, did you forget to update the DeviceTypeName() function to reflect "
                       "such recent changes?"));
}

std::string Device::str() const {
  std::string text = DeviceTypeName(type_, true);
  if (index_ >= 0) text += ":" + std::to_string(index_);
  return text;
}

void Device::refuse_index() const {
  const int index = index_;
  const kiln_detail::Place place = {"validate", "c10/core/Device.h", 0};
  if (index < -1)
    kiln_detail::fail_internally(place, "index_ >= -1",
                                 c10::str("Device index must be -1 or non-negative, got ", index));
  kiln_detail::fail_internally(place, "!is_cpu() || index_ <= 0",
                               c10::str("CPU device index must be -1 or zero, got ", index));
}

// name, or name:index without leading zeros.
Device::Device(const std::string& text) : type_(kCPU), index_(-1) {
  if (text.empty()) throw Error("Device string must not be empty");
  size_t end = 0;
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  while (end < text.size() && letter(text[end])) end++;
  const std::string name = text.substr(0, end);
  bool well_formed = end > 0 && (end == text.size() || text[end] == ':');
  const std::string index = end < text.size() ? text.substr(end + 1) : std::string();
  if (end < text.size()) {
    well_formed = well_formed && !index.empty() && (index == "0" || index[0] != '0');
    for (const char c : index) well_formed = well_formed && c >= '0' && c <= '9';
  }
  if (!well_formed) throw Error("Invalid device string: '" + text + "'");
  const DeviceWord* found = nullptr;
  for (const DeviceWord& one : kDeviceWords)
    if (one.parsed && name == one.lower) found = &one;
  if (!found) {
    std::string names;
    for (const DeviceWord& one : kDeviceWords)
      if (one.parsed) names += std::string(names.empty() ? "" : ", ") + one.lower;
    throw Error("Expected one of " + names + " device type at start of device string: " + name);
  }
  type_ = found->type;
  if (index.empty()) return;
  if (index.size() > 9)
    throw Error("Could not parse device index '" + index + "' in device string '" + text + "'");
  index_ = static_cast<DeviceIndex>(atoi(index.c_str()));
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
  if (scalar.isComplex()) return put(scalar.toComplexDouble());
  if (scalar.isFloatingPoint()) return put(scalar.toDouble());
  if (scalar.isBoolean()) return put(scalar.toBool() ? "true" : "false");
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
void bad_slice(size_t from, const size_t* count, size_t size) {
  std::string text = join("ArrayRef: invalid slice, N = ", from);
  if (count) text += join("; M = ", *count);
  throw Error(join(text, "; size = ", size));
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
// A tensor without elements and one on the meta device have no memory, and that is no mistake.
void check_memory(const Rep* rep) {
  if (rep->numel == 0 || rep->device_type == static_cast<int32_t>(kMeta)) return;
  throw Error(
      "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're using "
      "torch.compile/export/fx, it is likely that we are erroneously tracing into a custom kernel. "
      "To fix this, please wrap the custom kernel into an opaque custom op. Please see the "
      "following for details: https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html "
      "If you're using Caffe2, Caffe2 uses a lazy allocation, so you will need to call "
      "mutable_data() or raw_mutable_data() to actually allocate memory.");
}
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
