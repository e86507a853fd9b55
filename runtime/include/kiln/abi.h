/* SPDX-License-Identifier: Apache-2.0
 *
 * What does a caller without torch need from an op library? One exported symbol, kiln_library(),
 * and these structs.
 *
 * Plain C, no other header than <stdint.h> and <stddef.h>. Everything reached from KilnLibrary
 * is constant and lives as long as the library is mapped. Strings are UTF-8 and end in NUL. A
 * struct may grow at its end: check struct_bytes. */
#ifndef KILN_ABI_H
#define KILN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_ABI_VERSION 1

/* The numbers are torch's own (c10::DeviceType, c10::ScalarType): they cross the shim without a
 * table. */
enum { KILN_DEVICE_CPU = 0, KILN_DEVICE_CUDA = 1 };
enum {
  KILN_U8 = 0, KILN_I8 = 1, KILN_I16 = 2, KILN_I32 = 3, KILN_I64 = 4,
  KILN_F16 = 5, KILN_F32 = 6, KILN_F64 = 7, KILN_C32 = 8, KILN_C64 = 9, KILN_C128 = 10,
  KILN_BOOL8 = 11, KILN_BF16 = 15, KILN_F8E5M2 = 23, KILN_F8E4M3 = 24,
  KILN_U16 = 27, KILN_U32 = 28, KILN_U64 = 29
};

/* A tensor as it crosses this interface. As an argument it is borrowed for the length of the
 * call. As a result it is the caller's: call release(t) once when done, which frees the memory
 * and the struct. (The array of a TENSOR_LIST result is the caller's too: free() it.) */
typedef struct KilnTensor {
  void* data; /* the first element; host memory for CPU, device memory for CUDA */
  const int64_t* sizes;
  const int64_t* strides; /* in elements */
  int32_t ndim;
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;
  void (*release)(struct KilnTensor*); /* null in a borrowed tensor */
  void* owner;
} KilnTensor;

typedef enum KilnType {
  KILN_TYPE_NONE = 0, /* an optional that was left out */
  KILN_TYPE_TENSOR = 1,
  KILN_TYPE_INT = 2,
  KILN_TYPE_FLOAT = 3,
  KILN_TYPE_BOOL = 4,
  KILN_TYPE_STR = 5,
  KILN_TYPE_DTYPE = 6,
  KILN_TYPE_DEVICE = 7,
  KILN_TYPE_TENSOR_LIST = 8,
  KILN_TYPE_INT_LIST = 9,
  KILN_TYPE_FLOAT_LIST = 10
} KilnType;

/* One argument or result. `count` is the length of a list or of a string (without its NUL). */
typedef struct KilnValue {
  uint32_t type; /* KilnType */
  uint32_t count;
  union {
    int64_t i; /* INT, BOOL (0 or 1), DTYPE */
    double f;
    const char* s;
    KilnTensor* tensor;
    KilnTensor* const* tensors;
    const int64_t* ints;
    const double* floats;
    struct {
      int32_t type;
      int32_t index;
    } device;
  } as;
} KilnValue;

enum {
  KILN_PARAMETER_OPTIONAL = 1,     /* accepts KILN_TYPE_NONE */
  KILN_PARAMETER_MUTABLE = 2,      /* the op writes to this tensor */
  KILN_PARAMETER_KEYWORD_ONLY = 4,
  KILN_PARAMETER_HAS_DEFAULT = 8
};

typedef struct KilnParameter {
  const char* name;
  uint32_t type;  /* KilnType */
  uint32_t flags; /* KILN_PARAMETER_* */
  KilnValue default_value;
} KilnParameter;

typedef struct KilnOpInfo {
  const char* name;     /* "cust_add" */
  const char* overload; /* "int", or "" */
  const char* schema;   /* torch's, without namespace: "cust_add.int(Tensor x, int v) -> Tensor" */
  const char* fake;     /* the rule given to .fake(), or "" */
  const char* doc;      /* the text given to .doc(), or "" */
  const char* file;     /* where KILN_OP stands */
  int32_t line;
  uint32_t parameter_count;
  const KilnParameter* parameters;
  uint32_t result_count;
  const KilnParameter* results; /* name is "", type and flags as for parameters */
} KilnOpInfo;

typedef struct KilnLibrary {
  uint32_t abi_version; /* KILN_ABI_VERSION */
  uint32_t struct_bytes;
  const char* kiln_version;
  const char* name; /* the namespace of the ops, torch.ops.<name> */
  uint32_t op_count;
  const KilnOpInfo* ops; /* op_count of them, in the order of their definition */

  /* Each function below returns 0, or 1 with the whole text in last_error() (of the calling
   * thread, valid until the next call on that thread). Nothing is thrown across this interface. */

  /* Calls ops[op]. `results` has room for ops[op].result_count values. Without a torch in the
   * process, results are allocated by the library itself on the device of the arguments. The
   * call has finished on the device only after synchronize(). */
  int (*call)(uint32_t op, const KilnValue* arguments, uint32_t argument_count, KilnValue* results);
  const char* (*last_error)(void);

  /* Where ops run in this process when nobody says otherwise: CUDA 0 if there is a GPU, else CPU
   * (= the engine). KILN_DEVICE=engine and KILN_DEVICE=cuda override. */
  int (*default_device)(int32_t* device_type, int32_t* device_index);

  /* Memory on a device; for KILN_DEVICE_CPU it is host memory aligned to 256 bytes that the
   * engine knows. */
  int (*allocate)(int32_t device_type, int32_t device_index, size_t bytes, void** data);
  int (*deallocate)(int32_t device_type, int32_t device_index, void* data);
  int (*copy)(void* to, int32_t to_device_type, const void* from, int32_t from_device_type,
              size_t bytes);
  int (*synchronize)(int32_t device_type, int32_t device_index);

  /* Registers the ops with the torch in this process (needs `import torch` first). Safe to
   * repeat: done once. A library that is loaded after torch has done it by itself. */
  int (*register_torch)(void);
  /* "" when registered; else why not. */
  const char* (*torch_status)(void);

  /* Ops that this thread calls through `call` put their work on this cudaStream_t and allocate
   * their results in its order. Null is the default stream. Check struct_bytes: the first
   * libraries end before it. */
  int (*use_stream)(void* stream);

  /* How many results were copied into memory that a caller of __tvm_ffi_<op> gave for them, since
   * the library was loaded. The others were written there by the kernel itself. */
  uint64_t (*copied_results)(void);
} KilnLibrary;

#define KILN_LIBRARY_SYMBOL "kiln_library"
typedef const KilnLibrary* (*KilnLibraryFunction)(void);

#ifdef __cplusplus
}
#endif
#endif
