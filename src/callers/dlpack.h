// SPDX-License-Identifier: Apache-2.0
// How is an array of any library read, and how is a tensor of an op given to one? By the capsules
// of DLPack, versioned ones (1.0) where the other side knows them.
#pragma once

#include "callers/python_api.h"
#include "kiln/ffi_abi.h"

namespace kiln::callers {

struct ManagedTensor {
  ffi::DlTensor tensor;
  void* context;
  void (*destroy)(ManagedTensor*);
};
struct VersionedTensor {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*destroy)(VersionedTensor*);
  uint64_t flags;
  ffi::DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1;

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";
constexpr const char* kUsedPlain = "used_dltensor";
constexpr const char* kUsedVersioned = "used_dltensor_versioned";

// An array while a call uses it. A capsule that its owner passed by itself is used up.
struct BorrowedArray {
  Ref capsule;
  ffi::DlTensor* tensor = nullptr;
  bool read_only = false;
  ManagedTensor* plain = nullptr;  // to destroy
  VersionedTensor* versioned = nullptr;
  BorrowedArray() = default;
  BorrowedArray(const BorrowedArray&) = delete;
  ~BorrowedArray() {
    if (plain && plain->destroy) plain->destroy(plain);
    if (versioned && versioned->destroy) versioned->destroy(versioned);
  }
};

// not_a_capsule: what __dlpack__ returned.
// no_memory: it has elements, and its pointer is null.
enum class Borrowed {
  yes,
  not_an_array,
  not_a_capsule,
  used_capsule,
  too_new,
  no_memory,
  refused_by_owner
};

// `array` has __dlpack__, or is a capsule itself. refused_by_owner: Python's error is set.
Borrowed borrow(PyObject* array, BorrowedArray& to);

// A capsule that holds the tensor of an op. `versioned`: as the receiver asks for.
Ref capsule_of(ffi::TensorObject* owned, bool versioned);

}  // namespace kiln::callers
