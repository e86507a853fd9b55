// SPDX-License-Identifier: Apache-2.0
// What is at::Tensor here? A counted reference to kiln's record of a tensor (kiln/tensor.h), which
// holds torch's handle and what the C shim says about it. Ops are declared below from
// compat/ops.txt and reach torch through its dispatcher.
#pragma once

#include <kiln/compat/accessor.h>
#include <kiln/compat/scalar.h>

namespace kiln::detail {
struct TensorRep;
}

namespace c10 {
inline namespace kc {
class Storage;
}
}  // namespace c10

namespace at {
inline namespace kc {

class Tensor;
struct TensorIndex;
class DeprecatedTypeProperties;
class GradOf;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = TensorList;
using TensorBase = Tensor;
class Generator;

namespace kiln_detail {
// The std::optional without a value, from the archive: a default argument that instantiates nothing
// where it stands.
template <class T>
const std::optional<T>& none();

// The head of kiln::detail::TensorRep, read in place.
struct Rep {
  void* data;
  const int64_t* sizes;
  const int64_t* strides;
  int64_t numel;
  int32_t ndim;
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;
  bool contiguous;
};
void retain(Rep*);
void release(Rep*);
[[noreturn]] void undefined_tensor();
void check_memory(const Rep*);  // throws if it is a fake tensor
[[noreturn]] void wrong_dtype(ScalarType wanted, ScalarType found);
[[noreturn]] void wrong_dims(const char* accessor, int64_t wanted, int64_t found);
[[noreturn]] void too_many_elements();
int64_t wrapped(int64_t dim, int64_t ndim);  // throws torch's IndexError
Device device_of(const Rep*);  // CUDA for a CPU tensor while the engine stands in for the GPU
}  // namespace kiln_detail

template <class T>
using remove_const_t = std::remove_const_t<T>;

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : rep_(o.rep_) {
    if (rep_) kiln_detail::retain(rep_);
  }
  Tensor(Tensor&& o) noexcept : rep_(o.rep_) { o.rep_ = nullptr; }
  Tensor& operator=(const Tensor& o) & {
    Tensor copy(o);
    std::swap(rep_, copy.rep_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(rep_, o.rep_);
    return *this;
  }
  // x[i] = y and x.slice(...) = y write into the tensor.
  Tensor& operator=(const Tensor& o) && { return copy_(o); }
  Tensor& operator=(Tensor&& o) && { return copy_(o); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }
  ~Tensor() {
    if (rep_) kiln_detail::release(rep_);
  }

  bool defined() const { return rep_ != nullptr; }
  void reset() { *this = Tensor(); }
  bool is_same(const Tensor& o) const;
  int64_t dim() const { return rep()->ndim; }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return rep()->numel; }
  IntArrayRef sizes() const { return {rep()->sizes, static_cast<size_t>(rep_->ndim)}; }
  IntArrayRef strides() const { return {rep()->strides, static_cast<size_t>(rep_->ndim)}; }
  IntArrayRef sym_sizes() const { return sizes(); }
  int64_t size(int64_t d) const { return rep()->sizes[at_dim(d)]; }
  int64_t sym_size(int64_t d) const { return size(d); }
  int64_t stride(int64_t d) const { return rep()->strides[at_dim(d)]; }
  ScalarType scalar_type() const { return static_cast<ScalarType>(rep()->dtype); }
  caffe2::TypeMeta dtype() const { return scalar_type(); }
  Device device() const { return kiln_detail::device_of(rep()); }
  int64_t get_device() const { return device().is_cuda() ? device().index() : -1; }
  Layout layout() const { return kStrided; }
  bool is_cuda() const { return rep_ && device().is_cuda(); }
  bool is_cpu() const { return rep_ && device().is_cpu(); }
  bool is_meta() const { return rep_ && device().type() == kMeta; }
  bool is_hip() const { return false; }
  bool is_xpu() const { return false; }
  bool is_mps() const { return false; }
  bool is_xla() const { return false; }
  bool is_privateuseone() const { return false; }
  bool is_mkldnn() const { return false; }
  bool is_sparse() const { return false; }
  bool is_sparse_csr() const { return false; }
  bool is_quantized() const { return isQIntType(scalar_type()); }
  bool is_nested() const { return false; }
  bool is_variable() const { return true; }
  bool has_storage() const { return rep_ != nullptr; }
  bool is_alias_of(const Tensor& o) const;
  IntArrayRef sym_strides() const { return strides(); }
  int64_t sym_stride(int64_t d) const { return stride(d); }
  int64_t sym_numel() const { return numel(); }
  int64_t sym_storage_offset() const { return storage_offset(); }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_signed() const { return isSignedType(scalar_type()); }
  int64_t element_size() const { return elementSize(scalar_type()); }
  size_t itemsize() const { return static_cast<size_t>(element_size()); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  int64_t storage_offset() const;
  c10::Storage storage() const;  // kiln/compat/storage.h
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return format == MemoryFormat::Contiguous ? rep()->contiguous : is_contiguous_as(format);
  }
  bool is_non_overlapping_and_dense() const;
  MemoryFormat suggest_memory_format() const;
  TensorOptions options() const {
    return TensorOptions(scalar_type()).device(device()).layout(layout());
  }
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool wanted) const;
  Tensor grad() const;
  const GradOf mutable_grad() const;  // const, so that `auto& grad =` takes it
  const Tensor& requires_grad_(bool wanted = true) const { return set_requires_grad(wanted); }
  void backward() const { backward(Tensor()); }
  void backward(const Tensor& gradient, bool retain_graph = false, bool create_graph = false) const;
  void retain_grad() const;
  void set_data(const Tensor& data) const;
  int64_t _version() const;
  int64_t output_nr() const;
  bool is_leaf() const;
  const DeprecatedTypeProperties& type() const;
  std::string toString() const;
  void print() const;

  void* data_ptr() const { return memory(); }
  void* mutable_data_ptr() const { return memory(); }
  const void* const_data_ptr() const { return memory(); }
  template <class T>
  T* data_ptr() const {
    return typed<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return typed<T>();
  }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return typed<T>();
  }
  template <class T>
  T* data() const {
    return typed<T>();
  }
  Tensor data() const { return detach(); }
  Tensor variable_data() const { return detach(); }
  Tensor tensor_data() const { return detach(); }

  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    if (dim() != static_cast<int64_t>(N)) kiln_detail::wrong_dims("TensorAccessor", N, dim());
    return {typed<T>(), rep_->sizes, rep_->strides};
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const& {
    if (dim() != static_cast<int64_t>(N)) kiln_detail::wrong_dims("TensorAccessor", N, dim());
    return {static_cast<typename Traits<T>::PtrType>(typed<T>()), rep_->sizes, rep_->strides};
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const& {
    if (numel() > INT32_MAX) kiln_detail::too_many_elements();
    return generic_packed_accessor<T, N, Traits, int32_t>();
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const& {
    return generic_packed_accessor<T, N, Traits, int64_t>();
  }
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits,
            class Index = int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const& {
    return generic_packed_accessor<T, N, Traits, Index>();
  }

  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }
  Tensor to(ScalarType type, bool non_blocking = false, bool copy = false,
            const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>()) const;
  Tensor to(Device device, ScalarType type, bool non_blocking = false, bool copy = false,
            const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>()) const;
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
            const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>()) const;
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>()) const;
  Tensor to(const DeprecatedTypeProperties& type, bool non_blocking = false,
            bool copy = false) const;
  Tensor to(caffe2::TypeMeta type, bool non_blocking = false, bool copy = false) const {
    return to(type.toScalarType(), non_blocking, copy);
  }
  Tensor to(Device device, caffe2::TypeMeta type, bool non_blocking = false,
            bool copy = false) const {
    return to(device, type.toScalarType(), non_blocking, copy);
  }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor toType(const DeprecatedTypeProperties& type, bool non_blocking = false) const {
    return to(type, non_blocking);
  }
  Tensor toBackend(DeviceType) const = delete;
  Tensor cpu() const { return to(TensorOptions(kCPU)); }
  Tensor cuda() const { return to(TensorOptions(kCUDA)); }
  template <class T>
  Tensor to() const {
    return to(CppTypeToScalarType<T>::value);
  }
  Tensor index(const std::initializer_list<TensorIndex>& indices) const;
  Tensor index(ArrayRef<TensorIndex> indices) const;
  Tensor& index_put_(const std::initializer_list<TensorIndex>& indices, const Tensor& value);
  Tensor& index_put_(const std::initializer_list<TensorIndex>& indices, const Scalar& value);
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor operator[](const Tensor& i) const;
  Tensor operator[](const Scalar& i) const;
  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
  Tensor& operator+=(const Tensor& o) { return add_(o); }
  Tensor& operator+=(const Scalar& o) { return add_(o); }
  Tensor& operator-=(const Tensor& o) { return sub_(o); }
  Tensor& operator-=(const Scalar& o) { return sub_(o); }
  Tensor& operator*=(const Tensor& o) { return mul_(o); }
  Tensor& operator*=(const Scalar& o) { return mul_(o); }
  Tensor& operator/=(const Tensor& o) { return div_(o); }
  Tensor& operator/=(const Scalar& o) { return div_(o); }
  Tensor& operator&=(const Tensor& o);
  Tensor& operator|=(const Tensor& o);
  Tensor& operator^=(const Tensor& o);

#include <kiln/compat/generated/methods.h>
#ifdef KILN_COMPAT_MORE_OPS
#include <kiln/compat/generated/more_methods.h>
#endif

  kiln_detail::Rep* unsafe_rep() const { return rep_; }
  // Takes over one reference.
  static Tensor adopt(kiln_detail::Rep* rep) {
    Tensor tensor;
    tensor.rep_ = rep;
    return tensor;
  }
  kiln_detail::Rep* unsafeGetTensorImpl() const { return rep_; }

 private:
  const kiln_detail::Rep* rep() const {
    if (__builtin_expect(!rep_, 0)) kiln_detail::undefined_tensor();
    return rep_;
  }
  int64_t at_dim(int64_t d) const {
    const int64_t n = rep_->ndim;
    if (__builtin_expect(d >= 0 && d < n, 1)) return d;
    return kiln_detail::wrapped(d, n);
  }
  template <class T>
  T* typed() const {
    constexpr ScalarType wanted = CppTypeToScalarType<std::remove_const_t<T>>::value;
    if (__builtin_expect(scalar_type() != wanted, 0))
      kiln_detail::wrong_dtype(wanted, scalar_type());
    return static_cast<T*>(memory());
  }
  void* memory() const {
    if (__builtin_expect(!rep()->data, 0)) kiln_detail::check_memory(rep_);
    return rep_->data;
  }
  bool is_contiguous_as(MemoryFormat format) const;

  kiln_detail::Rep* rep_ = nullptr;
};

// The gradient of a tensor, to be replaced: an assignment reaches the tensor that it belongs to.
class GradOf : public Tensor {
 public:
  GradOf(const Tensor& owner, Tensor grad) : Tensor(static_cast<Tensor&&>(grad)), owner_(owner) {}
  GradOf(const GradOf&) = default;
  const GradOf& operator=(const Tensor& grad) const {
    set(grad);
    return *this;
  }
  const GradOf& operator=(const GradOf& grad) const {
    set(grad);
    return *this;
  }
  void reset() const { set(Tensor()); }

 private:
  void set(const Tensor& grad) const;
  Tensor owner_;
};
inline const GradOf Tensor::mutable_grad() const { return GradOf(*this, grad()); }

// What Tensor::type() gives, of which sources use the scalar type and the device.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(ScalarType type, Device device) : type_(type), device_(device) {}
  ScalarType scalarType() const { return type_; }
  bool is_cuda() const { return device_.is_cuda(); }
  Device device() const { return device_; }
  std::string toString() const;
  operator TensorOptions() const { return TensorOptions(type_).device(device_); }
  operator ScalarType() const { return type_; }
  TensorOptions options() const { return TensorOptions(type_).device(device_); }
  bool operator==(const DeprecatedTypeProperties& o) const {
    return type_ == o.type_ && device_.type() == o.device_.type();
  }
  bool operator!=(const DeprecatedTypeProperties& o) const { return !(*this == o); }

 private:
  ScalarType type_;
  Device device_;
};
inline DeprecatedTypeProperties CPU(ScalarType type) { return {type, Device(DeviceType::CPU)}; }
inline DeprecatedTypeProperties CUDA(ScalarType type) { return {type, Device(DeviceType::CUDA)}; }

#include <kiln/compat/generated/functions.h>

Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
             const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>());
Tensor empty_like(const Tensor& like, const TensorOptions& options = {},
                  const std::optional<MemoryFormat>& format = kiln_detail::none<MemoryFormat>());
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const TensorOptions& options = {});
namespace kiln_detail {
using Deleter = void (*)(void* data, void* context);
// Without strides (null): contiguous. The deleter runs when the last reference to the memory goes.
Tensor from_owned(void* data, IntArrayRef sizes, const IntArrayRef* strides, int64_t offset,
                  Deleter deleter, void* context, const TensorOptions& options);
// What may be called with the memory.
template <class F>
using IfDeleter = decltype(std::declval<F&>()(static_cast<void*>(nullptr)));
template <class F>
void run_deleter(void* data, void* context) {
  F* f = static_cast<F*>(context);
  (*f)(data);
  delete f;
}
Tensor tensor_of(const void* data, int64_t count, ScalarType type, const TensorOptions& options,
                 bool scalar);
struct Nothing {
  Nothing() = delete;
};
Tensor with_grad(Tensor made, const TensorOptions& options);
TensorOptions as_python(const TensorOptions& options, ScalarType type);
template <class T>
TensorOptions as_python(const TensorOptions& options) {
  return as_python(options, CppTypeToScalarType<T>::value);
}
template <class T>
Tensor nested(std::initializer_list<T> rows, const TensorOptions& options);
}  // namespace kiln_detail
inline Tensor from_blob(void* data, IntArrayRef sizes, std::nullptr_t,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, options);
}
template <class F, class = kiln_detail::IfDeleter<F>>
Tensor from_blob(void* data, IntArrayRef sizes, F deleter, const TensorOptions& options = {},
                 const std::optional<Device>& = kiln_detail::none<Device>()) {
  return kiln_detail::from_owned(data, sizes, nullptr, 0, &kiln_detail::run_deleter<F>,
                                 new F(static_cast<F&&>(deleter)), options);
}
template <class F, class = kiln_detail::IfDeleter<F>>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, F deleter,
                 const TensorOptions& options = {},
                 const std::optional<Device>& = kiln_detail::none<Device>()) {
  return kiln_detail::from_owned(data, sizes, &strides, 0, &kiln_detail::run_deleter<F>,
                                 new F(static_cast<F&&>(deleter)), options);
}
template <class F, class = kiln_detail::IfDeleter<F>>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t offset, F deleter,
                 const TensorOptions& options = {},
                 const std::optional<Device>& = kiln_detail::none<Device>()) {
  return kiln_detail::from_owned(data, sizes, &strides, offset, &kiln_detail::run_deleter<F>,
                                 new F(static_cast<F&&>(deleter)), options);
}
// Options without a dtype mean the default one, as in torch; no options mean that of the values.
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = c10::dtype<T>()) {
  return kiln_detail::tensor_of(values.data(), static_cast<int64_t>(values.size()),
                                CppTypeToScalarType<T>::value, options, false);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = c10::dtype<T>()) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = c10::dtype<T>()) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T, class = decltype(CppTypeToScalarType<T>::value)>
Tensor tensor(T value, const TensorOptions& options = c10::dtype<T>()) {
  return kiln_detail::tensor_of(&value, 1, CppTypeToScalarType<T>::value, options, false);
}

namespace kiln_detail {
template <class T>
Tensor row_of(std::initializer_list<T> row, const TensorOptions& options) {
  return tensor(ArrayRef<T>(row), options);
}
template <class T>
Tensor row_of(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options) {
  return nested(rows, options);
}
template <class T>
Tensor nested(std::initializer_list<T> rows, const TensorOptions& options) {
  std::vector<Tensor> made;
  for (const T& row : rows) made.push_back(row_of(row, options));
  return stack(made);
}
ScalarType default_dtype();
}  // namespace kiln_detail
inline caffe2::TypeMeta get_default_dtype() { return kiln_detail::default_dtype(); }

#define KILN_TENSOR_OPERATOR(op, name)                                              \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); }
KILN_TENSOR_OPERATOR(+, add)
KILN_TENSOR_OPERATOR(-, sub)
KILN_TENSOR_OPERATOR(*, mul)
KILN_TENSOR_OPERATOR(/, div)
KILN_TENSOR_OPERATOR(<, lt)
KILN_TENSOR_OPERATOR(<=, le)
KILN_TENSOR_OPERATOR(>, gt)
KILN_TENSOR_OPERATOR(>=, ge)
KILN_TENSOR_OPERATOR(==, eq)
KILN_TENSOR_OPERATOR(!=, ne)
KILN_TENSOR_OPERATOR(%, remainder)
KILN_TENSOR_OPERATOR(&, bitwise_and)
KILN_TENSOR_OPERATOR(|, bitwise_or)
KILN_TENSOR_OPERATOR(^, bitwise_xor)
#undef KILN_TENSOR_OPERATOR
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return b.reciprocal().mul(a); }

inline int64_t size(const Tensor& tensor, int64_t d) { return tensor.size(d); }
inline int64_t numel(const Tensor& tensor) { return tensor.numel(); }
inline int64_t stride(const Tensor& tensor, int64_t d) { return tensor.stride(d); }
inline bool is_complex(const Tensor& tensor) { return tensor.is_complex(); }
inline bool is_floating_point(const Tensor& tensor) { return tensor.is_floating_point(); }
inline bool is_signed(const Tensor& tensor) { return tensor.is_signed(); }
inline ScalarType promote_types(ScalarType a, ScalarType b) { return promoteTypes(a, b); }
ScalarType result_type(const Tensor& a, const Tensor& b);
ScalarType result_type(const Tensor& a, const Scalar& b);
ScalarType result_type(const Scalar& a, const Tensor& b);
ScalarType result_type(const Scalar& a, const Scalar& b);
inline Device device_of_tensor(const Tensor& tensor) { return tensor.device(); }
std::optional<Device> device_of(const Tensor& tensor);
template <class S>
auto operator<<(S& stream, const Tensor& value) -> decltype(stream.operator<<(1))& {
  stream << c10::kiln_detail::join(value).c_str();
  return stream;
}
template <class S>
auto operator<<(S& stream, const DeprecatedTypeProperties& value)
    -> decltype(stream.operator<<(1))& {
  stream << value.toString().c_str();
  return stream;
}

struct NoGradGuard {
  NoGradGuard();
  ~NoGradGuard();
  bool before;
};
// Ops that are called below it do not reach the autograd kernels of the dispatcher again.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd();
  ~AutoDispatchBelowAutograd();
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;

 private:
  void* guard_;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;

// ---- indexing

namespace indexing {
struct None_ {};
struct Ellipsis_ {};
inline constexpr None_ None{};
inline constexpr Ellipsis_ Ellipsis{};
// A bound that may be left out.
struct Bound {
  int64_t value = 0;
  bool given = false;
  Bound() = default;
  Bound(None_) {}
  Bound(std::nullopt_t) {}
  Bound(int64_t v) : value(v), given(true) {}
  template <class T, class = IfOptional<T, int64_t>>
  Bound(const T& v) : value(v ? *v : 0), given(v) {}
};
struct Slice {
  Bound start, stop, step;
  Slice(Bound from = {}, Bound to = {}, Bound by = {}) : start(from), stop(to), step(by) {}
};
}  // namespace indexing
struct TensorIndex {
  enum class Kind { none, ellipsis, integer, boolean, slice, tensor } kind;
  int64_t integer = 0;
  indexing::Slice slice;
  Tensor tensor;
  TensorIndex(std::nullopt_t) : kind(Kind::none) {}
  TensorIndex(indexing::None_) : kind(Kind::none) {}
  TensorIndex(indexing::Ellipsis_) : kind(Kind::ellipsis) {}
  TensorIndex(const char* dots);
  TensorIndex(int64_t i) : kind(Kind::integer), integer(i) {}
  TensorIndex(int i) : TensorIndex(static_cast<int64_t>(i)) {}
  TensorIndex(bool b) : kind(Kind::boolean), integer(b) {}
  TensorIndex(indexing::Slice s) : kind(Kind::slice), slice(s) {}
  TensorIndex(Tensor t) : kind(Kind::tensor), tensor(static_cast<Tensor&&>(t)) {}
};

}  // namespace kc
}  // namespace at

namespace torch {
using at::complex;  // the op, as in torch: the number is c10::complex
using at::NoGradGuard;
using at::Tensor;
using at::TensorList;
namespace indexing = at::indexing;
namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;
}  // namespace autograd
}  // namespace torch

#include <kiln/compat/factories.h>
