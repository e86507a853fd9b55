// SPDX-License-Identifier: Apache-2.0
// What of pybind11 do extension sources use? PYBIND11_MODULE with functions: names, defaults, docs,
// overloads, lambdas. Classes and Python objects come from pybind11 itself: kiln/compat/pybind.h.
#pragma once

#include <kiln/compat/value.h>

#ifndef KILN_COMPAT_PYBIND

#ifndef __CUDA_ARCH__
namespace kiln {
namespace compat {

struct FunctionSpec;
FunctionSpec* new_spec(const char* name);
void spec_doc(FunctionSpec* spec, const char* text);
void spec_argument(FunctionSpec* spec, const char* name, bool none_allowed,
                   const Value* default_value);
void spec_keyword_only(FunctionSpec* spec);
void spec_release_gil(FunctionSpec* spec);
struct Module;
void define_function(Module* module, FunctionSpec* spec, const Function& function);
void set_attribute(Module* module, const char* name, const Value& value);
void set_doc(Module* module, const char* text);
Module* submodule(Module* module, const char* name, const char* doc);
PyObject* make_module(const char* name, void (*fill)(Module*));

}  // namespace compat
}  // namespace kiln
#endif

namespace pybind11 {
inline namespace kc {

#ifdef __CUDA_ARCH__
struct arg {
  constexpr explicit arg(const char* = nullptr) {}
  template <class T>
  arg operator=(const T&) const {
    return *this;
  }
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
};
using arg_v = arg;
#else
struct none;
struct arg_v {
  const char* name;
  kiln::compat::Value value;
  const char* shown;
  bool none_allowed;
};
struct arg {
  constexpr explicit arg(const char* text = nullptr) : name(text) {}
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, pybind11::none> > >
  arg_v operator=(T&& value) const {
    arg_v made{name, {}, "", flag_none};
    kiln::compat::Caster<std::decay_t<T> >::give(made.value, std::forward<T>(value));
    return made;
  }
  template <class T, size_t N>
  arg_v operator=(const T (&text)[N]) const {
    return *this = std::string(text);
  }
  arg_v operator=(std::nullopt_t) const { return {name, {}, "None", true}; }
  arg_v operator=(const pybind11::none&) const { return {name, {}, "None", true}; }
  arg_v operator=(pybind11::none&&) const { return {name, {}, "None", true}; }
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool flag = true) {
    flag_none = flag;
    return *this;
  }
  const char* name;
  bool flag_none = true;
};
#endif
struct kw_only {};
struct pos_only {};
struct none {
  template <class = void>
  operator std::nullopt_t() const {
    return std::nullopt;
  }
};
struct doc {
  const char* text;
  explicit doc(const char* t) : text(t) {}
};
template <class... G>
struct call_guard {};
enum class return_value_policy {
  automatic,
  automatic_reference,
  take_ownership,
  copy,
  move,
  reference,
  reference_internal
};

class gil_scoped_release {
 public:
  gil_scoped_release();
  ~gil_scoped_release();
  gil_scoped_release(const gil_scoped_release&) = delete;

 private:
  void* state_;
};
class gil_scoped_acquire {
 public:
  gil_scoped_acquire();
  ~gil_scoped_acquire();
  gil_scoped_acquire(const gil_scoped_acquire&) = delete;

 private:
  int state_;
};

template <class... A>
struct overload_cast_impl {
  template <class R>
  constexpr auto operator()(R (*f)(A...)) const {
    return f;
  }
};
template <class... A>
inline constexpr overload_cast_impl<A...> overload_cast{};

#ifdef __CUDA_ARCH__
struct module_ {
  template <class F, class... X>
  module_& def(const char*, F&&, const X&...) {
    return *this;
  }
  module_ def_submodule(const char*, const char* = "") { return *this; }
  struct Any {
    template <class T>
    void operator=(const T&) {}
  };
  Any attr(const char*) { return {}; }
  Any doc() { return {}; }
};
#else
class module_ {
 public:
  explicit module_(kiln::compat::Module* module) : module_ptr_(module) {}
  template <class F, class... X>
  module_& def(const char* name, F&& f, const X&... extras) {
    kiln::compat::FunctionSpec* spec = kiln::compat::new_spec(name);
    (take(spec, extras), ...);
    kiln::compat::define_function(module_ptr_, spec, kiln::compat::function_of(f));
    return *this;
  }
  module_ def_submodule(const char* name, const char* text = "") {
    return module_(kiln::compat::submodule(module_ptr_, name, text));
  }
  struct Attribute {
    kiln::compat::Module* module;
    const char* name;
    template <class T>
    void operator=(const T& value) {
      kiln::compat::Value v;
      if constexpr (std::is_convertible_v<T, const char*>)
        kiln::compat::Caster<std::string>::give(v, value);
      else
        kiln::compat::Caster<T>::give(v, value);
      kiln::compat::set_attribute(module, name, v);
    }
  };
  Attribute attr(const char* name) { return {module_ptr_, name}; }
  struct Doc {
    kiln::compat::Module* module;
    void operator=(const char* text) { kiln::compat::set_doc(module, text); }
  };
  Doc doc() { return {module_ptr_}; }

 private:
  using Spec = kiln::compat::FunctionSpec;
  static void take(Spec* spec, const char* text) { kiln::compat::spec_doc(spec, text); }
  static void take(Spec* spec, const pybind11::doc& d) { kiln::compat::spec_doc(spec, d.text); }
  static void take(Spec* spec, const arg& a) {
    kiln::compat::spec_argument(spec, a.name, a.flag_none, nullptr);
  }
  static void take(Spec* spec, const arg_v& a) {
    kiln::compat::spec_argument(spec, a.name, a.none_allowed, &a.value);
  }
  static void take(Spec* spec, const kw_only&) { kiln::compat::spec_keyword_only(spec); }
  static void take(Spec*, const pos_only&) {}
  static void take(Spec*, return_value_policy) {}
  template <class... G>
  static void take(Spec* spec, const call_guard<G...>&) {
    if ((std::is_same_v<G, gil_scoped_release> || ...)) kiln::compat::spec_release_gil(spec);
  }
  kiln::compat::Module* module_ptr_;
};
#endif
using module = module_;

namespace literals {
constexpr arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

}  // namespace kc
}  // namespace pybind11
namespace py = pybind11;

namespace torch {
inline namespace kc {
// torch's translates errors and releases nothing; here every function's errors are translated.
template <class F>
F&& wrap_pybind_function(F&& f) {
  return static_cast<F&&>(f);
}
}  // namespace kc
}  // namespace torch

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME KILN_NAMESPACE
#endif
#define KILN_PY_JOIN_(a, b) a##b
#define KILN_PY_JOIN(a, b) KILN_PY_JOIN_(a, b)
#define KILN_PY_TEXT_(a) #a
#define KILN_PY_TEXT(a) KILN_PY_TEXT_(a)
#ifdef __CUDA_ARCH__
#define KILN_PY_MODULE(name, variable)                  \
  [[maybe_unused]] static void KILN_PY_JOIN(kiln_fill_, \
                                            name)([[maybe_unused]] ::pybind11::module_ & variable)
#else
#define KILN_PY_MODULE(name, variable)                                                        \
  static void KILN_PY_JOIN(kiln_fill_, name)(::pybind11::module_ & variable);                 \
  static void KILN_PY_JOIN(kiln_fill_erased_, name)(::kiln::compat::Module * module) {        \
    ::pybind11::module_ made(module);                                                         \
    KILN_PY_JOIN(kiln_fill_, name)(made);                                                     \
  }                                                                                           \
  extern "C" __attribute__((visibility("default"))) PyObject* KILN_PY_JOIN(PyInit_, name)() { \
    return ::kiln::compat::make_module(KILN_PY_TEXT(name),                                    \
                                       &KILN_PY_JOIN(kiln_fill_erased_, name));               \
  }                                                                                           \
  void KILN_PY_JOIN(kiln_fill_, name)([[maybe_unused]] ::pybind11::module_ & variable)
#endif
#define PYBIND11_MODULE(name, variable, ...) KILN_PY_MODULE(name, variable)
#endif  // KILN_COMPAT_PYBIND
