// SPDX-License-Identifier: Apache-2.0
// What of Python's C API is used? These functions of its limited interface, found in the process
// when the library is loaded (weak: a library of ops alone loads without Python too). No Python
// header is needed to build.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct _object;
typedef _object PyObject;
typedef ptrdiff_t Py_ssize_t;

extern "C" {
typedef PyObject* (*PyCFunctionWithKeywords)(PyObject*, PyObject*, PyObject*);
struct PyMethodDef {
  const char* ml_name;
  PyCFunctionWithKeywords ml_meth;
  int ml_flags;
  const char* ml_doc;
};
#define KILN_PY(result, name, ...) __attribute__((weak)) result name(__VA_ARGS__)
KILN_PY(int, Py_IsInitialized, void);
KILN_PY(const char*, Py_GetVersion, void);
KILN_PY(void, Py_IncRef, PyObject*);
KILN_PY(void, Py_DecRef, PyObject*);
KILN_PY(int, PyGILState_Ensure, void);
KILN_PY(void, PyGILState_Release, int);
KILN_PY(void*, PyEval_SaveThread, void);
KILN_PY(void, PyEval_RestoreThread, void*);
KILN_PY(PyObject*, PyImport_ImportModule, const char*);
KILN_PY(PyObject*, PyObject_GetAttrString, PyObject*, const char*);
KILN_PY(int, PyObject_SetAttrString, PyObject*, const char*, PyObject*);
KILN_PY(PyObject*, PyObject_Call, PyObject*, PyObject*, PyObject*);
KILN_PY(PyObject*, PyObject_CallObject, PyObject*, PyObject*);
KILN_PY(int, PyObject_IsInstance, PyObject*, PyObject*);
KILN_PY(int, PyObject_IsTrue, PyObject*);
KILN_PY(PyObject*, PyObject_Repr, PyObject*);
KILN_PY(PyObject*, PyObject_Str, PyObject*);
KILN_PY(PyObject*, PyObject_Type, PyObject*);
KILN_PY(PyObject*, PyObject_GetItem, PyObject*, PyObject*);
KILN_PY(int, PyObject_SetItem, PyObject*, PyObject*, PyObject*);
KILN_PY(PyObject*, PyNumber_Index, PyObject*);
KILN_PY(PyObject*, PyNumber_Long, PyObject*);
KILN_PY(PyObject*, PyNumber_Float, PyObject*);
KILN_PY(int, PyNumber_Check, PyObject*);
KILN_PY(int, PyIndex_Check, PyObject*);
KILN_PY(PyObject*, PyLong_FromLongLong, long long);
KILN_PY(PyObject*, PyLong_FromUnsignedLongLong, unsigned long long);
KILN_PY(long long, PyLong_AsLongLong, PyObject*);
KILN_PY(unsigned long long, PyLong_AsUnsignedLongLong, PyObject*);
KILN_PY(PyObject*, PyFloat_FromDouble, double);
KILN_PY(double, PyFloat_AsDouble, PyObject*);
KILN_PY(PyObject*, PyBool_FromLong, long);
KILN_PY(PyObject*, PyComplex_FromDoubles, double, double);
KILN_PY(double, PyComplex_RealAsDouble, PyObject*);
KILN_PY(double, PyComplex_ImagAsDouble, PyObject*);
KILN_PY(PyObject*, PyUnicode_FromStringAndSize, const char*, Py_ssize_t);
KILN_PY(PyObject*, PyUnicode_AsUTF8String, PyObject*);
KILN_PY(int, PyBytes_AsStringAndSize, PyObject*, char**, Py_ssize_t*);
KILN_PY(PyObject*, PyTuple_New, Py_ssize_t);
KILN_PY(int, PyTuple_SetItem, PyObject*, Py_ssize_t, PyObject*);
KILN_PY(PyObject*, PyTuple_GetItem, PyObject*, Py_ssize_t);
KILN_PY(Py_ssize_t, PyTuple_Size, PyObject*);
KILN_PY(PyObject*, PyList_New, Py_ssize_t);
KILN_PY(int, PyList_SetItem, PyObject*, Py_ssize_t, PyObject*);
KILN_PY(int, PySequence_Check, PyObject*);
KILN_PY(Py_ssize_t, PySequence_Size, PyObject*);
KILN_PY(PyObject*, PySequence_GetItem, PyObject*, Py_ssize_t);
KILN_PY(PyObject*, PyDict_New, void);
KILN_PY(int, PyDict_SetItemString, PyObject*, const char*, PyObject*);
KILN_PY(PyObject*, PyDict_GetItemString, PyObject*, const char*);
KILN_PY(Py_ssize_t, PyDict_Size, PyObject*);
KILN_PY(int, PyDict_Next, PyObject*, Py_ssize_t*, PyObject**, PyObject**);
KILN_PY(PyObject*, PyCapsule_New, void*, const char*, void (*)(PyObject*));
KILN_PY(void*, PyCapsule_GetPointer, PyObject*, const char*);
KILN_PY(const char*, PyCapsule_GetName, PyObject*);
KILN_PY(PyObject*, PyCFunction_NewEx, PyMethodDef*, PyObject*, PyObject*);
KILN_PY(PyObject*, PyModule_Create2, void*, int);
KILN_PY(PyObject*, PyModule_New, const char*);
KILN_PY(int, PyModule_AddObject, PyObject*, const char*, PyObject*);
KILN_PY(PyObject*, PySlice_New, PyObject*, PyObject*, PyObject*);
KILN_PY(PyObject*, PyErr_Occurred, void);
KILN_PY(void, PyErr_Clear, void);
KILN_PY(void, PyErr_SetString, PyObject*, const char*);
KILN_PY(int, PyErr_ExceptionMatches, PyObject*);
KILN_PY(void, PyErr_Fetch, PyObject**, PyObject**, PyObject**);
KILN_PY(void, PyErr_NormalizeException, PyObject**, PyObject**, PyObject**);
KILN_PY(void, PyErr_Restore, PyObject*, PyObject*, PyObject*);
KILN_PY(int, PyErr_WarnEx, PyObject*, const char*, Py_ssize_t);
#undef KILN_PY
// Variables, by address.
#define KILN_PY_OBJECT(name) extern __attribute__((weak)) PyObject* name
KILN_PY_OBJECT(PyExc_RuntimeError);
KILN_PY_OBJECT(PyExc_ImportError);
KILN_PY_OBJECT(PyExc_IndexError);
KILN_PY_OBJECT(PyExc_ValueError);
KILN_PY_OBJECT(PyExc_TypeError);
KILN_PY_OBJECT(PyExc_NotImplementedError);
KILN_PY_OBJECT(PyExc_MemoryError);
KILN_PY_OBJECT(PyExc_OverflowError);
KILN_PY_OBJECT(PyExc_UserWarning);
#undef KILN_PY_OBJECT
extern __attribute__((weak)) char _Py_NoneStruct[];
extern __attribute__((weak)) char _Py_TrueStruct[];
extern __attribute__((weak)) char _Py_FalseStruct[];
extern __attribute__((weak)) char _Py_EllipsisObject[];
extern __attribute__((weak)) char PyFloat_Type[];
extern __attribute__((weak)) char PyComplex_Type[];
extern __attribute__((weak)) char PyUnicode_Type[];
extern __attribute__((weak)) char PyBytes_Type[];
extern __attribute__((weak)) char PyLong_Type[];
extern __attribute__((weak)) char PyDict_Type[];
}

namespace kiln::compat {

inline PyObject* py_none() { return reinterpret_cast<PyObject*>(_Py_NoneStruct); }
inline bool has_python() { return &Py_IsInitialized && Py_IsInitialized(); }

// One owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& o) noexcept : object_(o.object_) { o.object_ = nullptr; }
  Ref& operator=(Ref&& o) noexcept {
    PyObject* mine = object_;
    object_ = o.object_;
    o.object_ = mine;
    return *this;
  }
  ~Ref() {
    if (object_) Py_DecRef(object_);
  }
  static Ref to(PyObject* borrowed) {
    Py_IncRef(borrowed);
    return Ref(borrowed);
  }
  PyObject* get() const { return object_; }
  PyObject* take() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;

 private:
  int state_;
};

}  // namespace kiln::compat
