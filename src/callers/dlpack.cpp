// SPDX-License-Identifier: Apache-2.0
#include "callers/dlpack.h"

#include <stdlib.h>

namespace kiln::callers {
namespace {

// Made once and kept: Python's objects of this process.
struct Words {
  PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
  PyObject* version = PyTuple_New(2);
  PyObject* keywords = PyTuple_New(1);
  Words() {
    PyTuple_SetItem(version, 0, PyLong_FromLongLong(1));
    PyTuple_SetItem(version, 1, PyLong_FromLongLong(0));
    PyTuple_SetItem(keywords, 0, PyUnicode_InternFromString("max_version"));
  }
};
const Words& words() {
  static const Words all;
  return all;
}

bool is_capsule(PyObject* object, const char* name) { return PyCapsule_IsValid(object, name) != 0; }

Borrowed open_capsule(BorrowedArray& to) {
  PyObject* capsule = to.capsule.get();
  if (is_capsule(capsule, kVersioned)) {
    auto* managed = static_cast<VersionedTensor*>(PyCapsule_GetPointer(capsule, kVersioned));
    if (managed->major != 1) return Borrowed::too_new;
    to.tensor = &managed->tensor;
    to.read_only = managed->flags & kReadOnly;
    return Borrowed::yes;
  }
  if (is_capsule(capsule, kUsedPlain) || is_capsule(capsule, kUsedVersioned))
    return Borrowed::used_capsule;
  if (!is_capsule(capsule, kPlain)) return Borrowed::not_a_capsule;
  to.tensor = &static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain))->tensor;
  return Borrowed::yes;
}

bool lacks_memory(const ffi::DlTensor& tensor) {
  if (tensor.data) return false;
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.sizes[i] == 0) return false;
  }
  return true;
}

void use_up(BorrowedArray& array) {
  PyObject* capsule = array.capsule.get();
  if (is_capsule(capsule, kVersioned)) {
    array.versioned = static_cast<VersionedTensor*>(PyCapsule_GetPointer(capsule, kVersioned));
    PyCapsule_SetName(capsule, kUsedVersioned);
  } else {
    array.plain = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
    PyCapsule_SetName(capsule, kUsedPlain);
  }
}

void destroy_unused(PyObject* capsule) {
  if (is_capsule(capsule, kVersioned)) {
    auto* managed = static_cast<VersionedTensor*>(PyCapsule_GetPointer(capsule, kVersioned));
    managed->destroy(managed);
  } else if (is_capsule(capsule, kPlain)) {
    auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
    managed->destroy(managed);
  }
}

template <class Managed>
void destroy_managed(Managed* managed) {
  auto* tensor = static_cast<ffi::TensorObject*>(managed->context);
  tensor->object.destroy(tensor, ffi::kDestroyContent | ffi::kFreeMemory);
  free(managed);
}

template <class Managed>
Ref capsule_as(ffi::TensorObject* owned, const char* name) {
  auto* managed = static_cast<Managed*>(calloc(1, sizeof(Managed)));
  managed->tensor = owned->tensor;
  managed->context = owned;
  managed->destroy = destroy_managed<Managed>;
  if constexpr (sizeof(Managed) == sizeof(VersionedTensor)) managed->major = 1;
  return Ref(PyCapsule_New(managed, name, destroy_unused));
}

}  // namespace

Borrowed borrow(PyObject* array, BorrowedArray& to) {
  if (is_capsule(array, kUsedPlain) || is_capsule(array, kUsedVersioned))
    return Borrowed::used_capsule;
  const bool bare = is_capsule(array, kPlain) || is_capsule(array, kVersioned);
  if (bare) {
    to.capsule = shared(array);
  } else {
    const Words& w = words();
    PyObject* arguments[] = {array, w.version};
    to.capsule = Ref(PyObject_VectorcallMethod(w.dlpack, arguments, 1, w.keywords));
    if (!to.capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer before DLPack 1
      PyErr_Clear();
      to.capsule = Ref(PyObject_VectorcallMethod(w.dlpack, arguments, 1, nullptr));
    }
    if (!to.capsule) {
      if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return Borrowed::refused_by_owner;
      PyErr_Clear();
      return Borrowed::not_an_array;
    }
  }
  Borrowed opened = open_capsule(to);
  if (opened == Borrowed::yes && lacks_memory(*to.tensor)) opened = Borrowed::no_memory;
  if (opened == Borrowed::yes && bare) use_up(to);
  return opened;
}

Ref capsule_of(ffi::TensorObject* owned, bool versioned) {
  return versioned ? capsule_as<VersionedTensor>(owned, kVersioned)
                   : capsule_as<ManagedTensor>(owned, kPlain);
}

}  // namespace kiln::callers
