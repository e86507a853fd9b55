// SPDX-License-Identifier: Apache-2.0
// How does a source call an op of another library? Through torch.ops, as ATen's own ops.
#include <kiln/compat/dispatcher.h>
#include <string.h>

#include "convert.h"

namespace kiln::compat {

namespace {

// torch.ops.<namespace>.<name>.<overload>; nothing if there is none, and then an error is set.
Ref find_operator(const char* name, const char* overload) {
  const char* colons = strstr(name, "::");
  const std::string space = colons ? std::string(name, colons) : "aten";
  Ref ops(PyObject_GetAttrString(torch_attribute("torch", "ops").get(), space.c_str()));
  Ref packet(ops ? PyObject_GetAttrString(ops.get(), colons ? colons + 2 : name) : nullptr);
  return Ref(packet ? PyObject_GetAttrString(packet.get(), *overload ? overload : "default")
                    : nullptr);
}

}  // namespace

bool has_operator(const char* name, const char* overload) {
  WithGil gil;
  if (find_operator(name, overload)) return true;
  PyErr_Clear();
  return false;
}

void no_such_operator(const char* name, const char* overload) {
  throw at::Error(c10::str("Could not find schema for ", name, ".", overload,
                           ". Make sure you have registered it and that its library is loaded."));
}

void call_operator(const char* name, const char* overload, Value* arguments, int count,
                   const Type* result_type, Value& result) {
  WithGil gil;
  Ref function = find_operator(name, overload);
  if (!function) throw_python_error();
  Ref tuple = checked(PyTuple_New(count));
  for (int i = 0; i < count; i++) PyTuple_SetItem(tuple.get(), i, object_from(arguments[i]).take());
  Ref made = checked(PyObject_CallObject(function.get(), tuple.get()));
  if (result_type && !load(*result_type, made.get(), true, result))
    throw at::Error(c10::str(name, ": the result does not have the type that the source expects"));
}

}  // namespace kiln::compat

namespace at {
inline namespace kc {

// torch's guard changes what the thread's dispatcher keys include; Python has it as a context
// manager.
AutoDispatchBelowAutograd::AutoDispatchBelowAutograd() {
  using namespace kiln::compat;
  WithGil gil;
  Ref none = checked(PyTuple_New(0));
  Ref guard = checked(PyObject_CallObject(
      torch_attribute("torch._C", "_AutoDispatchBelowADInplaceOrView").get(), none.get()));
  Ref enter = checked(PyObject_GetAttrString(guard.get(), "__enter__"));
  checked(PyObject_CallObject(enter.get(), none.get()));
  guard_ = guard.take();
}

AutoDispatchBelowAutograd::~AutoDispatchBelowAutograd() {
  using namespace kiln::compat;
  WithGil gil;
  Ref guard(static_cast<PyObject*>(guard_));
  Ref arguments(PyTuple_New(3));
  for (Py_ssize_t i = 0; i < 3; i++) PyTuple_SetItem(arguments.get(), i, Ref::to(py_none()).take());
  Ref leave(PyObject_GetAttrString(guard.get(), "__exit__"));
  Ref left(leave ? PyObject_CallObject(leave.get(), arguments.get()) : nullptr);
  if (!left) PyErr_Clear();
}

}  // namespace kc
}  // namespace at
