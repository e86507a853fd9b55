// SPDX-License-Identifier: Apache-2.0
// How does a C++ function become an operator? KILN_OP(function, "names and defaults"): types come
// from the signature, names from the text; both are compared while compiling, and one small adapter
// for each op turns slots into arguments.
#pragma once

#include <kiln/fake_rule.h>
#include <kiln/ffi_symbol.h>
#include <kiln/op_name.h>
#include <kiln/spec.h>
#include <kiln/tensor.h>
#include <kiln/types.h>

namespace kiln {

// A result of N tensors: `Tensors<2> f(...) { return {quotient, remainder}; }`.
template <int N>
struct Tensors {
  Tensor items[N];
};

// A result of several values of different types.
template <class... T>
struct Tuple;
template <>
struct Tuple<> {};
template <class H, class... T>
struct Tuple<H, T...> {
  H head;
  Tuple<T...> tail;
  Tuple(H h, T... t) : head(static_cast<H&&>(h)), tail(static_cast<T&&>(t)...) {}
};

// A result whose number of tensors is known at run time: Tensor[] in the schema.
class TensorVec {
 public:
  TensorVec() = default;
  TensorVec(TensorVec&& other) noexcept
      : items_(other.items_), size_(other.size_), room_(other.room_) {
    other.items_ = nullptr;
    other.size_ = other.room_ = 0;
  }
  TensorVec(const TensorVec&) = delete;
  TensorVec& operator=(const TensorVec&) = delete;
  ~TensorVec() { delete[] items_; }
  void push(Tensor tensor) {
    if (size_ == room_) grow();
    items_[size_++] = static_cast<Tensor&&>(tensor);
  }
  size_t size() const { return size_; }
  Tensor& operator[](size_t i) { return items_[i]; }
  const Tensor& operator[](size_t i) const { return items_[i]; }

 private:
  void grow() {
    room_ = room_ ? 2 * room_ : 4;
    Tensor* wider = new Tensor[room_];
    for (size_t i = 0; i < size_; i++) wider[i] = static_cast<Tensor&&>(items_[i]);
    delete[] items_;
    items_ = wider;
  }
  Tensor* items_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

namespace detail {

// One argument or result between the caller's form (torch's stack, the C ABI) and C++.
struct Slot {
  Tensor tensor;
  bool present = true;  // false: an optional left out
  union {
    int64_t i;
    double f;
    Device device;
    struct {
      const void* data;
      size_t count;
    } list;  // of a string too
  };
  TensorVec* tensors = nullptr;  // a result Tensor[]; the receiver deletes it
  Slot() : i(0) {}
};

[[noreturn]] void out_of_range(const Slot&, int bytes, bool is_signed);
[[noreturn]] void beyond_float(const Slot&);

template <class T>
struct NotSupported {
  static constexpr bool value = false;
};
// A message says what is wrong, then, after a full stop, how to fix it; kiln's report of a failed
// build has both at the user's line. What a wrong type lacks follows, so that it is the only error.
template <class T>
struct Argument {
  static_assert(NotSupported<T>::value,
                "KILN_OP: torch cannot pass a parameter of this type. Use Tensor, const Tensor&, "
                "Tensor& (written to), Optional<...>, TensorList, int64_t, int, double, float, "
                "bool, Str, Span<const int64_t>, Span<const double>, Dtype or Device");
  static constexpr uint8_t kind = kTensor;
  static T get(Slot&);
};
template <class T>
struct Argument<T*> {
  static_assert(NotSupported<T>::value,
                "KILN_OP: torch cannot pass a pointer. Take a Tensor and call data<float>() in the "
                "function (for text: Str); register the function that launches a kernel, not the "
                "kernel");
  static constexpr uint8_t kind = kTensor;
  static T* get(Slot&);
};
template <class T>
struct Argument<const T&> : Argument<T> {};
template <>
struct Argument<Tensor> {
  static constexpr uint8_t kind = kTensor;
  static const Tensor& get(Slot& s) { return s.tensor; }
};
template <>
struct Argument<Tensor&> {
  static constexpr uint8_t kind = kTensor | kMutable;
  static Tensor& get(Slot& s) { return s.tensor; }
};
template <>
struct Argument<bool> {
  static constexpr uint8_t kind = kBool;
  static bool get(Slot& s) { return s.i != 0; }
};
template <class I>
struct IntegerArgument {
  static constexpr uint8_t kind = kInt;
  static I get(Slot& s) {
    const I value = static_cast<I>(s.i);
    if (static_cast<int64_t>(value) != s.i || (value < 0) != (s.i < 0))
      out_of_range(s, sizeof(I), I(-1) < I(0));
    return value;
  }
};
template <>
struct Argument<int> : IntegerArgument<int> {};
template <>
struct Argument<unsigned> : IntegerArgument<unsigned> {};
template <>
struct Argument<long> : IntegerArgument<long> {};
template <>
struct Argument<long long> : IntegerArgument<long long> {};
template <>
struct Argument<unsigned long> : IntegerArgument<unsigned long> {};
template <>
struct Argument<double> {
  static constexpr uint8_t kind = kFloat;
  static double get(Slot& s) { return s.f; }
};
template <>
struct Argument<float> {
  static constexpr uint8_t kind = kFloat;
  static float get(Slot& s) {
    // The first value that rounds to infinity lies half a step above the largest float.
    constexpr double kFirstBeyond = 0x1.ffffffp127, kLargest = 0x1.fffffffffffffp1023;
    const double size = s.f < 0 ? -s.f : s.f;
    if (size >= kFirstBeyond && size <= kLargest) beyond_float(s);
    return static_cast<float>(s.f);
  }
};
template <>
struct Argument<Str> {
  static constexpr uint8_t kind = kStr;
  static Str get(Slot& s) { return {static_cast<const char*>(s.list.data), s.list.count}; }
};
template <>
struct Argument<Dtype> {
  static constexpr uint8_t kind = kDtype;
  static Dtype get(Slot& s) { return static_cast<Dtype>(s.i); }
};
template <>
struct Argument<Device> {
  static constexpr uint8_t kind = kDevice;
  static Device get(Slot& s) { return s.device; }
};
template <class T, uint8_t Kind>
struct ListArgument {
  static constexpr uint8_t kind = Kind;
  static Span<const T> get(Slot& s) { return {static_cast<const T*>(s.list.data), s.list.count}; }
};
template <>
struct Argument<Span<const Tensor>> : ListArgument<Tensor, kTensorList> {};
template <>
struct Argument<Span<const int64_t>> : ListArgument<int64_t, kIntList> {};
template <>
struct Argument<Span<const double>> : ListArgument<double, kFloatList> {};
template <class T>
struct Argument<Optional<T>> {
  static constexpr uint8_t kind = Argument<T>::kind | kOptional;
  static Optional<T> get(Slot& s) {
    if (s.present) return Optional<T>(Argument<T>::get(s));
    return {};
  }
};

template <class R>
struct Returned {
  static_assert(NotSupported<R>::value,
                "KILN_OP: torch cannot take a result of this type. Return void, Tensor, "
                "Tensors<N>, TensorVec, int64_t, double, bool, or a Tuple of them; an op that "
                "writes to a Tensor& returns void");
  static constexpr uint8_t kinds[] = {kTensor};
  static constexpr int count = 1;
  template <class T>
  static void put(T&&, Slot*);
};
template <>
struct Returned<Tensor> {
  static constexpr uint8_t kinds[] = {kTensor};
  static constexpr int count = 1;
  static void put(Tensor&& value, Slot* to) { to->tensor = static_cast<Tensor&&>(value); }
};
template <>
struct Returned<bool> {
  static constexpr uint8_t kinds[] = {kBool};
  static constexpr int count = 1;
  static void put(bool value, Slot* to) { to->i = value; }
};
struct ReturnedInteger {
  static constexpr uint8_t kinds[] = {kInt};
  static constexpr int count = 1;
  static void put(int64_t value, Slot* to) { to->i = value; }
};
template <>
struct Returned<int> : ReturnedInteger {};
template <>
struct Returned<long> : ReturnedInteger {};
template <>
struct Returned<long long> : ReturnedInteger {};
struct ReturnedReal {
  static constexpr uint8_t kinds[] = {kFloat};
  static constexpr int count = 1;
  static void put(double value, Slot* to) { to->f = value; }
};
template <>
struct Returned<double> : ReturnedReal {};
template <>
struct Returned<float> : ReturnedReal {};
template <>
struct Returned<TensorVec> {
  static constexpr uint8_t kinds[] = {kTensorList};
  static constexpr int count = 1;
  static void put(TensorVec&& value, Slot* to) {
    to->tensors = new TensorVec(static_cast<TensorVec&&>(value));
  }
};
template <int N>
struct KindsOfTensors {
  uint8_t values[N];
  constexpr KindsOfTensors() : values{} {
    for (int i = 0; i < N; i++) values[i] = kTensor;
  }
};
template <int N>
struct Returned<Tensors<N>> {
  static constexpr KindsOfTensors<N> all{};
  static constexpr const uint8_t (&kinds)[N] = all.values;
  static constexpr int count = N;
  static void put(Tensors<N>&& value, Slot* to) {
    for (int i = 0; i < N; i++) to[i].tensor = static_cast<Tensor&&>(value.items[i]);
  }
};
template <class... T>
struct Returned<Tuple<T...>> {
  static constexpr uint8_t kinds[] = {Returned<T>::kinds[0]...};
  static constexpr int count = sizeof...(T);
  static_assert(((Returned<T>::count == 1) && ...),
                "KILN_OP: a Tuple holds single values. Return the "
                "tensors of a Tensors<N> one by one");
  static void put(Tuple<>&&, Slot*) {}
  template <class H, class... R>
  static void put(Tuple<H, R...>&& value, Slot* to) {
    Returned<H>::put(static_cast<H&&>(value.head), to);
    put(static_cast<Tuple<R...>&&>(value.tail), to + 1);
  }
};
template <>
struct Returned<void> {
  static constexpr uint8_t kinds[] = {0};
  static constexpr int count = 0;
};

// All that is known of an op while compiling; the archive makes the schema and the C ABI's
// description of it.
struct OpRecord {
  const char* function;
  const char* spec;
  const char* library;  // KILN_NAMESPACE, or "" (then the stem of `file` is taken)
  const char* file;
  int line;
  int parameter_count;
  int result_count;
  const uint8_t* parameter_kinds;
  const uint8_t* result_kinds;
  void (*invoke)(Slot* arguments, Slot* results);
  void (*boxed)(uint64_t* stack, uint64_t argument_count,
                uint64_t result_count);  // torch calls this
  // This, if the op writes to an argument and some tensor is a conjugated or negated view; else
  // null.
  void (*boxed_resolving)(uint64_t* stack, uint64_t argument_count, uint64_t result_count);
  const char* fake;
  const char* doc;
  OpRecord* next;
  struct OpState* state;
};

void register_op(OpRecord*);
void call_from_torch(OpRecord*, uint64_t* stack);
void call_resolved(const OpRecord*, uint64_t* stack);

template <class F>
struct Signature {
  static_assert(NotSupported<F>::value,
                "KILN_OP: this is not a plain function. Write a function outside of classes (no "
                "lambda, no member function) and name it here");
  static constexpr int parameter_count = 0;
  static constexpr uint8_t parameter_kinds[] = {0};
  static constexpr bool writes = false;
  static constexpr int result_count = 0;
  static constexpr const uint8_t* result_kinds = nullptr;
  template <auto Function>
  static void invoke(Slot*, Slot*);
};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  static constexpr int parameter_count = sizeof...(A);
  static constexpr uint8_t parameter_kinds[] = {Argument<A>::kind..., 0};
  static constexpr bool writes = ((Argument<A>::kind & kMutable) || ...);
  static constexpr int result_count = Returned<R>::count;
  static constexpr const uint8_t* result_kinds = Returned<R>::kinds;

  template <R (*F)(A...), int... I>
  static void invoke_at(Slot* a, Slot* results, Index<I...>) {
    if constexpr (result_count == 0)
      F(Argument<A>::get(a[I])...);
    else
      Returned<R>::put(F(Argument<A>::get(a[I])...), results);
    (void)a;
    (void)results;
  }
  template <R (*F)(A...)>
  static void invoke(Slot* arguments, Slot* results) {
    invoke_at<F>(arguments, results, IndexUpTo<sizeof...(A)>{});
  }
};

// torch gives a kernel no context: each op has a function of its own, made from the address of its
// record.
template <OpRecord* Record>
void boxed(uint64_t* stack, uint64_t, uint64_t) {
  call_from_torch(Record, stack);
}
template <OpRecord* Record>
void boxed_resolving(uint64_t* stack, uint64_t, uint64_t) {
  call_resolved(Record, stack);
}
template <bool Writes, OpRecord* Record>
constexpr decltype(OpRecord::boxed_resolving) resolving() {
  if constexpr (Writes)
    return &boxed_resolving<Record>;
  else
    return nullptr;
}

// What KILN_OP leaves for `.fake(...)` and `.doc(...)` to act on.
template <class Names>
class OpHandle {
 public:
  explicit OpHandle(OpRecord* record) : record_(record) { register_op(record); }
  // The rule that gives shape and dtype of the results without running the op
  // (docs/reference/fake-rules.md).
  OpHandle& fake(FakeRule<Names> rule) {
    record_->fake = rule.text;
    return *this;
  }
  OpHandle& doc(const char* text) {
    record_->doc = text;
    return *this;
  }

 private:
  OpRecord* record_;
};

// The device compiler only has to see that the function is used (it may be a template, whose
// kernels must exist).
struct DeviceOp {
  template <class F>
  constexpr DeviceOp(F*) {}
  constexpr DeviceOp& fake(const char*) { return *this; }
  constexpr DeviceOp& doc(const char*) { return *this; }
};

}  // namespace detail
}  // namespace kiln

#define KILN_JOIN_INNER(a, b) a##b
#define KILN_JOIN(a, b) KILN_JOIN_INNER(a, b)
#define KILN_TEXT_INNER(a) #a
#define KILN_TEXT(a) KILN_TEXT_INNER(a)
#ifdef KILN_NAMESPACE
#define KILN_LIBRARY_NAME KILN_TEXT(KILN_NAMESPACE)
#else
#define KILN_LIBRARY_NAME ""
#endif

// KILN_OP(function), KILN_OP(function, "a, b, *, alpha=1.0"), KILN_OP(function, "name.overload(a,
// b)"), or a whole PyTorch schema: KILN_OP(function, "name(Tensor a, int n=3) -> Tensor").
#define KILN_OP(...)                                                                              \
  KILN_OP_CHOOSE(__VA_ARGS__, KILN_OP_SEVERAL, KILN_OP_SEVERAL, KILN_OP_SEVERAL, KILN_OP_SEVERAL, \
                 KILN_OP_SEVERAL, KILN_OP_SEVERAL, KILN_OP_NAMED, KILN_OP_BARE, )                 \
  (__VA_ARGS__)
#define KILN_OP_CHOOSE(a, b, c, d, e, f, g, h, chosen, ...) chosen
#define KILN_OP_BARE(function) KILN_OP_AT(function, nullptr, __COUNTER__)
#define KILN_OP_NAMED(function, spec) KILN_OP_AT(function, spec, __COUNTER__)
#define KILN_OP_SEVERAL(function, ...)                                                    \
  static_assert(::kiln::detail::NotSupported<decltype(&function)>::value,                 \
                "KILN_OP(" #function                                                      \
                "): it takes the function and one text. Put the names of the parameters " \
                "in quotes: KILN_OP(" #function ", \"a, b\")");                           \
  [[maybe_unused]] static ::kiln::detail::DeviceOp KILN_JOIN(kiln_op_, __COUNTER__) =     \
      ::kiln::detail::DeviceOp(&function)
#ifdef __CUDA_ARCH__
#define KILN_OP_AT(function, spec, id)                                       \
  [[maybe_unused]] static ::kiln::detail::DeviceOp KILN_JOIN(kiln_op_, id) = \
      ::kiln::detail::DeviceOp(&function)
#else
#define KILN_OP_AT(function, spec, id) KILN_OP_HERE(function, spec, id)
#define KILN_OP_HERE(function, spec, id)                                                           \
  struct KILN_JOIN(kiln_names_, id) {                                                              \
    static constexpr const char* text = spec;                                                      \
    static constexpr ::kiln::detail::NameInText name{spec, #function};                             \
  };                                                                                               \
  static_assert(!KILN_JOIN(kiln_names_, id)::name.is_kept(),                                       \
                "KILN_OP(" #function                                                               \
                "): Python keeps this name of an op for itself. Choose another: "                  \
                "KILN_OP(" #function ", \"other_name(Tensor a) -> Tensor\")");                     \
  static_assert(::kiln::detail::OpNameIsTaken<                                                     \
                decltype(::kiln::detail::op_name<KILN_JOIN(kiln_names_, id)>(                      \
                    ::kiln::detail::IndexUpTo<KILN_JOIN(kiln_names_, id)::name.size>{})),          \
                id>::value);                                                                       \
  KILN_SPEC_FITS(function, spec, KILN_JOIN(kiln_spec_, id))                                        \
  static ::kiln::detail::OpRecord KILN_JOIN(kiln_record_, id) = {                                  \
      #function,                                                                                   \
      spec,                                                                                        \
      KILN_LIBRARY_NAME,                                                                           \
      __FILE__,                                                                                    \
      __LINE__,                                                                                    \
      ::kiln::detail::Signature<decltype(&function)>::parameter_count,                             \
      ::kiln::detail::Signature<decltype(&function)>::result_count,                                \
      ::kiln::detail::Signature<decltype(&function)>::parameter_kinds,                             \
      ::kiln::detail::Signature<decltype(&function)>::result_kinds,                                \
      &::kiln::detail::Signature<decltype(&function)>::template invoke<&function>,                 \
      &::kiln::detail::boxed<&KILN_JOIN(kiln_record_, id)>,                                        \
      ::kiln::detail::resolving<::kiln::detail::Signature<decltype(&function)>::writes,            \
                                &KILN_JOIN(kiln_record_, id)>(),                                   \
      "",                                                                                          \
      "",                                                                                          \
      nullptr,                                                                                     \
      nullptr};                                                                                    \
  KILN_FFI_FUNCTION(KILN_JOIN(kiln_names_, id), KILN_JOIN(kiln_record_, id), id)                   \
  [[maybe_unused]] static ::kiln::detail::OpHandle<KILN_JOIN(kiln_names_, id)> KILN_JOIN(kiln_op_, \
                                                                                         id) =     \
      ::kiln::detail::OpHandle<KILN_JOIN(kiln_names_, id)>(&KILN_JOIN(kiln_record_, id))
#endif
