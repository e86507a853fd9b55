// SPDX-License-Identifier: Apache-2.0
// How do sources give ops to torch's dispatcher? TORCH_LIBRARY, _FRAGMENT and _IMPL, through the C
// shim.
#pragma once

#include <kiln/compat/value.h>

namespace c10 {
inline namespace kc {
// torch's own names: a key goes to its dispatcher by name.
// clang-format off
#define KILN_DISPATCH_KEYS(X) \
  X(CPU) X(CUDA) X(Meta) X(Autograd) X(AutogradCPU) X(AutogradCUDA) X(CompositeImplicitAutograd) \
  X(CompositeExplicitAutograd) X(CompositeExplicitAutogradNonFunctional) \
  X(CompositeImplicitAutogradNestedTensor) X(Undefined) X(HIP) X(XLA) X(MPS) X(IPU) X(XPU) X(HPU) \
  X(VE) X(Lazy) X(MTIA) X(PrivateUse1) X(PrivateUse2) X(PrivateUse3) X(FPGA) X(MAIA) X(Vulkan) \
  X(Metal) X(MkldnnCPU) X(QuantizedCPU) X(QuantizedCUDA) X(QuantizedXPU) X(QuantizedPrivateUse1) \
  X(SparseCPU) X(SparseCUDA) X(SparseXPU) X(SparsePrivateUse1) X(SparseCsrCPU) X(SparseCsrCUDA) \
  X(NestedTensorCPU) X(NestedTensorCUDA) X(BackendSelect) X(Python) X(Fake) X(Functionalize) \
  X(Named) X(Conjugate) X(Negative) X(ZeroTensor) X(ADInplaceOrView) X(AutogradOther) \
  X(AutogradFunctionality) X(AutogradNestedTensor) X(AutogradXLA) X(AutogradMPS) X(AutogradXPU) \
  X(AutogradHPU) X(AutogradLazy) X(AutogradMeta) X(AutogradPrivateUse1) X(Tracer) X(AutocastCPU) \
  X(AutocastXPU) X(AutocastCUDA) X(AutocastMPS) X(AutocastPrivateUse1) X(FuncTorchBatched) \
  X(Batched) X(VmapMode) X(PythonTLSSnapshot) X(PreDispatch) X(TESTING_ONLY_GenericWrapper)
// clang-format on
enum class DispatchKey : uint8_t {
#define X(name) name,
  KILN_DISPATCH_KEYS(X)
#undef X
      CatchAll = CompositeImplicitAutograd,
  Autocast = AutocastCUDA
};
}  // namespace kc
}  // namespace c10

#ifdef __CUDA_ARCH__
namespace torch {
inline namespace kc {
template <class K, class F>
F&& dispatch(K, F&& f) {
  return static_cast<F&&>(f);
}
struct Library {
  template <class... X>
  Library& def(const char*, const X&...) {
    return *this;
  }
  template <class... X>
  Library& impl(const char*, const X&...) {
    return *this;
  }
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }
};
struct RegisterOperators {
  RegisterOperators() = default;
  template <class F>
  explicit RegisterOperators(const char*, const F&) {}
  template <class F>
  RegisterOperators& op(const char*, const F&) {
    return *this;
  }
};
}  // namespace kc
namespace jit {
using torch::RegisterOperators;
}
}  // namespace torch
namespace c10 {
using torch::RegisterOperators;
}
#else
namespace kiln {
namespace compat {
struct OpLibrary;
OpLibrary* open_library(const char* kind, const char* ns, const char* key, const char* file,
                        uint32_t line);
void define_op(OpLibrary* library, const char* schema);
void implement_op(OpLibrary* library, const char* name, const char* key, const Function& function);
// The name alone is given: types of the schema come from the function.
void define_from(OpLibrary* library, const char* name_or_schema, const Function& function);
const char* key_name(c10::DispatchKey key);
const char* key_name(c10::DeviceType type);
// Why the ops of this library could not be registered; null: they were, so far.
const char* load_failure();
void keep_load_failure();  // in a catch block: of what was thrown
}  // namespace compat
}  // namespace kiln

namespace torch {
inline namespace kc {

template <class F>
struct CppFunction {
  F function;
  const char* key = nullptr;
};
template <class K, class F>
CppFunction<F> dispatch(K key, F&& f) {
  return {f, kiln::compat::key_name(key)};
}

class Library {
 public:
  enum Kind { DEF, FRAGMENT, IMPL };
  Library(const char* kind, const char* ns, const char* key, const char* file, uint32_t line)
      : library_(kiln::compat::open_library(kind, ns, key, file, line)) {}
  Library& def(const char* schema) {
    kiln::compat::define_op(library_, schema);
    return *this;
  }
  template <class T>
  Library& def(const char* schema, const std::vector<T>& /* tags */) {
    return def(schema);
  }
  template <class F>
  Library& def(const char* schema, F&& f) {
    kiln::compat::define_from(library_, schema, kiln::compat::function_of(f));
    return *this;
  }
  template <class F>
  Library& impl(const char* name, F&& f) {
    kiln::compat::implement_op(library_, name, nullptr, kiln::compat::function_of(f));
    return *this;
  }
  template <class F>
  Library& impl(const char* name, CppFunction<F> f) {
    kiln::compat::implement_op(library_, name, f.key, kiln::compat::function_of(f.function));
    return *this;
  }
  template <class K, class F>
  Library& impl(const char* name, K key, F&& f) {
    kiln::compat::implement_op(library_, name, kiln::compat::key_name(key),
                               kiln::compat::function_of(f));
    return *this;
  }
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }

 private:
  kiln::compat::OpLibrary* library_;
};

namespace kiln_detail {
struct LibraryInit {
  LibraryInit(const char* kind, const char* ns, const char* key, const char* file, uint32_t line,
              void (*fill)(Library&)) {
    // This runs while the library is loaded: what is thrown out of there ends the process.
    if (kiln::compat::load_failure()) return;
    try {
      Library library(kind, ns, key, file, line);
      fill(library);
    } catch (...) {
      kiln::compat::keep_load_failure();
    }
  }
};
}  // namespace kiln_detail

class RegisterOperators {
 public:
  RegisterOperators() = default;
  template <class F>
  explicit RegisterOperators(const char* name, F&& f) {
    op(name, f);
  }
  template <class F>
  RegisterOperators& op(const char* name, F&& f) {
    if (kiln::compat::load_failure()) return *this;
    try {
      kiln::compat::define_from(nullptr, name, kiln::compat::function_of(f));
    } catch (...) {
      kiln::compat::keep_load_failure();
    }
    return *this;
  }
  template <class F>
  RegisterOperators& op(const std::string& name, F&& f) {
    return op(name.c_str(), f);
  }
};

}  // namespace kc
namespace jit {
using torch::RegisterOperators;
}
}  // namespace torch
namespace c10 {
using torch::RegisterOperators;
}

#endif

#define TORCH_FN(f) (&f)
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(name) name
#define KILN_LIB_JOIN_(a, b) a##b
#define KILN_LIB_JOIN(a, b) KILN_LIB_JOIN_(a, b)
#ifdef __CUDA_ARCH__
#define KILN_LIB_BLOCK(kind, ns, key, m, id)                     \
  [[maybe_unused]] static void KILN_LIB_JOIN(kiln_library_fill_, \
                                             id)([[maybe_unused]] ::torch::Library & m)
#else
#define KILN_LIB_BLOCK(kind, ns, key, m, id)                                     \
  static void KILN_LIB_JOIN(kiln_library_fill_, id)(::torch::Library&);          \
  [[maybe_unused]] static const ::torch::kiln_detail::LibraryInit KILN_LIB_JOIN( \
      kiln_library_init_, id)(kind, ns, key, __FILE__, __LINE__,                 \
                              &KILN_LIB_JOIN(kiln_library_fill_, id));           \
  void KILN_LIB_JOIN(kiln_library_fill_, id)([[maybe_unused]] ::torch::Library & m)
#endif
#define KILN_LIB_TEXT_(a) #a
#define KILN_LIB_TEXT(a) KILN_LIB_TEXT_(a)
#define TORCH_LIBRARY(ns, m) KILN_LIB_BLOCK("DEF", KILN_LIB_TEXT(ns), "", m, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(ns, m) \
  KILN_LIB_BLOCK("FRAGMENT", KILN_LIB_TEXT(ns), "", m, __COUNTER__)
#define TORCH_LIBRARY_IMPL(ns, key, m) \
  KILN_LIB_BLOCK("IMPL", KILN_LIB_TEXT(ns), #key, m, __COUNTER__)
