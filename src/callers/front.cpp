// SPDX-License-Identifier: Apache-2.0
// What does a call with torch's tensors pay for the other callers? A comparison of types. Torch's
// function takes a tuple, and a builtin of Python's with an array of arguments would make a second
// one for it; so what an op calls is an object of a type of its own, which passes the tuple on.
#include "callers/caller.h"

namespace kiln::callers {
namespace {

using Call = PyObject* (*)(PyObject* self, PyObject* args, PyObject* named);

struct Front {
  PyObject* plain_type;  // the caller's, once it is known; never a type before
  intptr_t first_array;
  Call call_plain;  // how `otherwise` is called
  PyObject* otherwise;
  const Caller* caller;
  PyObject* function;  // of the caller: for calls with other arrays
};

// Objects begin with what Python puts before the fields of every type: a count and the type, or
// more in a Python without the GIL.
constexpr intptr_t kUsualHead = 2 * sizeof(void*);
intptr_t head_bytes = 0;
// A tuple of the usual form is read where it lies: its size follows the head, and its items begin
// where Python says that a tuple without items ends (later in 3.14 than before).
intptr_t items_at = 0;

Front& front_in(PyObject* self) {
  return *reinterpret_cast<Front*>(reinterpret_cast<char*>(self) + head_bytes);
}

bool is_of_type(PyObject* object, PyObject* type) {
  PyObject* found = PyObject_Type(object);
  Py_DecRef(found);  // the object keeps it
  return found == type;
}

bool is_plain(const Front& front, PyObject* args) {
  if (head_bytes != kUsualHead) {
    PyObject* array = PyTuple_GetItem(args, front.first_array);
    return array && is_of_type(array, front.plain_type);
  }
  const char* tuple = reinterpret_cast<const char*>(args);
  const auto size = *reinterpret_cast<const size_t*>(tuple + kUsualHead);
  // A call without an array has index -1: as a size it is above every other.
  if (static_cast<size_t>(front.first_array) >= size) return false;
  const auto* items = reinterpret_cast<PyObject* const*>(tuple + items_at);
  return reinterpret_cast<PyObject* const*>(items[front.first_array])[1] == front.plain_type;
}

PyObject* call_other(Front& front, PyObject* args, PyObject* named) {
  PyErr_Clear();  // of an index that is too large
  PyObject* result = PyObject_Call(front.function, args, named);
  front.plain_type = front.caller->plain_type;
  return result;
}

PyObject* call_front(PyObject* self, PyObject* args, PyObject* named) {
  Front& front = front_in(self);
  if (!is_plain(front, args)) return call_other(front, args, named);
  return front.call_plain(front.otherwise, args, named);
}

// The function of its type, which leaves out what Python does around it: the limit of depth and the
// check of the result are those of the call of the front. Python before 3.10 does not name it.
Call how_to_call(PyObject* callable) {
  const Ref type(PyObject_Type(callable));
  void* found = PyType_GetSlot(type.get(), kCallSlot);
  if (found) return reinterpret_cast<Call>(found);
  PyErr_Clear();
  return PyObject_Call;
}

intptr_t basic_size(PyObject* type) {
  const Ref size(PyObject_GetAttrString(type, "__basicsize__"));
  return size ? static_cast<intptr_t>(PyLong_AsLongLong(size.get())) : -1;
}

PyObject* make_type() {
  head_bytes = basic_size(&PyBaseObject_Type);
  items_at = basic_size(&PyTuple_Type);
  if (head_bytes < 0 || items_at < 0) return nullptr;
  PyTypeSlot slots[] = {{kCallSlot, reinterpret_cast<void*>(&call_front)}, {0, nullptr}};
  PyTypeSpec spec = {"kiln.OpCall", static_cast<int>(head_bytes + sizeof(Front)), 0, 0, slots};
  return PyType_FromSpec(&spec);
}

}  // namespace
}  // namespace kiln::callers

// `function`: what kiln_new_caller returned, with a callable for torch's tensors.
extern "C" __attribute__((visibility("default"))) PyObject* kiln_new_front(PyObject* function) {
  using namespace kiln::callers;
  static PyObject* type = nullptr;
  if (!type) type = make_type();
  if (!type) return nullptr;
  const Ref self(PyObject_GetAttrString(function, "__self__"));
  if (!self) return nullptr;
  PyObject* made = PyType_GenericAlloc(type, 0);
  if (!made) return nullptr;
  const Caller& caller = caller_of(self.get());
  front_in(made) = {
      nullptr, caller.first_array,     how_to_call(caller.otherwise), caller.otherwise,
      &caller, shared(function).give()};
  return made;
}
