/* SPDX-License-Identifier: Apache-2.0
 *
 * What does a trampoline of the CUDA runtime tell the front about the function that was called? One
 * entry, in writable memory, for each row of cudart.def that has a trampoline. The assembler writes
 * the same layout: cudart_trampoline.S.
 */
#ifndef KILN_FRONT_ENTRY_H
#define KILN_FRONT_ENTRY_H

/* What to do, by back end:
 *   rule              libcudart 13             libcudart 12 engine SAME              name_on_13
 * name_on_12 (the same)                          name_on_13 RENAMED           name_on_13 name_on_12
 * name_on_13 RENAMED_ELSE_SAME name_on_13               name_on_12, and if it lacks that, name
 * name_on_13 CONVERT           name_on_13               convert_on_12, after real_on_12 =
 * name_on_12   name_on_13 ONLY_13           name_on_13               refuse: needs CUDA `since`
 * name_on_13 REFUSE_ON_12      name_on_13               refuse: why name_on_13 REFUSE refuse: why
 * refuse: why                                    refuse: why ONLY_12           name_on_13, null:
 * refuse name_on_12                                     name_on_13, null: refuse A null name means
 * "refuse" wherever it stands. A name that the library turns out not to export is refused with
 * `since`. */
#define KILN_FRONT_SAME 0
#define KILN_FRONT_RENAMED 1
#define KILN_FRONT_RENAMED_ELSE_SAME 2
#define KILN_FRONT_CONVERT 3
#define KILN_FRONT_ONLY_13 4
#define KILN_FRONT_REFUSE_ON_12 5
#define KILN_FRONT_REFUSE 6
#define KILN_FRONT_ONLY_12 7
/* A row of gpu_libraries.def: name_on_12 is the stem of the library's file, `why` its name, `since`
 * the status of a refused call. On a GPU it goes to the library, and the engine refuses it. */
#define KILN_FRONT_LIBRARY 8

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KilnFrontEntry {
  const char* name;       /* as the caller wrote it */
  const char* name_on_12; /* null: nothing in libcudart 12 stands for it */
  const char* name_on_13; /* of libcudart 13 and of the engine; null: nothing there stands for it */
  const char* why;        /* why it is refused, for the REFUSE rules; else null */
  void* convert_on_12;    /* has the ABI of 13 and calls real_on_12 */
  void* real_on_12;       /* the front stores the address of name_on_12 here before it returns
                             convert_on_12 */
  void* target[2];        /* the front's cache: [0] of libcudart, [1] of the engine */
  void* when_refused;     /* what to return for a refused call; null: a function that yields a
                             cudaError_t */
  uint32_t rule;          /* KILN_FRONT_* */
  uint32_t since;         /* as CUDART_VERSION: 12030 = 12.3 */
} KilnFrontEntry;

/* Called by every trampoline, on each call, with the caller's argument registers saved. Returns the
 * function to jump to; never null. It may throw: the frames of the trampoline have unwind tables.
 * To refuse a call it returns entry->when_refused, and where that is null a function without
 * parameters that yields a cudaError_t. The front defines it. */
__attribute__((visibility("hidden"))) void* kiln_front_target(KilnFrontEntry* entry);

/* The address of an exported name of the libcudart in use, or null. The conversions ask for further
 * functions through it. The front defines it. */
__attribute__((visibility("hidden"))) void* kiln_front_symbol(const char* name);

#ifdef __cplusplus
/* What the refusals of KILN_FRONT_LIBRARY return next. */
__attribute__((visibility("hidden"))) extern thread_local int kiln_library_status;
}
static_assert(sizeof(void*) == 8, "cudart_trampoline.S writes 8-byte pointers");
static_assert(offsetof(KilnFrontEntry, target) == 48 && offsetof(KilnFrontEntry, rule) == 72 &&
                  sizeof(KilnFrontEntry) == 80,
              "cudart_trampoline.S writes this layout");
#endif
#endif
#endif
