// SPDX-License-Identifier: Apache-2.0
// How does an ATen op get called?
#include "op_call.h"

#include <stdio.h>
#include <string.h>

#include "torch.h"

namespace at {
inline namespace kc {
namespace kiln_detail {

using namespace kiln::compat;

namespace {

void require_python(const char* op) {
  if (!has_python())
    throw Error(c10::str("error: cannot call aten::", op,
                         "\n  why: a library built with kiln's compat headers reaches this op "
                         "through Python, and there is "
                         "none in this process\n  fix: kiln build --compat=never"));
}

// torch.ops.aten.<op>.<overload>, and of it the function that the dispatcher's own overload check
// is skipped by.
Ref find_op(const char* op, const char* overload) {
  Ref ops = checked(PyObject_GetAttrString(torch_attribute("torch", "ops").get(), "aten"));
  Ref packet = checked(PyObject_GetAttrString(ops.get(), op));
  Ref chosen = checked(PyObject_GetAttrString(packet.get(), *overload ? overload : "default"));
  PyObject* inner = PyObject_GetAttrString(chosen.get(), "_op");
  if (inner) return Ref(inner);
  PyErr_Clear();
  return chosen;
}

struct KnownOp {
  const char *op, *overload;
  Ref function;
  KnownOp* next;
};
PyObject* op_function(const char* op, const char* overload) {
  static KnownOp* known[64];  // under the GIL; the literals' addresses tell ops apart
  const size_t slot = (reinterpret_cast<size_t>(op) >> 3) % 64;
  for (KnownOp* one = known[slot]; one; one = one->next)
    if (!strcmp(one->op, op) && !strcmp(one->overload, overload)) return one->function.get();
  known[slot] = new KnownOp{op, overload, find_op(op, overload), known[slot]};
  return known[slot]->function.get();
}

Arg python_constant(const char* name) {
  Arg arg{nullptr, {}};
  kiln::compat::WithGil gil;
  arg.value.kind = Value::Kind::object;
  arg.value.object = Ref::to(torch_attribute("torch", name).get()).take();
  return arg;
}

}  // namespace

Arg plain(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return python_constant("contiguous_format");
    case MemoryFormat::Preserve:
      return python_constant("preserve_format");
    case MemoryFormat::ChannelsLast:
      return python_constant("channels_last");
    default:
      return python_constant("channels_last_3d");
  }
}

Arg plain(Layout layout) { return python_constant(layout == kStrided ? "strided" : "sparse_coo"); }

Call::Call(const char* op, const char* overload, std::initializer_list<Arg> arguments) {
  require_python(op);
  WithGil gil;
  PyObject* function = op_function(op, overload);
  Py_ssize_t positional = 0;
  for (const Arg& arg : arguments) positional += !arg.name;
  Ref tuple = checked(PyTuple_New(positional));
  Ref names;
  Py_ssize_t next = 0;
  for (const Arg& arg : arguments) {
    Ref object = object_from(arg.value);
    if (!arg.name) {
      PyTuple_SetItem(tuple.get(), next++, object.take());
    } else if (object.get() != py_none()) {
      if (!names) names = checked(PyDict_New());
      PyDict_SetItemString(names.get(), arg.name, object.get());
    }
  }
  Ref result = checked(PyObject_Call(function, tuple.get(), names.get()));
  result_ = static_cast<Ref&&>(result);
}

Call::~Call() {
  if (!result_) return;
  WithGil gil;
  Ref gone = static_cast<Ref&&>(result_);
}

Value& Call::load(const Type& type) {
  WithGil gil;
  Ref result = static_cast<Ref&&>(result_);
  if (!kiln::compat::load(type, result.get(), true, value_))
    throw Error("torch returned a result of a type that differs from its schema: " +
                text_of(result.get()));
  return value_;
}

std::optional<MemoryFormat> format_of(const TensorOptions& options,
                                      const std::optional<MemoryFormat>& format) {
  TORCH_CHECK(!options.requires_grad(),
              "Operators taking TensorOptions cannot take a TensorOptions with "
              "options.requires_grad set as true. This isn't implemented yet.");
  TORCH_CHECK(!(options.has_memory_format() && format),
              "Cannot set memory_format both in TensorOptions and explicit argument; please delete "
              "the redundant setter.");
  return format ? format : options.memory_format_opt();
}

std::optional<ScalarType> option_dtype_or_default(const TensorOptions& o) {
  return o.has_dtype() ? option_dtype(o) : std::optional<ScalarType>(default_dtype());
}

Tensor with_grad(Tensor made, const TensorOptions& options) {
  if (options.requires_grad()) made.set_requires_grad(true);
  return made;
}

void refresh(TensorList tensors) {
  for (const Tensor& one : tensors) refresh(one);
}
void refresh(const Tensor& tensor) {
  if (!tensor.defined()) return;
  kiln::detail::torch_describe_again(static_cast<kiln::detail::Rep*>(
      reinterpret_cast<kiln::detail::TensorRep*>(tensor.unsafe_rep())));
}

}  // namespace kiln_detail
}  // namespace kc
}  // namespace at

namespace c10 {
inline namespace kc {
namespace {
using namespace kiln::compat;
// torch.<function>(a, b), a dtype.
ScalarType dtype_of(const char* function, Ref a, Ref b) {
  Ref arguments = checked(PyTuple_New(2));
  PyTuple_SetItem(arguments.get(), 0, a.take());
  PyTuple_SetItem(arguments.get(), 1, b.take());
  Ref made =
      checked(PyObject_CallObject(torch_attribute("torch", function).get(), arguments.get()));
  Value value;
  if (!load(Caster<ScalarType>::type, made.get(), true, value))
    throw Error(c10::str("torch.", function, " returned no dtype"));
  return Caster<ScalarType>::take(value);
}
template <class T>
Ref given(const T& value) {
  return object_from(at::kiln_detail::plain(value).value);
}
}  // namespace

ScalarType promoteTypes(ScalarType a, ScalarType b) {
  if (a == b) return a;
  WithGil gil;
  return dtype_of("promote_types", dtype_object(a), dtype_object(b));
}
}  // namespace kc
}  // namespace c10

namespace at {
inline namespace kc {
#define KILN_RESULT_TYPE(A, B)                                         \
  ScalarType result_type(const A& a, const B& b) {                     \
    kiln::compat::WithGil gil;                                         \
    return c10::dtype_of("result_type", c10::given(a), c10::given(b)); \
  }
KILN_RESULT_TYPE(Tensor, Tensor)
KILN_RESULT_TYPE(Tensor, Scalar)
KILN_RESULT_TYPE(Scalar, Tensor)
KILN_RESULT_TYPE(Scalar, Scalar)
#undef KILN_RESULT_TYPE
}  // namespace kc
}  // namespace at
