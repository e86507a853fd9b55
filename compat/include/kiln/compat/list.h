// SPDX-License-Identifier: Apache-2.0
// What are c10::List and c10::IValue? A list whose copies share their items, and a value of any
// kind, as autograd functions keep them from forward to backward.
#pragma once

#include <kiln/compat/value.h>

#include <memory>

namespace c10 {
inline namespace kc {

template <class T>
class List {
 public:
  using value_type = T;
  List() : items_(std::make_shared<std::vector<T>>()) {}
  List(std::initializer_list<T> items) : items_(std::make_shared<std::vector<T>>(items)) {}
  explicit List(ArrayRef<T> items)
      : items_(std::make_shared<std::vector<T>>(items.begin(), items.end())) {}
  explicit List(std::vector<T> items)
      : items_(std::make_shared<std::vector<T>>(static_cast<std::vector<T>&&>(items))) {}
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  decltype(auto) operator[](size_t i) const { return items_->at(i); }
  T get(size_t i) const { return items_->at(i); }
  T extract(size_t i) const { return items_->at(i); }
  void set(size_t i, T value) const { items_->at(i) = static_cast<T&&>(value); }
  void push_back(T value) const { items_->push_back(static_cast<T&&>(value)); }
  template <class... A>
  void emplace_back(A&&... parts) const {
    items_->emplace_back(static_cast<A&&>(parts)...);
  }
  void append(List other) const { items_->insert(items_->end(), other.begin(), other.end()); }
  void reserve(size_t count) const { items_->reserve(count); }
  void resize(size_t count) const { items_->resize(count); }
  void clear() const { items_->clear(); }
  void pop_back() const { items_->pop_back(); }
  auto begin() const { return items_->begin(); }
  auto end() const { return items_->end(); }
  std::vector<T> vec() const { return *items_; }
  operator ArrayRef<T>() const { return ArrayRef<T>(*items_); }  // an op takes either
  List copy() const { return List(vec()); }
  bool is(const List& other) const { return items_ == other.items_; }
  friend bool operator==(const List& a, const List& b) { return *a.items_ == *b.items_; }
  friend bool operator!=(const List& a, const List& b) { return !(a == b); }

 private:
  std::shared_ptr<std::vector<T>> items_;
};

class IValue {
 public:
  enum class Kind : uint8_t {
    None,
    Tensor,
    Double,
    Int,
    Bool,
    String,
    Device,
    IntList,
    DoubleList,
    TensorList
  };
  IValue() = default;
  IValue(std::nullopt_t) {}
  IValue(at::Tensor t) : kind_(Kind::Tensor), tensor_(static_cast<at::Tensor&&>(t)) {}
  IValue(bool value) : kind_(Kind::Bool), i_(value) {}
  IValue(double value) : kind_(Kind::Double), f_(value) {}
  IValue(int64_t value) : kind_(Kind::Int), i_(value) {}
  IValue(int32_t value) : kind_(Kind::Int), i_(value) {}
  IValue(std::string text) : kind_(Kind::String), text_(static_cast<std::string&&>(text)) {}
  IValue(const char* text) : IValue(std::string(text)) {}
  IValue(ScalarType type) : IValue(static_cast<int64_t>(type)) {}
  IValue(Device device)
      : kind_(Kind::Device),
        i_(static_cast<int64_t>(device.type())),
        device_index_(device.index()) {}
  IValue(IntArrayRef list) : kind_(Kind::IntList), ints_(list) {}
  IValue(const std::vector<int64_t>& list) : IValue(IntArrayRef(list)) {}
  IValue(ArrayRef<double> list) : kind_(Kind::DoubleList), reals_(list) {}
  IValue(const std::vector<double>& list) : IValue(ArrayRef<double>(list)) {}
  IValue(ArrayRef<at::Tensor> list) : kind_(Kind::TensorList), tensors_(list) {}
  IValue(const std::vector<at::Tensor>& list) : IValue(ArrayRef<at::Tensor>(list)) {}
  IValue(List<int64_t> list) : kind_(Kind::IntList), ints_(list) {}
  IValue(List<double> list) : kind_(Kind::DoubleList), reals_(list) {}
  IValue(List<at::Tensor> list) : kind_(Kind::TensorList), tensors_(list) {}
  template <class T>
  IValue(std::optional<T> value) {
    if (value) *this = IValue(*value);
  }
  bool isNone() const { return kind_ == Kind::None; }
  bool isTensor() const { return kind_ == Kind::Tensor; }
  bool isDouble() const { return kind_ == Kind::Double; }
  bool isInt() const { return kind_ == Kind::Int; }
  bool isBool() const { return kind_ == Kind::Bool; }
  bool isString() const { return kind_ == Kind::String; }
  bool isDevice() const { return kind_ == Kind::Device; }
  bool isIntList() const { return kind_ == Kind::IntList; }
  bool isDoubleList() const { return kind_ == Kind::DoubleList; }
  bool isTensorList() const { return kind_ == Kind::TensorList; }
  bool isScalar() const { return isInt() || isDouble() || isBool(); }
  std::string tagKind() const;
  at::Tensor toTensor() const { return as(Kind::Tensor), tensor_; }
  double toDouble() const { return as(Kind::Double), f_; }
  int64_t toInt() const { return as(Kind::Int), i_; }
  bool toBool() const { return as(Kind::Bool), i_ != 0; }
  ScalarType toScalarType() const { return static_cast<ScalarType>(toInt()); }
  Device toDevice() const {
    return as(Kind::Device),
           Device(static_cast<DeviceType>(i_), static_cast<DeviceIndex>(device_index_));
  }
  Scalar toScalar() const;
  const std::string& toStringRef() const { return as(Kind::String), text_; }
  List<int64_t> toIntList() const { return as(Kind::IntList), ints_; }
  List<double> toDoubleList() const { return as(Kind::DoubleList), reals_; }
  List<at::Tensor> toTensorList() const { return as(Kind::TensorList), tensors_; }
  std::vector<int64_t> toIntVector() const { return toIntList().vec(); }
  std::vector<int64_t> toDimVector() const { return toIntVector(); }
  std::vector<double> toDoubleVector() const { return toDoubleList().vec(); }
  std::vector<at::Tensor> toTensorVector() const { return toTensorList().vec(); }
  template <class T>
  T to() const;
  template <class T>
  std::optional<T> toOptional() const {
    if (isNone()) return std::nullopt;
    return to<T>();
  }

 private:
  void as(Kind wanted) const {
    if (kind_ != wanted) wrong_kind(wanted);
  }
  [[noreturn]] void wrong_kind(Kind wanted) const;

  Kind kind_ = Kind::None;
  int64_t i_ = 0;
  double f_ = 0;
  int8_t device_index_ = -1;
  at::Tensor tensor_;
  std::string text_;
  List<int64_t> ints_;
  List<double> reals_;
  List<at::Tensor> tensors_;
};

#define KILN_IVALUE(T, name)           \
  template <>                          \
  inline T IValue::to<T>() const {     \
    return static_cast<T>(to##name()); \
  }
KILN_IVALUE(at::Tensor, Tensor)
KILN_IVALUE(double, Double)
KILN_IVALUE(float, Double)
KILN_IVALUE(int64_t, Int)
KILN_IVALUE(int32_t, Int)
KILN_IVALUE(bool, Bool)
KILN_IVALUE(std::string, StringRef)
KILN_IVALUE(ScalarType, Int)
KILN_IVALUE(Device, Device)
KILN_IVALUE(Scalar, Scalar)
KILN_IVALUE(List<int64_t>, IntList)
KILN_IVALUE(List<double>, DoubleList)
KILN_IVALUE(List<at::Tensor>, TensorList)
KILN_IVALUE(std::vector<int64_t>, IntVector)
KILN_IVALUE(std::vector<double>, DoubleVector)
KILN_IVALUE(std::vector<at::Tensor>, TensorVector)
#undef KILN_IVALUE

}  // namespace kc
}  // namespace c10
namespace torch {
using c10::IValue;
using c10::List;
namespace jit {
using c10::IValue;
}
}  // namespace torch

#ifndef __CUDA_ARCH__
namespace kiln {
namespace compat {
template <class T>
struct Caster<c10::List<T>> {
  using Items = Caster<std::vector<T>>;
  static constexpr Type type = Items::type;
  static c10::List<T> take(Value& v) { return c10::List<T>(Items::take(v)); }
  static void give(Value& v, const c10::List<T>& list) { Items::give(v, list.vec()); }
};
}  // namespace compat
}  // namespace kiln
#endif
