# SPDX-License-Identifier: Apache-2.0
"""How are the exercises of `kiln learn` solved? What to replace in each file, for the tests."""

from __future__ import annotations

SOLUTIONS: dict[str, list[tuple[str, str]]] = {
    "grid": [
        ("  y[i] = x[i] + 1;", "  if (i < n) y[i] = x[i] + 1;"),
        ("<<<n / 256, 256", "<<<kiln::blocks_for(n, 256), 256"),
    ],
    "timer": [
        (
            "    begin = device.clock()",
            "    device.launch()\n    device.synchronize()\n    begin = device.clock()",
        ),
        (
            "    return (device.clock()",
            "    device.synchronize()\n    return (device.clock()",
        ),
    ],
    "fused": [
        ("out[i] = sqrtf(a[i] + b[i]);", "out[i] = sqrtf(a[i] * a[i] + b[i] * b[i]);"),
        ("  square_kernel<<<blocks, 128, 0, kiln::stream(x)>>>(x.data<const float>(), "
         "a.data<float>(), n);\n", ""),
        ("  square_kernel<<<blocks, 128, 0, kiln::stream(x)>>>(y.data<const float>(), "
         "b.data<float>(), n);\n", ""),
        ("(a.data<float>(), b.data<float>(),", "(x.data<const float>(), y.data<const float>(),"),
        ("kiln::Tensor a = kiln::empty_like(x), b = kiln::empty_like(x), out =",
         "kiln::Tensor out ="),
    ],
    "scale": [
        ("kiln::Tensor scale(const kiln::Tensor& x) { return kiln::empty_like(x); }",
         "kiln::Tensor scale(const kiln::Tensor& x, double by) {\n"
         "  kiln::Tensor y = kiln::empty_like(x);\n"
         "  scale_kernel<<<kiln::blocks_for(x.numel(), 256), 256, 0, kiln::stream(x)>>>(\n"
         "      x.data<const float>(), static_cast<float>(by), y.data<float>(), x.numel());\n"
         "  return y;\n}"),
        ('KILN_OP(scale, "x")', 'KILN_OP(scale, "x, by=2.0")'),
    ],
    "coalesce": [
        ("  int r = blockIdx.x * blockDim.x + threadIdx.x;\n  int c = blockIdx.y;\n",
         "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n  int r = blockIdx.y;\n"),
        ("if (r < height)", "if (c < width)"),
        ("grid(kiln::blocks_for(height, 32), width)", "grid(kiln::blocks_for(width, 32), height)"),
    ],
    "vector": [
        ("copy_kernel(const float* x, float* y, int n)",
         "copy_kernel(const float4* x, float4* y, int n)"),
        ("int n = x.numel();", "int n = x.numel() / 4;"),
        ("(x.data<const float>(),", "(\n      reinterpret_cast<const float4*>("
         "x.data<const float>()),"),
        ("y.data<float>(), n);", "reinterpret_cast<float4*>(y.data<float>()), n);"),
    ],
    "banks": [("tile[32][32];", "tile[32][33];")],
    "barrier": [
        ("  if (i < n) {\n    all[i] = x[i];\n    __syncthreads();\n"
         "    y[i] = all[n - 1 - i];\n  }\n",
         "  if (i < n) all[i] = x[i];\n  __syncthreads();\n  if (i < n) y[i] = all[n - 1 - i];\n"),
    ],
    "race": [("counts[x[i]] += 1;", "atomicAdd(&counts[x[i]], 1);")],
    "double": [("2.1 * x[i] + 1.0;", "2.1f * x[i] + 1.0f;")],
    "define": [("part[128]", "part[BLOCK]"), ("half = 64;", "half = BLOCK / 2;")],
    "fake": [('KILN_OP(pairs, "x");', 'KILN_OP(pairs, "x").fake("f32[x.shape[0], 2]");')],
}  # fmt: skip


def solved(name: str, text: str) -> str:
    for old, new in SOLUTIONS[name]:
        assert old in text, f"{name}: {old}"
        text = text.replace(old, new)
    return text
