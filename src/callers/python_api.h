// SPDX-License-Identifier: Apache-2.0
// Which functions of Python does the caller use? Those of its stable ABI that exist since 3.9,
// declared here: the library is built without Python's headers and works in every later version.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
struct PyObject;
struct PyThreadState;
using PyFastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, intptr_t count,
                                     PyObject* names);
struct PyMethodDef {
  const char* name;
  PyFastFunction function;
  int flags;
  const char* doc;
};

struct PyTypeSlot {
  int slot;
  void* function;
};
struct PyTypeSpec {
  const char* name;
  int object_bytes;
  int item_bytes;
  unsigned flags;
  PyTypeSlot* slots;
};

void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
PyObject* PyObject_Type(PyObject*);
PyObject* PyType_FromSpec(PyTypeSpec*);
void* PyType_GetSlot(PyObject* type, int slot);
PyObject* PyType_GenericAlloc(PyObject* type, intptr_t items);
PyObject* PyObject_Call(PyObject*, PyObject* args, PyObject* named);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t count, PyObject* names);
PyObject* PyObject_VectorcallMethod(PyObject* name, PyObject* const*, size_t count,
                                    PyObject* names);
PyObject* PyDict_GetItemWithError(PyObject*, PyObject* key);  // borrowed
PyObject* PyCapsule_New(void*, const char* name, void (*destroy)(PyObject*));
void* PyCapsule_GetPointer(PyObject*, const char* name);
int PyCapsule_IsValid(PyObject*, const char* name);
int PyCapsule_SetName(PyObject*, const char* name);
PyObject* PyErr_Occurred();
void PyErr_Clear();
int PyErr_ExceptionMatches(PyObject*);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
PyObject* PyNumber_Index(PyObject*);
long long PyLong_AsLongLong(PyObject*);
PyObject* PyLong_FromLongLong(long long);
double PyFloat_AsDouble(PyObject*);
PyObject* PyFloat_FromDouble(double);
PyObject* PyBool_FromLong(long);
const char* PyUnicode_AsUTF8AndSize(PyObject*, intptr_t* size);
PyObject* PyUnicode_InternFromString(const char*);
PyObject* PyUnicode_DecodeUTF8(const char*, intptr_t size, const char* errors);
int PyUnicode_CompareWithASCIIString(PyObject*, const char*);
intptr_t PySequence_Size(PyObject*);
PyObject* PySequence_GetItem(PyObject*, intptr_t);
PyObject* PyTuple_New(intptr_t);
int PyTuple_SetItem(PyObject*, intptr_t, PyObject* item);  // takes the reference
PyObject* PyTuple_GetItem(PyObject*, intptr_t);            // borrowed
intptr_t PyTuple_Size(PyObject*);
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
PyThreadState* PyEval_SaveThread();
void PyEval_RestoreThread(PyThreadState*);
extern PyObject PyBaseObject_Type;
extern PyObject PyTuple_Type;
extern PyObject* PyExc_TypeError;
extern PyObject* PyExc_AttributeError;
extern PyObject _Py_NoneStruct;
}

namespace kiln::callers {

constexpr int kCallSlot = 50;                       // Py_tp_call
constexpr int kFastWithKeywords = 0x0080 | 0x0002;  // METH_FASTCALL | METH_KEYWORDS

// A reference that this code owns.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref& operator=(Ref&& other) noexcept {
    PyObject* mine = object_;
    object_ = other.object_;
    other.object_ = mine;
    return *this;
  }
  Ref(const Ref&) = delete;
  ~Ref() {
    if (object_) Py_DecRef(object_);
  }
  PyObject* get() const { return object_; }
  PyObject* give() {
    PyObject* given = object_;
    object_ = nullptr;
    return given;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline Ref shared(PyObject* borrowed) {
  Py_IncRef(borrowed);
  return Ref(borrowed);
}
inline bool is_none(const PyObject* object) { return object == &_Py_NoneStruct; }

}  // namespace kiln::callers
