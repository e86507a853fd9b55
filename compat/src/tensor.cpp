// SPDX-License-Identifier: Apache-2.0
// What does at::Tensor do beyond the generated ops? Its record, new tensors, conversions, indexing.
#include <stdio.h>
#include <string.h>

#include "dynamic.h"
#include "front.h"
#include "op_call.h"
#include "shim.h"
#include "torch.h"

namespace at {
inline namespace kc {

using kiln::compat::checked;
using kiln::compat::engine_stands_in;
using kiln::compat::object_from;
using kiln::compat::Ref;
using kiln::compat::WithGil;
using RuntimeRep = kiln::detail::TensorRep;

namespace kiln_detail {

static_assert(offsetof(Rep, numel) == offsetof(RuntimeRep, numel) &&
                  offsetof(Rep, ndim) == offsetof(RuntimeRep, ndim) &&
                  offsetof(Rep, dtype) == offsetof(RuntimeRep, dtype) && sizeof(kiln::Dtype) == 4 &&
                  offsetof(Rep, device_type) == offsetof(RuntimeRep, device) &&
                  sizeof(kiln::DeviceType) == 4 &&
                  offsetof(Rep, contiguous) == offsetof(RuntimeRep, contiguous),
              "the head of a record is read in place");

template <class T>
const std::optional<T>& none() {
  static const auto* empty = new std::optional<T>;
  return *empty;
}
template const std::optional<Tensor>& none();
template const std::optional<Scalar>& none();
template const std::optional<int64_t>& none();
template const std::optional<double>& none();
template const std::optional<bool>& none();
template const std::optional<const char*>& none();
template const std::optional<ScalarType>& none();
template const std::optional<Layout>& none();
template const std::optional<Device>& none();
template const std::optional<MemoryFormat>& none();

void retain(Rep* rep) { kiln::detail::retain(reinterpret_cast<RuntimeRep*>(rep)); }
void release(Rep* rep) { kiln::detail::release(reinterpret_cast<RuntimeRep*>(rep)); }

Device device_of(const Rep* rep) {
  if (rep->device_type == 0) return engine_stands_in() ? Device(kCUDA, 0) : Device(kCPU);
  return Device(static_cast<DeviceType>(rep->device_type),
                static_cast<DeviceIndex>(rep->device_index));
}

}  // namespace kiln_detail

namespace {

using kiln::compat::shim;

void* handle_of(const Tensor& tensor) {
  return static_cast<kiln::detail::Rep*>(reinterpret_cast<RuntimeRep*>(tensor.unsafe_rep()))
      ->handle;
}

Tensor of_rep(kiln::detail::TensorRep* rep) {
  return Tensor::adopt(reinterpret_cast<kiln_detail::Rep*>(rep));
}

// The device as the allocator must get it.
kiln::Device place(const TensorOptions& options) {
  Device device = options.device();
  if (device.is_cuda() && engine_stands_in()) device = Device(kCPU);
  int index = device.index();
  if (device.is_cuda() && index < 0) {
    static const auto current = shim<int (*)(int32_t*)>("aoti_torch_get_current_device_index");
    int32_t now = 0;
    current(&now);
    index = now;
  }
  return {static_cast<kiln::DeviceType>(device.type()), device.is_cpu() ? 0 : index};
}

bool is_plain(const TensorOptions& options, const std::optional<MemoryFormat>& format) {
  return !options.pinned_memory() && !options.requires_grad() && options.layout() == kStrided &&
         (!format || *format == MemoryFormat::Contiguous) &&
         (options.device().is_cpu() || options.device().is_cuda()) &&
         options.dtype() != ScalarType::Undefined;
}

Tensor empty_dense(IntArrayRef sizes, const TensorOptions& options) {
  kiln::detail::torch_require();
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return of_rep(kiln::detail::torch_empty(
      {sizes.data(), sizes.size()}, {strides.data(), strides.size()},
      static_cast<kiln::Dtype>(options.dtype().toScalarType()), place(options)));
}

bool any_negative(IntArrayRef sizes) {
  for (int64_t size : sizes)
    if (size < 0) return true;
  return false;
}

}  // namespace

Tensor empty(IntArrayRef sizes, const TensorOptions& options,
             const std::optional<MemoryFormat>& given) {
  const std::optional<MemoryFormat> format = kiln_detail::format_of(options, given);
  if (is_plain(options, format) && !any_negative(sizes)) return empty_dense(sizes, options);
  kiln_detail::Call call(
      "empty", "memory_format",
      {kiln_detail::plain(sizes), kiln_detail::named("dtype", kiln_detail::option_dtype(options)),
       kiln_detail::named("layout", kiln_detail::option_layout(options)),
       kiln_detail::named("device", kiln_detail::option_device(options)),
       kiln_detail::named("pin_memory", kiln_detail::option_pin_memory(options)),
       kiln_detail::named("memory_format", format)});
  return call.result<Tensor>();
}

Tensor empty_like(const Tensor& like, const TensorOptions& options,
                  const std::optional<MemoryFormat>& given) {
  const std::optional<MemoryFormat> format = kiln_detail::format_of(options, given);
  const TensorOptions whole =
      TensorOptions(options.has_dtype() ? options.dtype().toScalarType() : like.scalar_type())
          .device(options.has_device() ? options.device() : like.device())
          .pinned_memory(options.pinned_memory_opt());
  if (is_plain(whole, format) && like.is_contiguous()) return empty_dense(like.sizes(), whole);
  kiln_detail::Call call(
      "empty_like", "",
      {kiln_detail::plain(like), kiln_detail::named("dtype", kiln_detail::option_dtype(options)),
       kiln_detail::named("layout", kiln_detail::option_layout(options)),
       kiln_detail::named("device", kiln_detail::option_device(options)),
       kiln_detail::named("pin_memory", kiln_detail::option_pin_memory(options)),
       kiln_detail::named("memory_format", format)});
  return call.result<Tensor>();
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  using FromBlob = int (*)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t,
                           int32_t, int32_t, void**);
  static const auto make = shim<FromBlob>("aoti_torch_create_tensor_from_blob");
  const kiln::Device where = place(options);
  void* handle = nullptr;
  if (make(data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), 0,
           static_cast<int32_t>(options.dtype().toScalarType()), static_cast<int32_t>(where.type),
           where.index, &handle))
    throw Error("torch refused to make a tensor of the caller's memory");
  return kiln::compat::adopt_handle(handle);
}

static std::vector<int64_t> dense_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, dense_strides(sizes), options);
}

namespace kiln_detail {
Tensor from_owned(void* data, IntArrayRef sizes, const IntArrayRef* strides, int64_t offset,
                  Deleter deleter, void* context, const TensorOptions& options) {
  using FromBlob =
      int (*)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t,
              void**, int32_t, const uint8_t*, int64_t, Deleter, void*);
  static const auto make = shim<FromBlob>("torch_from_blob", "2.11");
  const std::vector<int64_t> dense = strides ? strides->vec() : dense_strides(sizes);
  const kiln::Device where = place(options);
  void* handle = nullptr;
  if (make(data, static_cast<int64_t>(sizes.size()), sizes.data(), dense.data(), offset,
           static_cast<int32_t>(options.dtype().toScalarType()), static_cast<int32_t>(where.type),
           where.type == kiln::DeviceType::cpu ? -1 : where.index, &handle, 0, nullptr, 0, deleter,
           context))
    throw Error("torch refused to make a tensor of the caller's memory");
  return kiln::compat::adopt_handle(handle);
}

Tensor tensor_of(const void* data, int64_t count, ScalarType type, const TensorOptions& options,
                 bool scalar) {
  const int64_t sizes[] = {count};
  Tensor made = empty_dense(scalar ? IntArrayRef() : IntArrayRef(sizes, 1), TensorOptions(type));
  if (count > 0) memcpy(made.data_ptr(), data, static_cast<size_t>(count * elementSize(type)));
  TensorOptions wanted = options;
  if (!wanted.has_dtype()) wanted = wanted.dtype(kiln_detail::default_dtype());
  wanted = kiln_detail::without_grad(wanted);
  if (wanted.dtype() == type && wanted.device().is_cpu()) return made;
  const TensorOptions plain = TensorOptions(wanted.dtype()).device(wanted.device_opt());
  return made.to(plain.pinned_memory(wanted.pinned_memory_opt()));
}
TensorOptions as_python(const TensorOptions& options, ScalarType type) {
  if (options.has_dtype()) return options;
  if (type == kInt) return options.dtype(kLong);
  if (type != kFloat && type != kDouble) return options.dtype(type);
  return options.dtype(default_dtype());
}
}  // namespace kiln_detail

bool Tensor::is_same(const Tensor& o) const {
  // A handle points to torch's own reference to the tensor.
  return rep_ == o.rep_ ||
         (rep_ && o.rep_ &&
          *static_cast<void**>(handle_of(*this)) == *static_cast<void**>(handle_of(o)));
}

bool Tensor::is_alias_of(const Tensor& o) const {
  auto storage = [](const Tensor& t) {
    auto* rep =
        static_cast<kiln::detail::Rep*>(reinterpret_cast<kiln::detail::TensorRep*>(t.unsafe_rep()));
    return rep->region ? rep->region : rep->data;
  };
  return rep_ && o.rep_ && storage(*this) == storage(o);
}

Tensor Tensor::to(const DeprecatedTypeProperties& type, bool non_blocking, bool copy) const {
  return to(type.options(), non_blocking, copy);
}

int64_t Tensor::storage_offset() const {
  static const auto get = shim<int (*)(void*, int64_t*)>("aoti_torch_get_storage_offset");
  int64_t offset = 0;
  rep();
  get(handle_of(*this), &offset);
  return offset;
}

bool Tensor::is_non_overlapping_and_dense() const {
  int64_t span = 1;
  for (int64_t d = 0; d < dim(); d++) span += (size(d) - 1) * stride(d);
  return is_contiguous() || span == numel();
}

namespace {
std::vector<int64_t> channels_last_strides(const Tensor& t) {
  std::vector<int64_t> strides(static_cast<size_t>(t.dim()));
  int64_t next = 1;
  auto take = [&](int64_t d) {
    strides[static_cast<size_t>(d)] = next;
    next *= t.size(d);
  };
  take(1);
  for (int64_t d = t.dim() - 1; d >= 2; d--) take(d);
  take(0);
  return strides;
}
}  // namespace

bool Tensor::is_contiguous_as(MemoryFormat format) const {
  const int64_t wanted = format == MemoryFormat::ChannelsLast     ? 4
                         : format == MemoryFormat::ChannelsLast3d ? 5
                                                                  : -1;
  if (dim() != wanted) return false;
  const std::vector<int64_t> strides = channels_last_strides(*this);
  for (int64_t d = 0; d < dim(); d++)
    if (size(d) != 1 && stride(d) != strides[static_cast<size_t>(d)]) return false;
  return true;
}

MemoryFormat Tensor::suggest_memory_format() const {
  if (dim() == 4 && !is_contiguous() && is_contiguous_as(MemoryFormat::ChannelsLast))
    return MemoryFormat::ChannelsLast;
  if (dim() == 5 && !is_contiguous() && is_contiguous_as(MemoryFormat::ChannelsLast3d))
    return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  kiln_detail::Call call("contiguous", "",
                         {kiln_detail::plain(*this), kiln_detail::named("memory_format", format)});
  return call.result<Tensor>();
}

Scalar Tensor::item() const {
  kiln_detail::Call call("item", "", {kiln_detail::plain(*this)});
  return call.result<Scalar>();
}

namespace {
Tensor convert(const Tensor& self, std::optional<ScalarType> type, std::optional<Device> device,
               const TensorOptions& o, bool non_blocking, bool copy,
               const std::optional<MemoryFormat>& format) {
  if (device && device->is_cuda() && engine_stands_in()) device = Device(kCPU);
  kiln_detail::Call call(
      "to", "dtype_layout",
      {kiln_detail::plain(self), kiln_detail::named("dtype", type),
       kiln_detail::named("layout", o.layout_opt()), kiln_detail::named("device", device),
       kiln_detail::named("pin_memory", o.pinned_memory_opt()),
       kiln_detail::named("non_blocking", non_blocking), kiln_detail::named("copy", copy),
       kiln_detail::named("memory_format", format)});
  return call.result<Tensor>();
}
}  // namespace

Tensor Tensor::to(ScalarType type, bool non_blocking, bool copy,
                  const std::optional<MemoryFormat>& format) const {
  if (type == scalar_type() && !copy && !format) return *this;
  return convert(*this, type, std::nullopt, {}, non_blocking, copy, format);
}
Tensor Tensor::to(Device device, ScalarType type, bool non_blocking, bool copy,
                  const std::optional<MemoryFormat>& format) const {
  return convert(*this, type, device, {}, non_blocking, copy, format);
}
Tensor Tensor::to(const TensorOptions& o, bool non_blocking, bool copy,
                  const std::optional<MemoryFormat>& format) const {
  return convert(*this, kiln_detail::option_dtype(o), o.device_opt(), o, non_blocking, copy,
                 kiln_detail::format_of(o, format));
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy,
                  const std::optional<MemoryFormat>& format) const {
  return convert(*this, other.scalar_type(), other.device(), {}, non_blocking, copy, format);
}

// ---- what only Python has

namespace {

Ref attribute(const Tensor& tensor, const char* name) {
  return checked(PyObject_GetAttrString(object_from(tensor).get(), name));
}

Ref index_object(const TensorIndex& index) {
  auto number = [](const indexing::Bound& bound) {
    return bound.given ? checked(PyLong_FromLongLong(bound.value))
                       : Ref::to(kiln::compat::py_none());
  };
  switch (index.kind) {
    case TensorIndex::Kind::none:
      return Ref::to(kiln::compat::py_none());
    case TensorIndex::Kind::ellipsis:
      return Ref::to(reinterpret_cast<PyObject*>(_Py_EllipsisObject));
    case TensorIndex::Kind::integer:
      return checked(PyLong_FromLongLong(index.integer));
    case TensorIndex::Kind::boolean:
      return checked(PyBool_FromLong(index.integer != 0));
    case TensorIndex::Kind::slice: {
      Ref start = number(index.slice.start), stop = number(index.slice.stop),
          step = number(index.slice.step);
      return checked(PySlice_New(start.get(), stop.get(), step.get()));
    }
    default:
      return object_from(index.tensor);
  }
}

Ref index_tuple(ArrayRef<TensorIndex> indices) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(indices.size())));
  for (size_t i = 0; i < indices.size(); i++)
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), index_object(indices[i]).take());
  return tuple;
}

void assign(const Tensor& self, ArrayRef<TensorIndex> indices, Ref value) {
  Ref object = object_from(self), key = index_tuple(indices);
  if (PyObject_SetItem(object.get(), key.get(), value.get())) kiln::compat::throw_python_error();
}

}  // namespace

std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Device>(tensor.device()) : std::nullopt;
}

TensorIndex::TensorIndex(const char* dots) : kind(Kind::ellipsis) {
  if (strcmp(dots, "..."))
    throw Error(
        c10::str("Expected \"...\" to represent an ellipsis index, but got \"", dots, "\""));
}

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  WithGil gil;
  Ref object = object_from(*this), key = index_tuple(indices);
  Ref found = checked(PyObject_GetItem(object.get(), key.get()));
  return kiln::compat::tensor_from(found.get());
}
Tensor Tensor::index(const std::initializer_list<TensorIndex>& indices) const {
  return index(ArrayRef<TensorIndex>(indices));
}
Tensor& Tensor::index_put_(const std::initializer_list<TensorIndex>& indices, const Tensor& value) {
  WithGil gil;
  assign(*this, indices, object_from(value));
  return *this;
}
Tensor& Tensor::index_put_(const std::initializer_list<TensorIndex>& indices, const Scalar& value) {
  WithGil gil;
  assign(*this, indices, object_from(kiln_detail::plain(value).value));
  return *this;
}
Tensor Tensor::operator[](const Scalar& i) const {
  TORCH_CHECK_INDEX(i.isIntegral(false), "Can only index tensors with integral scalars");
  return select(0, i.toLong());
}
Tensor Tensor::operator[](const Tensor& i) const {
  TORCH_CHECK_INDEX(i.defined(), "Can only index with tensors that are defined");
  TORCH_CHECK_INDEX(i.dim() == 0, "Can only index with tensors that are scalars (zero-dim)");
  return operator[](i.item());
}
Tensor& Tensor::operator&=(const Tensor& o) { return bitwise_and_(o); }
Tensor& Tensor::operator|=(const Tensor& o) { return bitwise_or_(o); }
Tensor& Tensor::operator^=(const Tensor& o) {
  kiln_detail::Call call("bitwise_xor_", "Tensor",
                         {kiln_detail::plain(*this), kiln_detail::plain(o)});
  kiln_detail::refresh(*this);
  return *this;
}

bool Tensor::requires_grad() const {
  if (!kiln::compat::has_python()) return false;
  WithGil gil;
  return PyObject_IsTrue(attribute(*this, "requires_grad").get()) == 1;
}
const Tensor& Tensor::set_requires_grad(bool wanted) const {
  TORCH_CHECK(!wanted || is_floating_point() || is_complex(),
              "Only Tensors of floating point and complex dtype can require gradients");
  WithGil gil;
  Ref object = object_from(*this), value = checked(PyBool_FromLong(wanted));
  if (PyObject_SetAttrString(object.get(), "requires_grad", value.get()))
    kiln::compat::throw_python_error();
  return *this;
}
Tensor Tensor::grad() const {
  WithGil gil;
  Ref found = attribute(*this, "grad");
  return found.get() == kiln::compat::py_none() ? Tensor() : kiln::compat::tensor_from(found.get());
}

namespace {
Ref called(const Tensor& tensor, const char* method, Ref words) {
  return checked(PyObject_CallObject(attribute(tensor, method).get(), words.get()));
}
int64_t counted(const Tensor& tensor, const char* name) {
  return PyLong_AsLongLong(attribute(tensor, name).get());
}
}  // namespace
void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  WithGil gil;
  Ref words = checked(PyTuple_New(3));
  PyTuple_SetItem(
      words.get(), 0,
      (gradient.defined() ? object_from(gradient) : Ref::to(kiln::compat::py_none())).take());
  PyTuple_SetItem(words.get(), 1, checked(PyBool_FromLong(retain_graph || create_graph)).take());
  PyTuple_SetItem(words.get(), 2, checked(PyBool_FromLong(create_graph)).take());
  called(*this, "backward", static_cast<Ref&&>(words));
}
void Tensor::retain_grad() const {
  WithGil gil;
  called(*this, "retain_grad", checked(PyTuple_New(0)));
}
void Tensor::set_data(const Tensor& data) const {
  WithGil gil;
  Ref object = object_from(*this), value = object_from(data);
  if (PyObject_SetAttrString(object.get(), "data", value.get())) kiln::compat::throw_python_error();
}
int64_t Tensor::_version() const {
  WithGil gil;
  return counted(*this, "_version");
}
int64_t Tensor::output_nr() const {
  WithGil gil;
  return counted(*this, "output_nr");
}
bool Tensor::is_leaf() const {
  if (!kiln::compat::has_python()) return true;
  WithGil gil;
  return PyObject_IsTrue(attribute(*this, "is_leaf").get()) == 1;
}
ScalarType kiln_detail::default_dtype() {
  if (!kiln::compat::has_python()) return kFloat;
  WithGil gil;
  Ref none = checked(PyTuple_New(0));
  Ref type = checked(PyObject_CallObject(
      kiln::compat::torch_attribute("torch", "get_default_dtype").get(), none.get()));
  for (ScalarType known : {kDouble, kHalf, kBFloat16})
    if (type.get() == kiln::compat::dtype_object(known).get()) return known;
  return kFloat;
}
void GradOf::set(const Tensor& grad) const {
  WithGil gil;
  Ref object = object_from(owner_);
  Ref value = grad.defined() ? object_from(grad) : Ref::to(kiln::compat::py_none());
  if (PyObject_SetAttrString(object.get(), "grad", value.get())) kiln::compat::throw_python_error();
}

std::string DeprecatedTypeProperties::toString() const {
  return std::string(device_.is_cuda() ? "CUDA" : "CPU") + c10::toString(type_) + "Type";
}
std::string Tensor::toString() const { return type().toString(); }
const DeprecatedTypeProperties& Tensor::type() const {
  static const DeprecatedTypeProperties* table[2][64] = {};
  const bool cuda = is_cuda();
  const DeprecatedTypeProperties*& entry = table[cuda][static_cast<int>(scalar_type()) & 63];
  if (!entry)
    entry = new DeprecatedTypeProperties(scalar_type(), cuda ? Device(kCUDA) : Device(kCPU));
  return *entry;
}
void Tensor::print() const {
  fprintf(stderr, "[%s %s]\n", toString().c_str(), c10::str(sizes()).c_str());
}

NoGradGuard::NoGradGuard() {
  static const auto get = shim<bool (*)()>("aoti_torch_grad_mode_is_enabled");
  static const auto set = shim<void (*)(bool)>("aoti_torch_grad_mode_set_enabled");
  before = get();
  set(false);
}
NoGradGuard::~NoGradGuard() {
  static const auto set = shim<void (*)(bool)>("aoti_torch_grad_mode_set_enabled");
  set(before);
}

}  // namespace kc
}  // namespace at

namespace torch {
inline namespace kc {
using at::kiln_detail::with_grad;
using at::kiln_detail::without_grad;
Tensor empty(IntArrayRef sizes, const TensorOptions& options,
             const std::optional<MemoryFormat>& format) {
  return with_grad(at::empty(sizes, without_grad(options), format), options);
}
Tensor empty_like(const Tensor& like, const TensorOptions& options,
                  const std::optional<MemoryFormat>& format) {
  return with_grad(at::empty_like(like, without_grad(options), format), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return with_grad(at::from_blob(data, sizes, options), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return with_grad(at::from_blob(data, sizes, strides, options), options);
}
}  // namespace kc
}  // namespace torch
