// SPDX-License-Identifier: Apache-2.0
// What are a number of any type, and the options of a new tensor?
#pragma once

#include <kiln/compat/check.h>

namespace c10 {
inline namespace kc {

class Scalar {
 public:
  Scalar() : kind_(Kind::integer), i_(0) {}
  // A pointer converts to bool, and to no number.
  template <class T, class = std::enable_if_t<std::is_same_v<T, bool>>>
  Scalar(T v) : kind_(Kind::boolean), i_(v) {}
  Scalar(int v) : kind_(Kind::integer), i_(v) {}
  Scalar(unsigned v) : kind_(Kind::integer), i_(v) {}
  Scalar(long v) : kind_(Kind::integer), i_(v) {}
  Scalar(long long v) : kind_(Kind::integer), i_(v) {}
  Scalar(unsigned long v)
      : kind_(v > INT64_MAX ? Kind::large : Kind::integer), i_(static_cast<int64_t>(v)) {}
  Scalar(short v) : kind_(Kind::integer), i_(v) {}
  Scalar(unsigned short v) : kind_(Kind::integer), i_(v) {}
  Scalar(int8_t v) : kind_(Kind::integer), i_(v) {}
  Scalar(uint8_t v) : kind_(Kind::integer), i_(v) {}
  Scalar(float v) : kind_(Kind::real), f_(v) {}
  Scalar(double v) : kind_(Kind::real), f_(v) {}
  Scalar(Half v) : Scalar(static_cast<float>(v)) {}
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}
  Scalar(Float8_e4m3fn v);
  Scalar(Float8_e5m2 v);
  Scalar(complex<Half> v);
  Scalar(complex<float> v) : kind_(Kind::complex), f_(v.real_), imaginary_(v.imag_) {}
  Scalar(complex<double> v) : kind_(Kind::complex), f_(v.real_), imaginary_(v.imag_) {}
  bool isFloatingPoint() const { return kind_ == Kind::real; }
  bool isBoolean() const { return kind_ == Kind::boolean; }
  bool isIntegral(bool include_bool) const {
    return kind_ == Kind::integer || kind_ == Kind::large || (include_bool && isBoolean());
  }
  bool isUnsigned() const { return kind_ == Kind::large || (kind_ == Kind::integer && i_ >= 0); }
  bool isComplex() const { return kind_ == Kind::complex; }
  bool isSymbolic() const { return false; }
  bool isSymInt() const { return false; }
  bool isSymFloat() const { return false; }
  bool isSymBool() const { return false; }
  ScalarType type() const;
  // A number that the type does not hold is an error: 2^40 as int, NaN as an integer.
  template <class T>
  T to() const = delete;
#define X(type, Name, number) type to##Name() const;
  KILN_SCALAR_TYPES(X)
#undef X
  int64_t toSymInt() const { return toLong(); }
  Scalar operator-() const;
  Scalar conj() const;
  Scalar log() const;
  template <class T>
  bool equal(T number) const {
    return equals(Scalar(number));
  }

 private:
  bool equals(const Scalar& number) const;
  enum class Kind { integer, large, real, complex, boolean } kind_;  // large: above INT64_MAX
  union {
    int64_t i_;
    double f_;
  };
  double imaginary_ = 0;
};
#define X(type, Name, number)            \
  template <>                            \
  inline type Scalar::to<type>() const { \
    return to##Name();                   \
  }
KILN_SCALAR_TYPES(X)
#undef X

// A parameter that may be a std::optional and nothing that converts to one: an overload that takes
// the std::optional itself has the compiler instantiate it at every call of the others.
template <class T, class Of>
using IfOptional =
    std::enable_if_t<std::is_same_v<T, std::optional<Of>> || std::is_same_v<T, std::nullopt_t>>;

// Fields that may be unset are numbers of their own: five std::optional here cost every source a
// tenth of a second. What takes or gives one is in the archive.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(static_cast<int8_t>(type)) {}
  TensorOptions(caffe2::TypeMeta type) : TensorOptions(type.toScalarType()) {}
  TensorOptions(Device device)
      : device_type_(static_cast<int8_t>(device.type())), device_index_(device.index()) {}
  TensorOptions(DeviceType device) : TensorOptions(Device(device)) {}
  TensorOptions(Layout layout) : layout_(static_cast<int8_t>(layout)) {}
  TensorOptions(MemoryFormat format) : format_(static_cast<int8_t>(format)) {}
  template <class T, class = IfOptional<T, ScalarType>>
  TensorOptions dtype(const T& maybe) const {
    return with_dtype(maybe);
  }
  TensorOptions dtype(ScalarType type) const {
    TensorOptions changed = *this;
    changed.dtype_ = static_cast<int8_t>(type);
    return changed;
  }
  TensorOptions dtype(caffe2::TypeMeta type) const { return dtype(type.toScalarType()); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  template <class T, class = IfOptional<T, Device>>
  TensorOptions device(const T& maybe) const {
    return with_device(maybe);
  }
  TensorOptions device(Device device) const {
    TensorOptions changed = *this;
    changed.device_type_ = static_cast<int8_t>(device.type());
    changed.device_index_ = device.index();
    return changed;
  }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  TensorOptions device_index(int index) const {
    return device(Device(kCUDA, static_cast<DeviceIndex>(index)));
  }
  TensorOptions layout(Layout layout) const {
    TensorOptions changed = *this;
    changed.layout_ = static_cast<int8_t>(layout);
    return changed;
  }
  template <class T, class = IfOptional<T, Layout>>
  TensorOptions layout(const T& maybe) const {
    return with_layout(maybe);
  }
  TensorOptions requires_grad(bool wanted) const {
    TensorOptions changed = *this;
    changed.grad_ = wanted;
    return changed;
  }
  template <class T, class = IfOptional<T, bool>>
  TensorOptions requires_grad(const T& maybe) const {
    return with_requires_grad(maybe);
  }
  TensorOptions pinned_memory(bool wanted) const {
    TensorOptions changed = *this;
    changed.pinned_ = wanted;
    return changed;
  }
  template <class T, class = IfOptional<T, bool>>
  TensorOptions pinned_memory(const T& maybe) const {
    return with_pinned_memory(maybe);
  }
  TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions changed = *this;
    changed.format_ = static_cast<int8_t>(format);
    return changed;
  }
  caffe2::TypeMeta dtype() const { return dtype_ < 0 ? kFloat : static_cast<ScalarType>(dtype_); }
  Device device() const {
    return device_type_ < 0 ? Device(kCPU)
                            : Device(static_cast<DeviceType>(device_type_), device_index_);
  }
  Layout layout() const { return layout_ < 0 ? kStrided : static_cast<Layout>(layout_); }
  bool requires_grad() const { return grad_ == 1; }
  bool pinned_memory() const { return pinned_ == 1; }
  bool is_cuda() const { return device().is_cuda(); }
  bool has_dtype() const { return dtype_ >= 0; }
  bool has_device() const { return device_type_ >= 0; }
  bool has_layout() const { return layout_ >= 0; }
  bool has_requires_grad() const { return grad_ >= 0; }
  bool has_pinned_memory() const { return pinned_ >= 0; }
  bool has_memory_format() const { return format_ >= 0; }
  int device_index() const { return device().index(); }
  bool is_sparse() const { return layout() == Layout::Sparse; }
  bool type_equal(const TensorOptions& o) const {
    return dtype() == o.dtype() && device().type() == o.device().type() && layout() == o.layout();
  }
  std::optional<caffe2::TypeMeta> dtype_opt() const;
  std::optional<Device> device_opt() const;
  std::optional<Layout> layout_opt() const;
  std::optional<bool> pinned_memory_opt() const;
  std::optional<bool> requires_grad_opt() const;
  std::optional<MemoryFormat> memory_format_opt() const;

 private:
  TensorOptions with_dtype(const std::optional<ScalarType>& type) const;
  TensorOptions with_device(const std::optional<Device>& device) const;
  TensorOptions with_layout(const std::optional<Layout>& layout) const;
  TensorOptions with_requires_grad(const std::optional<bool>& wanted) const;
  TensorOptions with_pinned_memory(const std::optional<bool>& wanted) const;
  int8_t dtype_ = -1, device_type_ = -1, device_index_ = -1, layout_ = -1, grad_ = -1, pinned_ = -1,
         format_ = -1;
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions().dtype(type); }
inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions().dtype(type); }
template <class T>
TensorOptions dtype() {
  return TensorOptions().dtype<T>();
}
inline TensorOptions device(Device device) { return TensorOptions().device(device); }
inline TensorOptions device(DeviceType device) { return TensorOptions().device(device); }
inline TensorOptions device_index(int index) { return TensorOptions().device_index(index); }
inline TensorOptions layout(Layout layout) { return TensorOptions().layout(layout); }
inline TensorOptions requires_grad(bool wanted = true) {
  return TensorOptions().requires_grad(wanted);
}

}  // namespace kc
}  // namespace c10
