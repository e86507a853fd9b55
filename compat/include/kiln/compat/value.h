// SPDX-License-Identifier: Apache-2.0
// How does a value cross from Python, or from torch's dispatcher, to a C++ function and back? As a
// Value, which the archive makes by the description of the parameter's type; only the last step,
// Value to C++ type, is a template.
#pragma once

#include <kiln/compat/tensor.h>

// The device compiler only has to see which functions are used: they may be templates, whose
// kernels must exist.
#ifndef __CUDA_ARCH__

#include <utility>

struct _object;
typedef _object PyObject;

namespace kiln {
namespace compat {

// Its special members are in the archive: every source would compile them else.
struct Value {
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(Value&&) noexcept;
  ~Value();
  enum class Kind : uint8_t {
    none,
    tensor,
    integer,
    real,
    complex,
    boolean,
    text,
    list,
    dict,  // keys and values in turn, in `list`
    dtype,
    device,
    object
  } kind = Kind::none;
  int8_t device_index = -1;
  int64_t i = 0;
  double f = 0;
  double imaginary = 0;
  at::Tensor tensor;
  std::string text;
  std::vector<Value> list;
  PyObject* object = nullptr;  // borrowed in an argument; in a result one reference passes on
};

struct Type {
  enum class Kind : uint8_t {
    none,
    tensor,
    integer,
    real,
    boolean,
    text,
    optional,
    list,
    tuple,
    dict,
    dtype,
    device,
    scalar,
    object
  } kind;
  bool is_unsigned;
  uint8_t bytes;  // of an integer
  uint8_t count;  // of a tuple or a list of fixed length
  const Type* const* inner;
};

[[noreturn]] void missing_value(const char* wanted);

template <class T, class = void>
struct Caster {
  static_assert(sizeof(T) == 0,
                "kiln compat: a parameter or result of this type cannot cross from Python or "
                "torch's dispatcher");
};

template <class T>
struct Caster<const T> : Caster<T> {};

template <const Type*... T>
struct Inner {
  static constexpr const Type* list[] = {T..., nullptr};
};
#define KILN_TYPE(...) static constexpr Type type = {Type::Kind::__VA_ARGS__}

template <>
struct Caster<at::Tensor> {
  KILN_TYPE(tensor, false, 0, 0, nullptr);
  static at::Tensor take(Value& v) { return std::move(v.tensor); }
  static void give(Value& v, at::Tensor t) {
    v.kind = t.defined() ? Value::Kind::tensor : Value::Kind::none;
    v.tensor = std::move(t);
  }
};
template <class T>
struct Caster<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  KILN_TYPE(integer, std::is_unsigned_v<T>, sizeof(T), 0, nullptr);
  static T take(Value& v) { return static_cast<T>(v.i); }
  static void give(Value& v, T value) {
    v.kind = Value::Kind::integer;
    v.i = static_cast<int64_t>(value);
    v.f = std::is_unsigned_v<T> && sizeof(T) == 8 ? 1 : 0;
  }
};
template <class T>
struct Caster<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  KILN_TYPE(real, false, sizeof(T), 0, nullptr);
  static T take(Value& v) { return static_cast<T>(v.f); }
  static void give(Value& v, T value) {
    v.kind = Value::Kind::real;
    v.f = static_cast<double>(value);
  }
};
template <>
struct Caster<bool> {
  KILN_TYPE(boolean, false, 1, 0, nullptr);
  static bool take(Value& v) { return v.i != 0; }
  static void give(Value& v, bool value) {
    v.kind = Value::Kind::boolean;
    v.i = value;
  }
};
template <>
struct Caster<std::string> {
  KILN_TYPE(text, false, 0, 0, nullptr);
  static std::string take(Value& v) { return std::move(v.text); }
  static void give(Value& v, std::string value) {
    v.kind = Value::Kind::text;
    v.text = std::move(value);
  }
};
template <>
struct Caster<std::string_view> : Caster<std::string> {
  static std::string_view take(Value& v) { return v.text; }
};
template <>
struct Caster<const char*> : Caster<std::string> {
  static const char* take(Value& v) { return v.text.c_str(); }
  static void give(Value& v, const char* value) { Caster<std::string>::give(v, value); }
};
template <>
struct Caster<at::ScalarType> {
  KILN_TYPE(dtype, false, 0, 0, nullptr);
  static at::ScalarType take(Value& v) { return static_cast<at::ScalarType>(v.i); }
  static void give(Value& v, at::ScalarType value) {
    v.kind = Value::Kind::dtype;
    v.i = static_cast<int64_t>(value);
  }
};
template <>
struct Caster<at::Device> {
  KILN_TYPE(device, false, 0, 0, nullptr);
  static at::Device take(Value& v) {
    return at::Device(static_cast<at::DeviceType>(v.i), v.device_index);
  }
  static void give(Value& v, at::Device value) {
    v.kind = Value::Kind::device;
    v.i = static_cast<int64_t>(value.type());
    v.device_index = value.index();
  }
};
template <>
struct Caster<at::Scalar> {
  KILN_TYPE(scalar, false, 0, 0, nullptr);
  static at::Scalar take(Value& v);
  static void give(Value& v, const at::Scalar& value);
};
template <class T>
struct Caster<std::optional<T>> {
  KILN_TYPE(optional, false, 0, 0, Inner<&Caster<T>::type>::list);
  static std::optional<T> take(Value& v) {
    if (v.kind == Value::Kind::none) return std::nullopt;
    return Caster<T>::take(v);
  }
  static void give(Value& v, std::optional<T> value) {
    if (value) Caster<T>::give(v, std::move(*value));
  }
};
template <class T>
struct Caster<std::vector<T>> {
  KILN_TYPE(list, false, 0, 0, Inner<&Caster<T>::type>::list);
  static std::vector<T> take(Value& v) {
    std::vector<T> out;
    out.reserve(v.list.size());
    for (Value& one : v.list) out.push_back(Caster<T>::take(one));
    return out;
  }
  static void give(Value& v, std::vector<T> values) {
    v.kind = Value::Kind::list;
    v.list.resize(values.size());
    for (size_t i = 0; i < values.size(); i++) Caster<T>::give(v.list[i], std::move(values[i]));
  }
};
// A borrowed list of sizes is a tuple in Python, as in torch's binding; a vector is a list.
template <class T>
struct Caster<at::ArrayRef<T>> {
  static constexpr Type type = Caster<std::vector<T>>::type;
  static void give(Value& v, at::ArrayRef<T> values) {
    Caster<std::vector<T>>::give(v, values.vec());
    v.i = std::is_same_v<T, int64_t>;
  }
};
template <class T, size_t N>
struct Caster<std::array<T, N>> {
  KILN_TYPE(list, false, 0, N, Inner<&Caster<T>::type>::list);
  static std::array<T, N> take(Value& v) {
    std::array<T, N> out;
    for (size_t i = 0; i < N; i++) out[i] = Caster<T>::take(v.list[i]);
    return out;
  }
  static void give(Value& v, const std::array<T, N>& values) {
    v.kind = Value::Kind::list;
    v.list.resize(N);
    for (size_t i = 0; i < N; i++) Caster<T>::give(v.list[i], values[i]);
  }
};
template <class... T>
struct Caster<std::tuple<T...>> {
  KILN_TYPE(tuple, false, 0, sizeof...(T), Inner<&Caster<std::decay_t<T>>::type...>::list);
  template <size_t... I>
  static std::tuple<T...> take_at(Value& v, std::index_sequence<I...>) {
    return std::tuple<T...>(Caster<std::decay_t<T>>::take(v.list[I])...);
  }
  static std::tuple<T...> take(Value& v) { return take_at(v, std::index_sequence_for<T...>()); }
  template <size_t... I>
  static void give_at(Value& v, std::tuple<T...>& values, std::index_sequence<I...>) {
    (Caster<std::decay_t<T>>::give(v.list[I], std::get<I>(values)), ...);
  }
  static void give(Value& v, std::tuple<T...> values) {
    v.kind = Value::Kind::list;
    v.i = 1;  // a tuple
    v.list.resize(sizeof...(T));
    give_at(v, values, std::index_sequence_for<T...>());
  }
};
template <class A, class B>
struct Caster<std::pair<A, B>> {
  using Tuple = Caster<std::tuple<A, B>>;
  static constexpr Type type = Tuple::type;
  static std::pair<A, B> take(Value& v) {
    return {Caster<A>::take(v.list[0]), Caster<B>::take(v.list[1])};
  }
  static void give(Value& v, std::pair<A, B> p) {
    Tuple::give(v, {std::move(p.first), std::move(p.second)});
  }
};

// What a parameter is held as while the function runs: its type without reference; of a borrowed
// list the list.
template <class T>
struct Held {
  T value;
  explicit Held(Value& v) : value(Caster<T>::take(v)) {}
  template <class A>
  A pass() {
    return static_cast<A>(value);
  }
  static constexpr const Type* type = &Caster<T>::type;
};
template <class T>
struct Held<at::ArrayRef<T>> {
  std::vector<T> list;
  at::ArrayRef<T> value;
  explicit Held(Value& v) : list(Caster<std::vector<T>>::take(v)), value(list) {}
  template <class A>
  A pass() {
    return static_cast<A>(value);
  }
  static constexpr const Type* type = &Caster<std::vector<T>>::type;
};
template <class T>
struct Held<std::optional<at::ArrayRef<T>>> {
  std::optional<std::vector<T>> list;
  std::optional<at::ArrayRef<T>> value;
  explicit Held(Value& v) : list(Caster<std::optional<std::vector<T>>>::take(v)) {
    if (list) value = *list;
  }
  template <class A>
  A pass() {
    return static_cast<A>(value);
  }
  static constexpr const Type* type = &Caster<std::optional<std::vector<T>>>::type;
};

// A C++ function without its type.
struct Function {
  void* data;
  void (*invoke)(void* data, Value* arguments, Value& result);
  int parameter_count;
  const Type* const* parameters;
  const Type* result;  // null: void
};

template <class R, class... A>
struct Invoker {
  static constexpr const Type* parameters[] = {Held<std::decay_t<A>>::type..., nullptr};
  template <class F, size_t... I>
  static void call(F& f, Value* v, Value& result, std::index_sequence<I...>) {
    std::tuple<Held<std::decay_t<A>>...> held(v[I]...);
    (void)v;
    if constexpr (std::is_void_v<R>)
      f(std::get<I>(held).template pass<A>()...);
    else
      Caster<std::decay_t<R>>::give(result, f(std::get<I>(held).template pass<A>()...));
  }
  template <class F>
  static void invoke(void* data, Value* arguments, Value& result) {
    if constexpr (std::is_pointer_v<F>) {
      F f = reinterpret_cast<F>(data);
      call(f, arguments, result, std::index_sequence_for<A...>());
    } else {
      call(*static_cast<F*>(data), arguments, result, std::index_sequence_for<A...>());
    }
  }
  static constexpr const Type* result_type() {
    if constexpr (std::is_void_v<R>)
      return nullptr;
    else
      return &Caster<std::decay_t<R>>::type;
  }
  template <class F>
  static Function make(void* data) {
    return {data, &invoke<F>, static_cast<int>(sizeof...(A)), parameters, result_type()};
  }
};

template <class R, class... A>
Function function_of(R (*f)(A...)) {
  return Invoker<R, A...>::template make<R (*)(A...)>(reinterpret_cast<void*>(f));
}
template <class F, class R, class... A>
Function functor_of(const F& f, R (F::*)(A...) const) {
  return Invoker<R, A...>::template make<F>(new F(f));
}
template <class F, class R, class... A>
Function functor_of(const F& f, R (F::*)(A...)) {
  return Invoker<R, A...>::template make<F>(new F(f));
}
template <class F, class = decltype(&F::operator())>
Function function_of(const F& f) {
  return functor_of(f, &F::operator());
}

// For sources with the real pybind11 (kiln/compat/pybind.h). A function runs within a PythonCall,
// which it makes after its arguments were loaded.
bool load_argument(const Type& type, PyObject* object, bool convert, Value& value);
PyObject* result_object(const Value& value);  // a new reference
class PythonCall {
 public:
  PythonCall();
  ~PythonCall() noexcept(false);  // raises the first fault of a launch
  PythonCall(const PythonCall&) = delete;

 private:
  void* call_;
};
void set_error_of_torch();  // in a catch block: the Python error that stands for it

}  // namespace compat
}  // namespace kiln
#endif
