# SPDX-License-Identifier: Apache-2.0
"""Which kernels does tools/launch-values try? Each computes one value of two or three others, such
as %ctaid.y or a parameter, and stores it at its own place in an array of one to three dimensions.
The pairs of values go by turns to the operations, so that each operation sees other pairs."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

SOURCES = {
    **{f"tid_{d}": f"threadIdx.{d}" for d in "xyz"},
    **{f"ctaid_{d}": f"blockIdx.{d}" for d in "xyz"},
    **{f"ntid_{d}": f"blockDim.{d}" for d in "xyz"},
    **{f"nctaid_{d}": f"gridDim.{d}" for d in "xyz"},
    **{d: d for d in "xyz"},
    "lane": "lane_of_warp()",
    "warp": "warp_of_block()",
    "p": "p",
    "q": "q",
    "row": "(y * p + z)",
    "column": "(x * q)",
    "pair": "(blockIdx.z * gridDim.y + blockIdx.y)",
    "loaded": "in[threadIdx.x & 63]",
    "loaded_row": "in[(y + z) & 63]",
    "constant": "12345u",
}
# What increases along x, and what may be kept from block to block. Half of the kernels are products
# of one of each: the engine goes on from block to block with these.
ALONG_X = ["x", "x", "ctaid_x", "tid_x", "column"]
KEPT = ["y", "y", "z", "ctaid_y", "ctaid_y", "ctaid_z", "pair", "row", "p", "q", "ntid_x"]
KEPT += ["nctaid_x", "loaded_row"]
PRODUCTS = ["mul", "mad", "mad_add", "chain", "shl", "mul_wide", "mul_wide_signed", "mad_wide"]
PRODUCTS += ["widen_signed"]


@dataclass(frozen=True)
class Type:
    name: str
    bits: int
    is_float: bool = False

    @property
    def is_signed(self) -> bool:
        return not self.is_float and not self.name.startswith("unsigned")

    @property
    def wrapping(self) -> str:
        """The type in which arithmetic wraps around without being undefined."""
        return "unsigned long long" if self.bits == 64 else "unsigned"


INT, UNSIGNED = Type("int", 32), Type("unsigned", 32)
LONG, UNSIGNED_LONG = Type("long long", 64), Type("unsigned long long", 64)
SMALL = [Type("signed char", 8), Type("unsigned char", 8), Type("short", 16)]
SMALL += [Type("unsigned short", 16)]
FLOAT, DOUBLE = Type("float", 32, True), Type("double", 64, True)
WORDS = [INT, UNSIGNED]
WHOLE = [*WORDS, LONG, UNSIGNED_LONG, *SMALL]
FLOATS = [FLOAT, DOUBLE]

# Of each type: {T} and {U} are its name and Type.wrapping; {W} its width less one, 31 at least.
ANY_WHOLE = {
    "add": "({T})(({U})a + ({U})b)",
    "sub": "({T})(({U})a - ({U})b)",
    "mul": "({T})(({U})a * ({U})b)",
    "mad": "({T})(({U})a * ({U})b + ({U})c)",
    "mad_add": "({T})((({U})a + ({U})b) * ({U})c + ({U})a)",
    "div": "({T})(a / ({T})((b & 63) | 1))",
    "rem": "({T})(a % ({T})((b & 63) | 1))",
    "div_param": "({T})(a / ({T})((p & 63) | 1))",
    "rem_const": "({T})(a % ({T})13)",
    "and": "({T})(a & b)",
    "or_not": "({T})(a | ~b)",
    "xor": "({T})(a ^ b)",
    "shl": "({T})(({U})a << (b & {W}))",
    "shr": "({T})(a >> (b & {W}))",
    "shl_const": "({T})(({U})a << 5)",
    "min": "({T})min(a, b)",
    "max": "({T})max(a, b)",
    "less": "({T})(a < b ? c : a)",
    "equal": "({T})(a == b ? c : ({T})(c + 1))",
    "at_least": "({T})(a >= b)",
    "select": "({T})((a & 1) ? b : c)",
    "to_float": "(float)a * 0.5f + (float)b",
    "to_double": "(double)a - (double)b * 0.25",
    "less_than": "a < b",
    "load": "in[(({U})a * ({U})b + ({U})c) & 63]",
    "chain": "({T})((({U})a * ({U})b) + (({U})b << 3) - (({U})c * 7))",
}
OF_WORDS = {
    "mul_wide_signed": "(long long)(int)a * (int)b",
    "mul_wide": "(unsigned long long)(unsigned)a * (unsigned)b",
    "mad_wide": "(unsigned long long)(unsigned)a * (unsigned)b + (unsigned)c",
    "widen_signed": "(long long)(int)((unsigned)a * (unsigned)b)",
    "widen": "(unsigned long long)((unsigned)a - (unsigned)b)",
    "widen_shift": "((unsigned long long)((unsigned)a + (unsigned)b) << 12) * c",
    "narrow": "(unsigned char)((unsigned)a + b) * 3 + (short)((unsigned)a * 77)",
    "mul_hi": "__mulhi((int)((unsigned)a * 65537u), (int)((unsigned)b * 65539u))",
    "umul_hi": "__umulhi((unsigned)a * 65537u, (unsigned)b * 65539u)",
    "mul_24": "__mul24((int)a, (int)b)",
    "umul_24": "__umul24((unsigned)a, (unsigned)b) + c",
    "dp4a": "__dp4a((int)(a * 0x01030507u), (int)(b * 0x0b0d1113u), (int)c)",
    "udp4a": "__dp4a((unsigned)a * 0x01030507u, (unsigned)b * 0x0b0d1113u, (unsigned)c)",
    "sad": "__sad((int)a, (int)b, (unsigned)c)",
    "shl_any": "shl_any((unsigned)a, (unsigned)b)",
    "shr_any": "shr_any((int)(a * 0x9e3779b9u), (unsigned)b)",
    "funnel": "__funnelshift_l((unsigned)a, (unsigned)b, (unsigned)c)",
    "byte_perm": "__byte_perm((unsigned)a, (unsigned)b, (unsigned)c)",
    "popc": "__popc((unsigned)a * (unsigned)b) + __clz((int)c)",
    "half_add": "__hadd((int)a, (int)b) ^ __rhadd((int)a, (int)c)",
}
OF_LONGS = {
    "mul_hi": "__umul64hi((unsigned long long)a * 0x100000001ull, (unsigned long long)b << 40)",
    "narrow": "(int)(((unsigned long long)a * (unsigned long long)b) >> 3)",
    "popc": "__popcll((unsigned long long)a * (unsigned long long)b)",
    "far": "(({U})a << 32) * ({U})b + ({U})c",
}
OF_FLOATS = {
    "add": "a + b",
    "sub": "a - b * 3",
    "mul": "a * b",
    "mad": "a * b + c",
    "div": "a / (b + 1)",
    "min": "{min}(a, b)",
    "max": "{max}(a, b - c)",
    "less": "a < b ? a : c",
    "fma": "{fma}(a, b, c)",
    "root": "{sqrt}(a * b + c)",
    "floor": "{floor}(a * ({T})0.37) - b",
    "to_int": "as<int>(a * ({T})0.37 - b)",
    "to_unsigned": "as<unsigned>(a - b)",
    "to_long": "as<long long>(a * b * 1000)",
    "to_other": "({other})a * ({other})0.1 + ({other})b",
}
FLOAT_WORDS = {
    FLOAT: {"min": "fminf", "max": "fmaxf", "fma": "fmaf", "sqrt": "sqrtf", "floor": "floorf",
            "other": "double"},
    DOUBLE: {"min": "fmin", "max": "fmax", "fma": "fma", "sqrt": "sqrt", "floor": "floor",
             "other": "float"},
}  # fmt: skip

# The type of the result where it is not that of the operands.
RESULTS = {
    **dict.fromkeys(["to_float"], FLOAT),
    **dict.fromkeys(["to_double"], DOUBLE),
    **dict.fromkeys(["mul_wide", "mad_wide", "widen", "widen_shift"], UNSIGNED_LONG),
    **dict.fromkeys(["mul_wide_signed", "widen_signed", "to_long"], LONG),
    **dict.fromkeys(["to_int", "narrow", "less_than"], INT),
    **dict.fromkeys(["to_unsigned", "load"], UNSIGNED),
}

# Where a thread's element is, by dimensions of the grid: w, h and d are the extents of the whole.
PLACES = {
    1: ["x", "(size_t)x", "w - 1 - x"],
    2: ["y * w + x", "(size_t)y * w + x", "x * h + y", "y * (gridDim.x * blockDim.x) + x"],
    3: [
        "(z * h + y) * w + x",
        "((size_t)z * h + y) * w + x",
        "(y * d + z) * w + x",
        "(x * h + y) * d + z",
        "((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) *"
        " (blockDim.x * blockDim.y * blockDim.z) +"
        " (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x",
    ],
}


def operations() -> list[tuple[str, Type, str]]:
    """Name, type and expression of each operation."""
    out = []
    for kind in WHOLE:
        known = dict(ANY_WHOLE)
        known |= OF_WORDS if kind in WORDS else OF_LONGS if kind.bits == 64 else {}
        words = {"T": kind.name, "U": kind.wrapping, "W": max(kind.bits, 32) - 1}
        out += [(name, kind, text.format(**words)) for name, text in known.items()]
    for kind in FLOATS:
        words = {"T": kind.name, **FLOAT_WORDS[kind]}
        out += [(name, kind, text.format(**words)) for name, text in OF_FLOATS.items()]
    return out


@dataclass(frozen=True)
class Kernel:
    name: str
    what: str  # for a message
    dimensions: int  # of the grids that it runs in
    result: Type
    text: str


def kernels(seed: int, count: int) -> list[Kernel]:
    draw = random.Random(seed)
    every = list(itertools.product(SOURCES, SOURCES))
    along = [each for pair in itertools.product(ALONG_X, KEPT) for each in (pair, pair[::-1])]
    draw.shuffle(every)
    draw.shuffle(along)
    known = operations()
    products = [each for each in known if each[0] in PRODUCTS and each[1].bits >= 32]
    draw.shuffle(products)
    out = []
    for k in range(count):
        turn = k // 2
        if k % 2:
            operation, pairs = products[turn % len(products)], along
        else:  # a program has operations of all types; the next one begins with others
            operation, pairs = known[(k * len(known) // count + seed) % len(known)], every
        out.append(kernel(draw, f"k{k}", *operation, *pairs[turn % len(pairs)]))
    return out


def kernel(
    draw: random.Random, name: str, operation: str, kind: Type, value: str, a: str, b: str
) -> Kernel:
    c = draw.choice(list(SOURCES))
    dimensions = draw.choice([1, 2, 2, 2, 3, 3, 3])
    place = draw.choice(PLACES[dimensions])
    guard = draw.choice(["", "", "if (x + cut >= w) return;", "if (x < w - cut && y < h)"])
    index = draw.choice(["int", "unsigned"])
    operands = {"a": SOURCES[a], "b": SOURCES[b], "c": SOURCES[c]}
    lines = [f"__global__ void {name}(PARAMETERS) {{"]
    for d in "xyz":
        lines += [f"  const {index} {d} = blockIdx.{d} * blockDim.{d} + threadIdx.{d};"]
    for each, text in operands.items():
        lines += [f"  const {kind.name} {each} = ({kind.name})({text});"]
    result = RESULTS.get(operation, kind)
    lines += [f"  {guard}", f"  static_cast<{result.name}*>(out)[{place}] = {value};", "}"]
    what = f"{operation} of {kind.name}: {a}, {b}, {c}"
    return Kernel(name, what, dimensions, result, "\n".join(lines))


HEAD = r"""// Written by tools/launch-values.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define PARAMETERS                                                                       \
  void *out, const unsigned *__restrict__ in, int w, int h, int d, unsigned p, unsigned q, \
      int cut

#ifndef ON_HOST
#define LAUNCH(kernel, grid, block) kernel<<<grid, block>>>
template <class T, class S>
__device__ T as(S value) {
  return static_cast<T>(value);
}
__device__ unsigned lane_of_warp() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ unsigned warp_of_block() {
  unsigned warp;
  asm("mov.u32 %0, %%warpid;" : "=r"(warp));
  return warp;
}
__device__ unsigned shl_any(unsigned a, unsigned by) {
  unsigned out;
  asm("shl.b32 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(by));
  return out;
}
__device__ int shr_any(int a, unsigned by) {
  int out;
  asm("shr.s32 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(by));
  return out;
}
#endif
"""

# By dimensions: the grid and the block. The largest launches have 400,000 threads, most fewer.
SHAPES = {
    1: ["{4096, 1, 1}, {64, 1, 1}", "{1, 1, 1}, {1024, 1, 1}", "{700, 1, 1}, {40, 1, 1}",
        "{33, 1, 1}, {256, 1, 1}", "{2003, 1, 1}, {1, 1, 1}", "{100, 1, 1}, {96, 1, 1}"],
    2: ["{64, 100, 1}, {64, 1, 1}", "{3, 700, 1}, {32, 4, 1}", "{20, 20, 1}, {16, 16, 1}",
        "{50, 40, 1}, {8, 8, 1}", "{7, 300, 1}, {40, 1, 1}", "{130, 9, 1}, {24, 3, 1}",
        "{1, 2000, 1}, {64, 1, 1}", "{9, 31, 1}, {128, 2, 1}"],
    3: ["{5, 3, 40}, {64, 1, 1}", "{2, 2, 500}, {8, 8, 2}", "{40, 30, 2}, {16, 4, 1}",
        "{17, 19, 5}, {24, 1, 3}", "{3, 300, 2}, {32, 1, 1}", "{6, 5, 70}, {32, 2, 2}"],
}  # fmt: skip

MAIN = r"""
struct Shape {
  dim3 grid, block;
};
using KernelPointer = void (*)(PARAMETERS);
struct Row {
  KernelPointer kernel;
  int dimensions, bytes;  // of an element
  bool is_float;
};
@TABLE@

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(error));
  std::exit(1);
}

static uint64_t mixed(uint64_t x) {
  x ^= x >> 31, x *= 0x7fb5d329728ea185ull, x ^= x >> 27, x *= 0x81dadef4bc2dd44dull;
  return x ^ x >> 33;
}

// The bits of an element; every NaN is the same one.
static uint64_t bits_at(const unsigned char* out, size_t i, const Row& row) {
  uint64_t bits = 0;
  std::memcpy(&bits, out + i * row.bytes, row.bytes);
  const int fraction = row.bytes == 8 ? 52 : 23;
  const uint64_t nan = row.bytes == 8 ? 0x7ffull : 0xffull;
  const uint64_t of_fraction = bits & ((1ull << fraction) - 1);
  const bool is_nan = row.is_float && (bits >> fraction & nan) == nan && of_fraction;
  return is_nan ? nan << fraction | 1 : bits;
}

// Words: LAUNCHES, how many of each kernel; or LAUNCHES KERNEL LAUNCH, which of them is written to
// standard output element by element, after those before it.
int main(int count, char** words) {
  const int launches = std::atoi(words[1]);
  const int shown = count > 3 ? std::atoi(words[2]) : -1;
  const int last = count > 3 ? std::atoi(words[3]) : -1;
  constexpr size_t kBytes = 420000 * 8;
  unsigned char* out = nullptr;
  unsigned* in = nullptr;
  check(cudaMallocManaged(&out, kBytes));
  check(cudaMallocManaged(&in, 64 * sizeof(unsigned)));
  for (unsigned i = 0; i < 64; ++i) in[i] = i < 32 ? i * 3 : static_cast<unsigned>(mixed(i));
  const unsigned numbers[] = {0, 1, 3, 100, 4096, 65537, 0x7fffffffu, 0x80000000u, 0xfffffff9u};
  const int cuts[] = {0, 5, 0, 33, 1};
  for (int k = 0; k < static_cast<int>(sizeof rows / sizeof *rows); ++k) {
    if (shown >= 0 && k != shown) continue;
    for (int l = 0; l < launches; ++l) {
      const Row& row = rows[k];
      const uint64_t drawn = mixed(@SEED@ * 100003ull + k * 16 + l);
      // Every other launch has the shape of the one before it, and other arguments.
      const uint64_t of_shape = mixed(@SEED@ * 100019ull + k * 16 + (l & ~1));
      const Shape* const shapes = by_dimensions[row.dimensions];
      const Shape& shape = shapes[of_shape % counts[row.dimensions]];
      const dim3 g = shape.grid, b = shape.block;
      const int w = g.x * b.x, h = g.y * b.y, d = g.z * b.z;
      const size_t elements = static_cast<size_t>(w) * h * d;
      const unsigned p = numbers[drawn % 9];
      const unsigned q = (drawn >> 8) % 3 ? (drawn >> 16) % 1000 : drawn >> 20;
      const int cut = cuts[(drawn >> 12) % 5];
      std::memset(out, 0x5c, elements * row.bytes);
      LAUNCH(row.kernel, g, b)(out, in, w, h, d, p, q, cut);
      check(cudaGetLastError());
      check(cudaDeviceSynchronize());
      uint64_t hash = 1469598103934665603ull;
      for (size_t i = 0; i < elements; ++i)
        hash = (hash ^ bits_at(out, i, row)) * 1099511628211ull, hash ^= hash >> 29;
      if (shown < 0) std::printf("%d %d %016llx\n", k, l, static_cast<unsigned long long>(hash));
      if (shown < 0 || l != last) continue;
      std::printf("grid (%u, %u, %u), block (%u, %u, %u), p = %u, q = %u, cut = %d\n", g.x, g.y,
                  g.z, b.x, b.y, b.z, p, q, cut);
      for (size_t i = 0; i < elements; ++i)
        std::printf("%llx\n", static_cast<unsigned long long>(bits_at(out, i, row)));
      return 0;
    }
  }
  return 0;
}
"""


def program_text(seed: int, of: list[Kernel]) -> str:
    table = []
    for dimensions, shapes in SHAPES.items():
        listed = "}, {".join(shapes)
        table += [f"static const Shape shapes{dimensions}[] = {{{{{listed}}}}};"]
    table += ["static const Shape* const by_dimensions[] = {nullptr, shapes1, shapes2, shapes3};"]
    counts = ", ".join(str(len(each)) for each in SHAPES.values())
    table += [f"static const unsigned counts[] = {{0, {counts}}};"]
    rows = ", ".join(
        f"{{{each.name}, {each.dimensions}, {each.result.bits // 8}, "
        f"{'true' if each.result.is_float else 'false'}}}"
        for each in of
    )
    table += [f"static const Row rows[] = {{{rows}}};"]
    main = MAIN.replace("@TABLE@", "\n".join(table)).replace("@SEED@", str(seed))
    return "\n".join([HEAD, *(each.text for each in of), main])
