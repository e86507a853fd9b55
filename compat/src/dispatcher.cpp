// SPDX-License-Identifier: Apache-2.0
// How does a source call an op of another library? Through torch.ops, as ATen's own ops.
#include <kiln/compat/autocast.h>
#include <kiln/compat/dispatcher.h>
#include <kiln/compat/record_function.h>
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

namespace {
// A context manager of torch's, entered; `word` is its argument, if there is one.
PyObject* entered(const char* kind, Ref word, const char* module = "torch._C") {
  Ref none = checked(PyTuple_New(0)), words = checked(PyTuple_New(word ? 1 : 0));
  if (word) PyTuple_SetItem(words.get(), 0, word.take());
  Ref guard = checked(PyObject_CallObject(torch_attribute(module, kind).get(), words.get()));
  Ref enter = checked(PyObject_GetAttrString(guard.get(), "__enter__"));
  checked(PyObject_CallObject(enter.get(), none.get()));
  return guard.take();
}
void leave(void* entered_guard) {
  WithGil gil;
  Ref guard(static_cast<PyObject*>(entered_guard));
  Ref arguments(PyTuple_New(3));
  for (Py_ssize_t i = 0; i < 3; i++) PyTuple_SetItem(arguments.get(), i, Ref::to(py_none()).take());
  Ref leaving(PyObject_GetAttrString(guard.get(), "__exit__"));
  Ref left(leaving ? PyObject_CallObject(leaving.get(), arguments.get()) : nullptr);
  if (!left) PyErr_Clear();
}
}  // namespace

}  // namespace kiln::compat

namespace at {
inline namespace kc {

// torch's guard changes what the thread's dispatcher keys include; Python has it as a context
// manager.
AutoDispatchBelowAutograd::AutoDispatchBelowAutograd() {
  kiln::compat::WithGil gil;
  guard_ = kiln::compat::entered("_AutoDispatchBelowADInplaceOrView", kiln::compat::Ref());
}
AutoDispatchBelowAutograd::~AutoDispatchBelowAutograd() { kiln::compat::leave(guard_); }

void RecordFunction::before(const char* name) {
  using namespace kiln::compat;
  if (guard_ || !has_python()) return;
  WithGil gil;
  guard_ =
      entered("_RecordFunctionFast",
              checked(PyUnicode_FromStringAndSize(name, static_cast<Py_ssize_t>(strlen(name)))),
              "torch._C._profiler");
}
void RecordFunction::end() {
  if (guard_) kiln::compat::leave(guard_);
  guard_ = nullptr;
}

}  // namespace kc
}  // namespace at

namespace c10 {
namespace impl {
inline namespace kc {
DispatchKeyGuard::DispatchKeyGuard(const char* kind, const char* key) {
  using namespace kiln::compat;
  WithGil gil;
  Ref name = checked(PyObject_GetAttrString(torch_attribute("torch._C", "DispatchKey").get(), key));
  Ref words = checked(PyTuple_New(1));
  PyTuple_SetItem(words.get(), 0, name.take());
  guard_ = entered(kind, checked(PyObject_CallObject(
                             torch_attribute("torch._C", "DispatchKeySet").get(), words.get())));
}
DispatchKeyGuard::~DispatchKeyGuard() { kiln::compat::leave(guard_); }
}  // namespace kc
}  // namespace impl
}  // namespace c10

namespace at {
namespace autocast {
inline namespace kc {
namespace {
kiln::compat::Ref asked(const char* getter, DeviceType device) {
  using namespace kiln::compat;
  const std::string shown = DeviceTypeName(device, true);
  Ref name =
      checked(PyUnicode_FromStringAndSize(shown.data(), static_cast<Py_ssize_t>(shown.size())));
  Ref words = checked(PyTuple_New(1));
  PyTuple_SetItem(words.get(), 0, name.take());
  return checked(PyObject_CallObject(torch_attribute("torch", getter).get(), words.get()));
}
}  // namespace
bool is_autocast_enabled(DeviceType device) {
  kiln::compat::WithGil gil;
  return PyObject_IsTrue(asked("is_autocast_enabled", device).get()) == 1;
}
ScalarType get_autocast_dtype(DeviceType device) {
  kiln::compat::WithGil gil;
  kiln::compat::Ref type = asked("get_autocast_dtype", device);
  return type.get() == kiln::compat::torch_attribute("torch", "bfloat16").get() ? kBFloat16
         : type.get() == kiln::compat::torch_attribute("torch", "float").get()  ? kFloat
                                                                                : kHalf;
}
}  // namespace kc
}  // namespace autocast
}  // namespace at
