/* SPDX-License-Identifier: Apache-2.0
 *
 * What does the runtime inside an op library (or a program) ask of libkiln_engine.so? One exported
 * symbol, kiln_engine(), and this table. The engine executes the PTX of a fat binary on the CPU.
 *
 * Every `int` result is a cudaError_t. After a failure last_message() of the same thread has the
 * whole text: what, why, where (kernel, block, thread, source line). */
#ifndef KILN_ENGINE_ABI_H
#define KILN_ENGINE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_ENGINE_ABI_VERSION 1

typedef struct KilnDim3 {
  uint32_t x, y, z;
} KilnDim3;

/* Memory that a kernel may touch in this launch: a tensor that the op was given or made. */
typedef struct KilnRegion {
  const void* begin;
  uint64_t bytes;
  const char* name; /* "a", "out": for messages; may be "" */
  uint32_t writable;
} KilnRegion;

/* DEFERRED: a program's launch, in stream order; a fault of the kernel is reported where CUDA
 * would report it: by the next call of the runtime that waits. */
enum { KILN_LAUNCH_COOPERATIVE = 1, KILN_LAUNCH_DEFERRED = 2 };

typedef struct KilnEngineLaunch {
  uint32_t struct_bytes;
  uint32_t flags;            /* KILN_LAUNCH_* */
  const void* host_function; /* the address given to register_function */
  KilnDim3 grid, block;
  KilnDim3 cluster; /* 0,0,0: none asked for */
  void** arguments; /* one pointer a kernel parameter, as cudaLaunchKernel takes them */
  uint64_t dynamic_shared_bytes;
  void* stream;
  /* Where kernels may read and write, besides the engine's own allocations. check_memory 0: an op
   * gave no list, every address that is mapped is allowed. */
  const KilnRegion* regions;
  uint32_t region_count;
  uint32_t check_memory;
  /* What function_handle() gave for host_function, or null. With it a launch takes no lock and
   * looks nothing up. Check struct_bytes: the first runtimes end before this. */
  void* function;
} KilnEngineLaunch;

/* A launch that has ended, as a listener sees it. */
typedef struct KilnLaunchRecord {
  uint32_t struct_bytes;
  int32_t code;       /* cudaError_t */
  const char* kernel; /* demangled */
  KilnDim3 grid, block;
  uint64_t shared_bytes;
  int64_t begin_ns, ns; /* CLOCK_MONOTONIC */
} KilnLaunchRecord;
typedef void (*KilnLaunchListener)(const KilnLaunchRecord* record, void* user);

enum { KILN_VARIABLE_CONSTANT = 1, KILN_VARIABLE_MANAGED = 2 };

typedef struct KilnEngine {
  uint32_t abi_version;
  uint32_t struct_bytes;
  const char* version; /* kiln's */

  /* `wrapper` is what __cudaRegisterFatBinary gets: {u32 0x466243B1, u32 version, const void*
   * container, void*}. Never fails: parsing waits for the first launch, and a fault is reported
   * there. */
  void* (*register_image)(const void* wrapper);
  void (*register_function)(void* image, const void* host_function, const char* device_name);
  /* For a managed variable `host_variable` is the address of the pointer that the host code
   * reads. */
  void (*register_variable)(void* image, void* host_variable, const char* device_name,
                            uint64_t bytes, uint32_t flags);
  void (*unregister_image)(void* image);

  /* Runs the kernel to its end (an op call) or in stream order (a program); an error of the
   * kernel itself comes back from here when the launch is synchronous. */
  int (*launch)(const KilnEngineLaunch*);

  /* The function of that name with the ABI of the CUDA 13 runtime ("cudaMalloc",
   * "cudaMemcpyAsync", ...), or null: the engine does not have it. */
  void* (*runtime_function)(const char* name);

  const char* (*last_message)(void);

  /* `listener` hears of every launch of this process when it has ended, on the thread that
   * launched; null: nobody does. Check struct_bytes: the first engines end before this. */
  void (*listen)(KilnLaunchListener listener, void* user);

  /* An op is called in this process: from now on the process' own memory is device memory to
   * copies and fills as well, for CPU tensors are that. A program's copies are held to the
   * engine's allocations. Check struct_bytes here too. */
  void (*serve_ops)(void);

  /* What stands for a registered function in KilnEngineLaunch::function, until its image is
   * unregistered; null: it is not known. Check struct_bytes here too. */
  void* (*function_handle)(const void* host_function);

  /* Counts what launches do from now on, and writes it to `path` after each (kiln counters); null:
   * no longer. Not while a kernel runs. A file that cannot be written is an error. Check
   * struct_bytes here too. */
  int (*count_launches)(const char* path);
} KilnEngine;

#define KILN_ENGINE_SYMBOL "kiln_engine"
/* Null when the engine cannot serve the version wanted. */
typedef const KilnEngine* (*KilnEngineFunction)(uint32_t abi_version_wanted);

#ifdef __cplusplus
}
#endif
#endif
