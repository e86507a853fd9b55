// SPDX-License-Identifier: Apache-2.0
// What if a source binds classes, or takes and returns Python objects? Then it gets the pybind11
// that torch ships, with casters for kiln's types. The build includes this header first, in every
// source of the library, if one of them names something that kiln/compat/python.h does not have.
#pragma once
#define KILN_COMPAT_PYBIND

#include <kiln/compat/value.h>

// clang-format off
#include_next <pybind11/cast.h>
// A function without a call_guard runs under kiln's: it tells the runtime which tensors a kernel
// may access, and raises what failed in a launch.
namespace pybind11 {
namespace detail {
#ifdef __CUDA_ARCH__
struct kiln_call {};
#else
inline void kiln_translate_errors();
struct kiln_call : kiln::compat::PythonCall {
  kiln_call() { kiln_translate_errors(); }
};
#endif
}  // namespace detail
}  // namespace pybind11
#define void_type kiln_call
#include_next <pybind11/attr.h>
#undef void_type
#include_next <pybind11/pybind11.h>
#include_next <pybind11/stl.h>
// clang-format on

namespace pybind11 {

#ifndef __CUDA_ARCH__
// A pybind11 that names its default guard in another way would leave calls without kiln's: the
// source falls back to torch's headers then.
static_assert(std::is_same<call_guard<>::type, detail::kiln_call>::value,
              "this pybind11 has another default for call_guard");

template <>
struct call_guard<gil_scoped_release> {
  struct type : detail::kiln_call {
    gil_scoped_release released;
  };
};

namespace detail {
// Once per library, before its first function runs.
inline void kiln_translate_errors() {
  [[maybe_unused]] static const bool registered = [] {
    register_local_exception_translator([](std::exception_ptr error) {
      try {
        std::rethrow_exception(error);
      } catch (const c10::Error&) {
        kiln::compat::set_error_of_torch();
      }
    });
    return true;
  }();
}

// From and to Python through the archive, as for functions without pybind11.
template <class T>
struct KilnCaster {
  bool load(handle source, bool convert) {
    kiln::compat::Value value;
    if (!kiln::compat::load_argument(kiln::compat::Caster<T>::type, source.ptr(), convert, value))
      return false;
    held_ = kiln::compat::Caster<T>::take(value);
    return true;
  }
  static handle cast(const T& given, return_value_policy, handle) {
    kiln::compat::Value value;
    kiln::compat::Caster<T>::give(value, given);
    return kiln::compat::result_object(value);
  }
  static handle cast(const T* given, return_value_policy policy, handle parent) {
    return given ? cast(*given, policy, parent) : none().release();
  }
  operator T*() { return &*held_; }
  operator T&() { return *held_; }
  operator T&&() && { return std::move(*held_); }
  template <class U>
  using cast_op_type = movable_cast_op_type<U>;

 private:
  std::optional<T> held_;  // a Device has no default
};
#define KILN_PY_CASTER(T, text)                    \
  template <>                                      \
  struct type_caster<T> : KilnCaster<T> {          \
    static constexpr auto name = const_name(text); \
  };
KILN_PY_CASTER(at::Tensor, "torch.Tensor")
KILN_PY_CASTER(at::ScalarType, "torch.dtype")
KILN_PY_CASTER(at::Device, "torch.device")
KILN_PY_CASTER(at::Scalar, "typing.Union[typing.SupportsInt, typing.SupportsFloat, complex]")
#undef KILN_PY_CASTER

// A borrowed list: the caster keeps what it points to.
template <class T>
struct type_caster<at::ArrayRef<T>> {
  bool load(handle source, bool convert) {
    if (!list_.load(source, convert)) return false;
    view_ = at::ArrayRef<T>(static_cast<std::vector<T>&>(list_));
    return true;
  }
  static handle cast(at::ArrayRef<T> given, return_value_policy policy, handle parent) {
    object list =
        reinterpret_steal<object>(make_caster<std::vector<T>>::cast(given.vec(), policy, parent));
    if (std::is_same<T, int64_t>::value && list) list = pybind11::tuple(list);  // as torch's
    return list.release();
  }
  static constexpr auto name = make_caster<std::vector<T>>::name;
  operator at::ArrayRef<T>*() { return &view_; }
  operator at::ArrayRef<T>&() { return view_; }
  template <class U>
  using cast_op_type = pybind11::detail::cast_op_type<U>;

 private:
  make_caster<std::vector<T>> list_;
  at::ArrayRef<T> view_;
};
}  // namespace detail
#endif

}  // namespace pybind11
namespace py = pybind11;

namespace torch {
inline namespace kc {
template <class F>
F&& wrap_pybind_function(F&& f) {
  return static_cast<F&&>(f);
}
template <class F>
F&& wrap_pybind_function_no_gil(F&& f) {
  return static_cast<F&&>(f);
}
}  // namespace kc
}  // namespace torch
