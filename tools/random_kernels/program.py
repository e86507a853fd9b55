# SPDX-License-Identifier: Apache-2.0
"""A program of random kernels: it launches each in blocks of several shapes and prints a line for
each shape, with a hash of every array."""

from __future__ import annotations

from collections.abc import Iterable

from .kernel import BINS, Kernel
from .words import ELEMENTS, INT, TYPES, UNSIGNED, UNSIGNED_LONG

MOST_THREADS = 40 * 256
INPUT = 6 * ELEMENTS
# Blocks of rows, of columns, of halves of warps; the last two have a warp that is not whole.
SHAPES = [
    "64, 1, 1",
    "16, 16, 1",
    "8, 8, 1",
    "32, 4, 1",
    "4, 4, 8",
    "128, 1, 1",
    "32, 8, 1",
    "40, 1, 1",
    "24, 4, 1",
    "1, 1, 1",
]
WHOLE_SHAPES = 7

HEAD = """// Written by tools/random-kernels.
#ifndef ON_HOST
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

struct Point {
  float x, y, z;
  int w;
};
struct Shape {
  int rows, columns;
  float scale;
};
#define GX (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define GY (int)(blockIdx.y * blockDim.y + threadIdx.y)
#define GZ (int)(blockIdx.z * blockDim.z + threadIdx.z)

#ifndef ON_HOST
#define LAUNCH(kernel, grid, block) kernel<<<grid, block>>>
// Small integers are reached through 32 bits, where C++ leaves the result open.
template <class T, class S>
__device__ T as(S value) {
  if constexpr (sizeof(T) < 4) return static_cast<T>(static_cast<int>(value));
  return static_cast<T>(value);
}
#endif
"""

# {arrays} are declared, reset and printed by lines of their own.
SUPPORT = """
static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\\n", cudaGetErrorString(error));
  std::exit(1);
}

static uint64_t drawn() {
  static uint64_t state = 88172645463325252ull;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

template <class T>
static T value() {
  const uint64_t x = drawn();
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x % 5 == 0 ? x >> 20 : x % 5 == 1 ? (x >> 8) % 7 - 3 : (x >> 8) % 100);
  if (x % 8 == 0) {  // any bits, those of a NaN too
    T any;
    const uint64_t bits = drawn();
    std::memcpy(&any, &bits, sizeof any);
    return any;
  }
  const float special[] = {0.0f, 1e-40f, 1.0f / 0.0f, 1e30f};
  const float plain = static_cast<float>(static_cast<int>((x >> 8) % 20001) - 10000) / 64;
  return static_cast<T>(x % 16 < 4 ? special[x % 16] : plain);
}

template <class T>
static bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) return false;
  const auto plain = static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(value);
  return plain != plain;
}

template <class T>
struct Array {
  explicit Array(size_t count) : host(count) {
    for (T& each : host) each = value<T>();
    check(cudaMalloc(reinterpret_cast<void**>(&at), count * sizeof(T)));
    reset();
  }
  size_t bytes() const { return host.size() * sizeof(T); }
  void reset() { check(cudaMemcpy(at, host.data(), bytes(), cudaMemcpyHostToDevice)); }
  // `nans`: whether the bits of a NaN count, or only that it is one.
  void print(const char* name, bool nans) const {
    std::vector<T> now(host.size());
    check(cudaMemcpy(now.data(), at, bytes(), cudaMemcpyDeviceToHost));
    uint64_t hash = 1469598103934665603ull;
    for (const T& each : now) {
      uint64_t bits = 0;
      std::memcpy(&bits, &each, sizeof each);
      if (!nans && is_nan(each)) bits = 1;
      hash = (hash ^ bits) * 1099511628211ull, hash ^= hash >> 29;
    }
    std::printf(" %s=%06llx", name, static_cast<unsigned long long>(hash & 0xffffff));
  }
  std::vector<T> host;
  T* at = nullptr;
};
"""


def arrays() -> list[tuple[str, str, int, bool]]:
    """Type, name, number of elements, and whether a kernel changes it; in the order of a kernel's
    parameters."""
    out = [(t.name, f"in_{t.short}", INPUT, False) for t in TYPES]
    for t in TYPES:
        out += [(t.name, f"out_{t.short}", MOST_THREADS, True)]
        out += [(t.name, f"wide_{t.short}", 4 * MOST_THREADS, True)]
    out += [(UNSIGNED.name, name, 64, True) for name in BINS]
    out += [(UNSIGNED.name, "own", 4 * 16384, True)]
    out += [(INT.name, "least", 64, True), (INT.name, "greatest", 64, True)]
    return [*out, (UNSIGNED_LONG.name, "long_bins", 64, True)]


def program_text(kernels: Iterable[Kernel]) -> str:
    kernels = list(kernels)
    known = arrays()
    changed = [name for _, name, _, is_changed in known if is_changed]
    fixed = [f"{k * 37 % 64 / 8 - 2}f" for k in range(64)]
    lines = [HEAD, f"__constant__ float fixed_f[64] = {{{', '.join(fixed)}}};"]
    lines += [
        f"__constant__ int fixed_i[64] = {{{', '.join(str(k * k - 99) for k in range(64))}}};"
    ]
    lines += [*(kernel.text() for kernel in kernels), SUPPORT]
    lines += ["int main(int, char** words) {"]
    lines += ["  const bool nans = std::atoi(words[1]) != 0;"]
    lines += ["  const int blocks = std::atoi(words[2]), launches = std::atoi(words[3]);"]
    lines += [f"  const dim3 shapes[] = {{{', '.join(f'{{{each}}}' for each in SHAPES)}}};"]
    lines += ["  const int counts[] = {13, 0, 5, 36, 21, 2, 17, 9};"]
    lines += [f"  Array<{kind}> {name}({count});" for kind, name, count, _ in known]
    given = ", ".join(f"{name}.at" for _, name, _, _ in known)
    for kernel in kernels:
        shapes = WHOLE_SHAPES if kernel.is_whole else len(SHAPES)
        lines += [f"  for (int s = 0; s < {shapes}; ++s) {{"]
        lines += ["    const int threads = shapes[s].x * shapes[s].y * shapes[s].z;"]
        used = [name for name in changed if name in kernel.names()]
        lines += [f"    {' '.join(f'{name}.reset();' for name in used)}"]
        lines += ["    for (int l = 0; l < launches; ++l)"]
        grid = {
            1: "dim3(blocks)",
            2: "(s & 1 ? dim3((blocks + 1) / 2, 2) : dim3(2, (blocks + 1) / 2))",
            3: "(s & 1 ? dim3((blocks + 3) / 4, 2, 2) : dim3(2, 2, (blocks + 3) / 4))",
        }[kernel.dimensions]
        lines += [
            f"      LAUNCH({kernel.name}, {grid}, shapes[s])({given}, counts[(s + l * 3) % 8],"
        ]
        lines += ["          blocks * threads - 5, 0.75f, Shape{7 + s, 21 + l, 1.25f});"]
        lines += ["    check(cudaDeviceSynchronize());"]
        nans = "false" if kernel.is_plain else "nans"
        lines += [f'    std::printf("{kernel.name} %d", s);']
        lines += [f'    {name}.print("{name}", {nans});' for name in used]
        lines += ['    std::printf("\\n");', "  }"]
    return "\n".join([*lines, "}", ""])
