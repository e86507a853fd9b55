/* SPDX-License-Identifier: Apache-2.0
 *
 * How does a call to a function of the CUDA runtime, or to one that opens another GPU library, reach the back end that the
 * front chooses, when nobody here knows the function's signature? Each row of cudart.def and gpu_libraries.def becomes a
 * trampoline: it hands the address of its entry (front_entry.h) to kiln_front_enter, which saves all argument registers,
 * asks kiln_front_target where to go, and jumps there.
 *
 * Trampoline, entry and strings of a name have sections of their own, so that --gc-sections leaves in a library only the names
 * that it calls. */
#include "front_entry.h"

#if defined(__x86_64__)
#include "cudart_trampoline_x86_64.inc"
#elif defined(__aarch64__)
#include "cudart_trampoline_aarch64.inc"
#else
#error "the CUDA front has trampolines for x86_64 and aarch64 only"
#endif

/* Sections and strings of one row. A name that is equal to the row's own points at the same bytes. */
.macro kiln_front_begin name
  .section .rodata.kiln_front.\name, "a", %progbits
.Lname.\name:
  .asciz "\name"
.endm

.macro kiln_front_text label, text
\label:
  .asciz "\text"
.endm

.macro kiln_front_row name, on_12, on_13, why, convert, rule, since, when_refused=0, binding=.globl
  .section .data.rel.kiln_front.\name, "aw", %progbits
  .balign 8
  .globl kiln_front_entry_\name
  .hidden kiln_front_entry_\name
  .type kiln_front_entry_\name, %object
  .size kiln_front_entry_\name, 80
kiln_front_entry_\name:
  .quad .Lname.\name
  .quad \on_12
  .quad \on_13
  .quad \why
  .quad \convert
  .quad 0
  .quad 0, 0
  .quad \when_refused
  .long \rule, \since

  .section .text.kiln_front.\name, "ax", %progbits
  .balign 16
  \binding \name
  .hidden \name
  .type \name, %function
\name:
  .cfi_startproc
  kiln_front_code kiln_front_entry_\name
  .cfi_endproc
  .size \name, . - \name
.endm

.macro kiln_front_same name, rule, since
  kiln_front_begin \name
  kiln_front_row \name, .Lname.\name, .Lname.\name, 0, 0, \rule, \since
.endm

.macro kiln_front_returns name, since
  .hidden kiln_refuse_\name
  kiln_front_begin \name
  kiln_front_row \name, .Lname.\name, .Lname.\name, 0, 0, KILN_FRONT_SAME, \since, kiln_refuse_\name
.endm

.macro kiln_front_renamed name, on_12, rule, since
  kiln_front_begin \name
  kiln_front_text .Lon12.\name, \on_12
  kiln_front_row \name, .Lon12.\name, .Lname.\name, 0, 0, \rule, \since
.endm

.macro kiln_front_convert name, on_12, since
  .hidden kiln_convert_\name
  kiln_front_begin \name
  kiln_front_text .Lon12.\name, \on_12
  kiln_front_row \name, .Lon12.\name, .Lname.\name, 0, kiln_convert_\name, KILN_FRONT_CONVERT, \since
.endm

.macro kiln_front_only_13 name, since
  kiln_front_begin \name
  kiln_front_row \name, 0, .Lname.\name, 0, 0, KILN_FRONT_ONLY_13, \since
.endm

.macro kiln_front_refuse_on_12 name, why, since
  kiln_front_begin \name
  kiln_front_text .Lwhy.\name, "\why"
  kiln_front_row \name, 0, .Lname.\name, .Lwhy.\name, 0, KILN_FRONT_REFUSE_ON_12, \since
.endm

.macro kiln_front_refuse name, why, since
  kiln_front_begin \name
  kiln_front_text .Lwhy.\name, "\why"
  kiln_front_row \name, 0, 0, .Lwhy.\name, 0, KILN_FRONT_REFUSE, \since
.endm

.macro kiln_front_only_12 name, since
  kiln_front_begin \name
  kiln_front_row \name, .Lname.\name, 0, 0, 0, KILN_FRONT_ONLY_12, \since
.endm

.macro kiln_front_only_12_now name, on_13, since
  kiln_front_begin \name
  kiln_front_text .Lon13.\name, \on_13
  kiln_front_row \name, .Lname.\name, .Lon13.\name, 0, 0, KILN_FRONT_ONLY_12, \since
.endm

.macro kiln_front_library name, library, stem, status, when_refused
  .hidden \when_refused
  kiln_front_begin \name
  kiln_front_text .Lstem.\name, \stem
  kiln_front_text .Lwhy.\name, \library
  kiln_front_row \name, .Lstem.\name, 0, .Lwhy.\name, 0, KILN_FRONT_LIBRARY, \status, \when_refused, .weak
.endm

#define CUDART_SAME(name, since) kiln_front_same name, KILN_FRONT_SAME, since
#define CUDART_RETURNS(name, since) kiln_front_returns name, since
#define CUDART_RENAMED(name, since, on_12) kiln_front_renamed name, on_12, KILN_FRONT_RENAMED, since
#define CUDART_RENAMED_ELSE_SAME(name, since, on_12) kiln_front_renamed name, on_12, KILN_FRONT_RENAMED_ELSE_SAME, since
#define CUDART_CONVERT(name, since, on_12) kiln_front_convert name, on_12, since
#define CUDART_ONLY_13(name, since) kiln_front_only_13 name, since
#define CUDART_REFUSE_ON_12(name, since, why) kiln_front_refuse_on_12 name, why, since
#define CUDART_REFUSE(name, since, why) kiln_front_refuse name, why, since
#define CUDART_ONLY_12(name, since) kiln_front_only_12 name, since
#define CUDART_ONLY_12_NOW(name, since, on_13) kiln_front_only_12_now name, on_13, since
#define CUDART_FRONT(name, since)
#include "cudart.def"

#define GPU_LIBRARY(name, library, stem, status, out) \
  kiln_front_library name, library, stem, status, kiln_refuse_library_##out
#include "gpu_libraries.def"

  .section .note.GNU-stack, "", %progbits
