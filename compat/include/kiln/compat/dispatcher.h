// SPDX-License-Identifier: Apache-2.0
// How does a source call an op of another library? By its name, through torch's dispatcher.
#pragma once

#include <kiln/compat/library.h>

#ifndef __CUDA_ARCH__
namespace kiln {
namespace compat {
bool has_operator(const char* name, const char* overload);
[[noreturn]] void no_such_operator(const char* name, const char* overload);
// One value per result: several are a list.
void call_operator(const char* name, const char* overload, Value* arguments, int count,
                   const Type* result_type, Value& result);
}  // namespace compat
}  // namespace kiln
#endif

namespace c10 {
inline namespace kc {

struct OperatorName {
  std::string name, overload_name;
};

template <class F>
class TypedOperatorHandle;
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  TypedOperatorHandle(const std::string& name, const std::string& overload)
      : name_{name, overload} {}
#ifdef __CUDA_ARCH__
  R call(A... arguments) const;
#else
  R call(A... arguments) const {
    using namespace kiln::compat;
    Value values[sizeof...(A) + 1];
    int at = 0;
    (give(values[at++], static_cast<A&&>(arguments)), ...);
    Value result;
    call_operator(name_.name.c_str(), name_.overload_name.c_str(), values, at,
                  Invoker<R, A...>::result_type(), result);
    if constexpr (!std::is_void_v<R>) return Caster<std::decay_t<R> >::take(result);
  }
  template <class K>
  R redispatch(K, A... arguments) const = delete;

 private:
  template <class T>
  static void give(kiln::compat::Value& value, T&& argument) {
    kiln::compat::Caster<std::decay_t<T> >::give(value, argument);
  }
  template <class T>
  static void give(kiln::compat::Value& value, ArrayRef<T> list) {
    kiln::compat::Caster<std::vector<T> >::give(value, list.vec());
  }
#endif

 private:
  OperatorName name_;
};

class OperatorHandle {
 public:
  OperatorHandle(const std::string& name, const std::string& overload) : name_{name, overload} {}
  template <class F>
  TypedOperatorHandle<F> typed() const {
    return TypedOperatorHandle<F>(name_.name, name_.overload_name);
  }
  const OperatorName& operator_name() const { return name_; }

 private:
  OperatorName name_;
};

class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher one;
    return one;
  }
#ifdef __CUDA_ARCH__
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const;
  std::optional<OperatorHandle> findSchema(const OperatorName& name) const;
#else
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const {
    if (!kiln::compat::has_operator(name, overload)) kiln::compat::no_such_operator(name, overload);
    return OperatorHandle(name, overload);
  }
  std::optional<OperatorHandle> findSchema(const OperatorName& name) const {
    if (!kiln::compat::has_operator(name.name.c_str(), name.overload_name.c_str()))
      return std::nullopt;
    return OperatorHandle(name.name, name.overload_name);
  }
#endif
};

}  // namespace kc
}  // namespace c10
