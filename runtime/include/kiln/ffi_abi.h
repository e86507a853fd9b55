// SPDX-License-Identifier: Apache-2.0
// What crosses a symbol __tvm_ffi_NAME? The structs of DLPack 1 and of TVM-FFI's C ABI (0.1), as
// far as an op needs them. Layouts are facts of those ABIs; the declarations are kiln's own, so
// that a library is built and loaded without either.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace kiln::ffi {

struct DlDevice {
  int32_t type;
  int32_t index;
};
enum : int32_t { kDlCpu = 1, kDlCuda = 2, kDlCudaHost = 3, kDlCudaManaged = 13 };

struct DlDtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
enum : uint8_t {
  kDlInt = 0,
  kDlUint = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6,
  kDlFloat8E4M3Fn = 10,
  kDlFloat8E5M2 = 12
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDtype dtype;
  int64_t* sizes;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

enum : int32_t {
  kLeftOut = -100,  // kiln's own callers: the parameter's default
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kDtype = 5,
  kDevice = 6,
  kDlTensorPointer = 7,
  kRawString = 8,
  kSmallString = 11,
  kObjects = 64,  // from here on: pointers to an Object
  kString = 65,
  kShape = 69,
  kTensor = 70,
  kArray = 71,
  kList = 75  // laid out as an array
};

struct Object {
  uint64_t references;  // strong in the low half, weak in the high half
  int32_t type;
  uint32_t padding;
  void (*destroy)(void* self, int flags);
};
enum : int { kDestroyContent = 1, kFreeMemory = 2 };

struct TensorObject {
  Object object;
  DlTensor tensor;
};

struct Any {
  int32_t type;
  uint32_t small_size;  // of a kSmallString, whose bytes stand in the value
  union {
    int64_t i;
    double f;
    const char* s;
    char bytes[8];
    void* pointer;
    Object* object;
    DlDtype dtype;
    DlDevice device;
  };
};
static_assert(sizeof(Any) == 16 && sizeof(Object) == 24 && sizeof(DlTensor) == 48);

// What follows the Object of a kString (bytes) and a kShape (sizes).
struct Run {
  Object object;
  const void* data;
  size_t count;
};
// Of a kArray.
struct ArrayObject {
  Object object;
  Any* items;
  int64_t count;
  int64_t room;
  void (*free_items)(void*);
};

}  // namespace kiln::ffi
