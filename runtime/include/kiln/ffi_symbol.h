// SPDX-License-Identifier: Apache-2.0
// How does an op get a symbol of its own name? TVM-FFI finds functions by dlsym("__tvm_ffi_NAME"),
// and the name of an op is in a text that the preprocessor cannot read. So the compiler packs it
// into numbers, and a macro of the assembler turns them back into letters.
#pragma once

#include <kiln/op_name.h>

namespace kiln {
namespace detail {

struct OpRecord;
int call_from_ffi(OpRecord*, const void* arguments, int32_t count, void* result);

// The letters of a name, eight in a word. A longer name has no symbol: the assembler nests its
// macros at most 100 deep, and the name takes a level per letter.
struct NameWords {
  static constexpr int kMost = 64;
  uint64_t words[kMost / 8 + 1] = {};
  constexpr NameWords(NameInText name) {
    for (int i = 0; i < name.size && name.size <= kMost; i++)
      words[i / 8] |= static_cast<uint64_t>(static_cast<unsigned char>(name.begin[i]))
                      << (8 * (i % 8));
  }
};

}  // namespace detail
}  // namespace kiln

#define KILN_FFI_IF(letter) \
  ".if kiln_letter == '" #letter "\n kiln_symbol \\target, \\name\\()" #letter "\n .endif\n"
// clang-format off
#define KILN_FFI_LETTERS \
  KILN_FFI_IF(a) KILN_FFI_IF(b) KILN_FFI_IF(c) KILN_FFI_IF(d) KILN_FFI_IF(e) KILN_FFI_IF(f) \
  KILN_FFI_IF(g) KILN_FFI_IF(h) KILN_FFI_IF(i) KILN_FFI_IF(j) KILN_FFI_IF(k) KILN_FFI_IF(l) \
  KILN_FFI_IF(m) KILN_FFI_IF(n) KILN_FFI_IF(o) KILN_FFI_IF(p) KILN_FFI_IF(q) KILN_FFI_IF(r) \
  KILN_FFI_IF(s) KILN_FFI_IF(t) KILN_FFI_IF(u) KILN_FFI_IF(v) KILN_FFI_IF(w) KILN_FFI_IF(x) \
  KILN_FFI_IF(y) KILN_FFI_IF(z) KILN_FFI_IF(A) KILN_FFI_IF(B) KILN_FFI_IF(C) KILN_FFI_IF(D) \
  KILN_FFI_IF(E) KILN_FFI_IF(F) KILN_FFI_IF(G) KILN_FFI_IF(H) KILN_FFI_IF(I) KILN_FFI_IF(J) \
  KILN_FFI_IF(K) KILN_FFI_IF(L) KILN_FFI_IF(M) KILN_FFI_IF(N) KILN_FFI_IF(O) KILN_FFI_IF(P) \
  KILN_FFI_IF(Q) KILN_FFI_IF(R) KILN_FFI_IF(S) KILN_FFI_IF(T) KILN_FFI_IF(U) KILN_FFI_IF(V) \
  KILN_FFI_IF(W) KILN_FFI_IF(X) KILN_FFI_IF(Y) KILN_FFI_IF(Z) KILN_FFI_IF(0) KILN_FFI_IF(1) \
  KILN_FFI_IF(2) KILN_FFI_IF(3) KILN_FFI_IF(4) KILN_FFI_IF(5) KILN_FFI_IF(6) KILN_FFI_IF(7) \
  KILN_FFI_IF(8) KILN_FFI_IF(9) KILN_FFI_IF(_) KILN_FFI_IF(.)
// clang-format on

// Each level takes a letter off the words and calls itself with a longer name; the last one, where
// no letter is left, makes the symbol. Weak, because two files may use one name: the library says
// so itself when it is loaded.
#define KILN_FFI_ASSEMBLY(function)                                           \
  ".macro kiln_symbol target, name\n"                                         \
  " .set kiln_letter, (kiln_w0 >> kiln_shift) & 255\n"                        \
  " .set kiln_shift, (kiln_shift + 8) & 63\n"                                 \
  " .if kiln_shift == 0\n"                                                    \
  "  .set kiln_w0, kiln_w1\n .set kiln_w1, kiln_w2\n .set kiln_w2, kiln_w3\n" \
  "  .set kiln_w3, kiln_w4\n .set kiln_w4, kiln_w5\n .set kiln_w5, kiln_w6\n" \
  "  .set kiln_w6, kiln_w7\n .set kiln_w7, 0\n"                               \
  " .endif\n"                                                                 \
  " .if kiln_letter == 0\n"                                                   \
  "  .weak __tvm_ffi_\\name\n"                                                \
  "  .set __tvm_ffi_\\name, \\target\n"                                       \
  " .else\n" KILN_FFI_LETTERS                                                 \
  " .endif\n"                                                                 \
  ".endm\n"                                                                   \
  ".set kiln_shift, 0\n"                                                      \
  ".set kiln_w0, (%c0 & 0xffffffff) | (%c1 << 32)\n"                          \
  ".set kiln_w1, (%c2 & 0xffffffff) | (%c3 << 32)\n"                          \
  ".set kiln_w2, (%c4 & 0xffffffff) | (%c5 << 32)\n"                          \
  ".set kiln_w3, (%c6 & 0xffffffff) | (%c7 << 32)\n"                          \
  ".set kiln_w4, (%c8 & 0xffffffff) | (%c9 << 32)\n"                          \
  ".set kiln_w5, (%c10 & 0xffffffff) | (%c11 << 32)\n"                        \
  ".set kiln_w6, (%c12 & 0xffffffff) | (%c13 << 32)\n"                        \
  ".set kiln_w7, (%c14 & 0xffffffff) | (%c15 << 32)\n"                        \
  ".if kiln_w0 != 0\n kiln_symbol " function                                  \
  ", \n.endif\n"                                                              \
  ".purgem kiln_symbol\n"

// In two halves: as an operand of assembly x86-64 takes no number of more than 32 bits.
#define KILN_FFI_WORD(n) \
  "i"(static_cast<int32_t>(name.words[n])), "i"(static_cast<int32_t>(name.words[n] >> 32))

// A function of its own for each op, since the caller gives no context. `names` has the name of the
// op, `id` makes the function's name unique in its file.
#define KILN_FFI_FUNCTION(names, record, id)                                                       \
  extern "C" {                                                                                     \
  __attribute__((used, noinline)) static int KILN_JOIN(kiln_ffi_,                                  \
                                                       id)(void*, const void* arguments,           \
                                                           int32_t count, void* result) {          \
    constexpr ::kiln::detail::NameWords name{names::name};                                         \
    asm volatile(KILN_FFI_ASSEMBLY("kiln_ffi_" KILN_TEXT(id))::KILN_FFI_WORD(0), KILN_FFI_WORD(1), \
                 KILN_FFI_WORD(2), KILN_FFI_WORD(3), KILN_FFI_WORD(4), KILN_FFI_WORD(5),           \
                 KILN_FFI_WORD(6), KILN_FFI_WORD(7));                                              \
    return ::kiln::detail::call_from_ffi(&record, arguments, count, result);                       \
  }                                                                                                \
  }
