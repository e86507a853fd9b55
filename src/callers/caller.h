// SPDX-License-Identifier: Apache-2.0
// How does Python call an op with arrays of any library? A Caller is a callable of one op: it reads
// the arguments, calls the op's symbol __tvm_ffi_NAME, and returns arrays of the caller's library.
// In C++, because ctypes takes longer for three arrays than all the rest.
#pragma once

#include <memory>
#include <vector>

#include "callers/dlpack.h"
#include "callers/python_api.h"
#include "kiln/abi.h"

namespace kiln::callers {

using OpSymbol = int (*)(void* self, const ffi::Any* arguments, int32_t count, ffi::Any* result);

// The Python side: kiln/_callers/arrays.py.
struct Support {
  PyObject* routes;      // dict: type of an array -> None (the other callable), True, or a callable
  PyObject* find_route;  // (array): fills `routes` for its type
  PyObject* makers;      // dict: type of an array -> (callable of a capsule, versioned?)
  PyObject* find_maker;
  PyObject* fail;            // (kind, op, parameter, value, text): raises
  PyObject* number_of;       // (parameter's type, value): a dtype or device as a number, or None
  PyObject* argument_error;  // the class of errors after which the next overload is tried
};

struct Caller {
  OpSymbol symbol;
  const KilnOpInfo* info;
  const KilnLibrary* library;
  Support support;
  PyObject* otherwise;  // what to call for torch's tensors; None where there is no torch
  PyObject* next;       // the callable of the next overload, or None
  std::vector<PyObject*> names;
  int first_array;  // the first parameter that is a tensor; -1
  // The first type of array whose calls went to `otherwise`: most calls are torch's, and pay for
  // one comparison (front.cpp). Owned.
  PyObject* plain_type;
  PyMethodDef method;
};

// Who takes calls whose first array is this one. Borrowed: None for torch, True for this library,
// or a callable; null: no op takes arrays of this type (a mask would be lost), Python's error is
// set.
PyObject* route_of(const Caller& caller, PyObject* array);

// What a callable is bound to: a capsule without a name, which only this library makes and reads.
Caller& caller_of(PyObject* self);

// One call of an op, from Python's arguments to Python's result.
class PythonCall {
 public:
  explicit PythonCall(const Caller& caller);
  PyObject* run(PyObject* const* args, intptr_t count, PyObject* names);

 private:
  bool bind(PyObject* const* args, intptr_t count, PyObject* names);
  bool take(size_t parameter);
  bool take_array(const char* name, PyObject* value, bool written, ffi::Any& to);
  bool take_number(size_t parameter, PyObject* value, ffi::Any& to);
  bool take_special(size_t parameter, PyObject* value, ffi::Any& to);
  bool take_list(size_t parameter, PyObject* value, ffi::Any& to);
  bool take_out();
  bool fail(const char* kind, const char* parameter, PyObject* value, const char* text = "");
  bool wrong_type(size_t parameter, PyObject* value);
  PyObject* result(const ffi::Any& any);
  PyObject* array(ffi::TensorObject* tensor);

  struct List {
    ffi::ArrayObject array;
    std::vector<ffi::Any> items;
  };
  const Caller& caller_;
  const KilnOpInfo& info_;
  std::vector<PyObject*> bound_;  // borrowed from the arguments
  std::vector<ffi::Any> values_;
  std::vector<std::unique_ptr<BorrowedArray>> arrays_;
  std::vector<std::unique_ptr<List>> lists_;
  PyObject* out_ = nullptr;
  PyObject* like_ = nullptr;  // the first array: results are of its library
};

}  // namespace kiln::callers
