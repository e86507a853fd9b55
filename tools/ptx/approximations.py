# SPDX-License-Identifier: Apache-2.0
"""How far are approximations and matrix products from the right value, on a GPU and on the engine?
Measured, for the docs."""

from __future__ import annotations

import numpy as np
from gpu import GpuError

THREADS = 256


def unary(instruction: str, threads: int) -> str:
    return f""".visible .entry k(.param .u64 memory)
{{
.reg .b64 %at, %base; .reg .b32 %i, %cta, %size; .reg .f32 %a, %b, %d;
ld.param.u64 %base, [memory]; mov.u32 %i, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %size, %ntid.x;
mad.lo.u32 %i, %cta, %size, %i; mad.wide.u32 %at, %i, 4, %base;
ld.global.f32 %a, [%at]; ld.global.f32 %b, [%at+{4 * threads}];
{instruction}
st.global.f32 [%at+{8 * threads}], %d;
ret;
}}
"""


# name, instruction, range of the input (as exponents of 2 when `spread`), what it should give
ROWS = [
    (
        "ex2.approx.ftz.f32",
        "ex2.approx.ftz.f32 %d, %a;",
        (-126.0, 128.0),
        False,
        lambda a, b: np.exp2(a),
    ),
    ("ex2.approx.f32", "ex2.approx.f32 %d, %a;", (-148.0, 128.0), False, lambda a, b: np.exp2(a)),
    (
        "lg2.approx.f32, outside of [0.5, 2]",
        "lg2.approx.f32 %d, %a;",
        (1, 127),
        True,
        lambda a, b: np.log2(a),
    ),
    (
        "sin.approx.f32, [-pi, pi]",
        "sin.approx.f32 %d, %a;",
        (-3.14159, 3.14159),
        False,
        lambda a, b: np.sin(a),
    ),
    (
        "cos.approx.f32, [-pi, pi]",
        "cos.approx.f32 %d, %a;",
        (-3.14159, 3.14159),
        False,
        lambda a, b: np.cos(a),
    ),
    ("tanh.approx.f32", "tanh.approx.f32 %d, %a;", (-9.0, 9.0), False, lambda a, b: np.tanh(a)),
    ("rcp.approx.ftz.f32", "rcp.approx.ftz.f32 %d, %a;", (-125, 125), True, lambda a, b: 1 / a),
    ("rcp.approx.f32", "rcp.approx.f32 %d, %a;", (-125, 125), True, lambda a, b: 1 / a),
    (
        "rsqrt.approx.f32",
        "rsqrt.approx.f32 %d, %a;",
        (-125, 127),
        True,
        lambda a, b: 1 / np.sqrt(a),
    ),
    ("sqrt.approx.f32", "sqrt.approx.f32 %d, %a;", (-125, 127), True, lambda a, b: np.sqrt(a)),
    ("div.approx.f32", "div.approx.f32 %d, %a, %b;", (-60, 60), True, lambda a, b: a / b),
    ("div.full.f32", "div.full.f32 %d, %a, %b;", (-60, 60), True, lambda a, b: a / b),
]


def ulps(got: np.ndarray, right: np.ndarray) -> np.ndarray:
    spacing = np.exp2(
        np.maximum(np.floor(np.log2(np.maximum(np.abs(right), 2.0**-149))) - 23, -149)
    )
    return np.abs(got.astype(np.float64) - right) / spacing


def measure_unary(runners: dict, count: int = 1 << 18) -> list[str]:
    chance = np.random.default_rng(7)
    lines = [
        "| instruction | inputs |"
        + "".join(f" {name}: ulp | absolute |" for name in runners)
        + " same bits |"
    ]
    lines.append("|---|---|" + "---|---|" * len(runners) + "---|")
    for name, instruction, (low, high), spread, right in ROWS:
        inputs = []
        for _ in range(2):
            x = chance.uniform(low, high, count)
            inputs.append((np.exp2(x) if spread else x).astype(np.float32))
        wanted = right(inputs[0].astype(np.float64), inputs[1].astype(np.float64))
        memory = inputs[0].tobytes() + inputs[1].tobytes() + bytes(4 * count)
        cells, results = "", []
        for runner in runners.values():
            head = f".version {runner.ptx_version}\n.target sm_90\n.address_size 64\n"
            try:
                out = runner.run(
                    head + unary(instruction, count), memory, THREADS, count // THREADS
                )
            except (RuntimeError, GpuError) as error:
                cells += f" {error} | |"
                continue
            got = np.frombuffer(out, np.float32)[2 * count :]
            cells += (
                f" {ulps(got, wanted).max():.2f} | "
                f"{np.abs(got - wanted)[np.isfinite(wanted)].max():.2e} |"
            )
            results.append(got.view(np.uint32))
        same = f"{(results[0] == results[-1]).mean():.1%}" if len(results) > 1 else "-"
        kind = f"2^{low} to 2^{high}" if spread else f"{low:g} to {high:g}"
        lines.append(f"| {name} | {kind} |{cells} {same} |")
    return lines


# name, modifiers, k, elements of a register, their type, and over how many powers of two they are
# spread
PRODUCTS = [
    (f"{shape} {kind}, 2^{spread}", f"{shape}.row.col.f32.{kind}.{kind}.f32", k, each, kind, spread)
    for spread in (0, 12)
    for shape, k, each, kind in [
        ("m16n8k16", 16, 2, "f16"),
        ("m16n8k16", 16, 2, "bf16"),
        ("m16n8k8", 8, 1, "tf32"),
        ("m16n8k32", 32, 4, "e4m3"),
        ("m16n8k32", 32, 4, "e5m2"),
    ]
]
SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}  # bits of the exponent and the mantissa, bias


def product_text(modifiers: str, a: int, b: int) -> str:
    names = (
        [f"%a{i}" for i in range(a)] + [f"%b{i}" for i in range(b)] + [f"%c{i}" for i in range(4)]
    )
    loads = "".join(f"ld.global.b32 {n}, [%at+{4 * i}];\n" for i, n in enumerate(names))
    regs = {letter: ", ".join(n for n in names if n[1] == letter) for letter in "abc"}
    stores = "".join(f"st.global.f32 [%at+{4 * (len(names) + i)}], %d{i};\n" for i in range(4))
    return f""".visible .entry k(.param .u64 memory)
{{
.reg .b64 %at, %base; .reg .b32 %i, %cta, %size, %a<4>, %b<4>; .reg .f32 %c<4>, %d<4>;
ld.param.u64 %base, [memory]; mov.u32 %i, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %size, %ntid.x;
mad.lo.u32 %i, %cta, %size, %i; mad.wide.u32 %at, %i, {4 * (len(names) + 4)}, %base;
{loads}mma.sync.aligned.{modifiers}
  {{%d0, %d1, %d2, %d3}}, {{{regs["a"]}}}, {{{regs["b"]}}}, {{{regs["c"]}}};
{stores}ret;
}}
"""


def small_values(kind: str) -> np.ndarray:
    """Of each byte; what is no number is 0."""
    exponent_bits, mantissa_bits, bias = SMALL[kind]
    byte = np.arange(256)
    exponent = byte >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = (byte & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    value = np.where(
        exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias)
    )
    no_number = (byte & 0x7F) == 0x7F if kind == "e4m3" else exponent == 31
    return np.where(no_number, 0, np.where(byte >= 128, -value, value))


def random_elements(
    chance: np.random.Generator, shape: tuple, kind: str, spread: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bits, and values."""
    x = chance.standard_normal(shape)
    x = (x * np.exp2(chance.uniform(-spread / 2, spread / 2, shape))).astype(np.float32)
    if kind in SMALL:
        values = small_values(kind)
        order = np.argsort(values)
        at = np.searchsorted(values[order], x).clip(0, 255)
        bits = order[at].astype(np.uint32)
        return bits, values[bits]
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16).astype(np.uint32), x.astype(np.float16).astype(
            np.float64
        )
    bits = x.view(np.uint32) & np.uint32(0xFFFF0000 if kind == "bf16" else 0xFFFFE000)
    values = bits.view(np.float32).astype(np.float64)
    return (bits >> 16 if kind == "bf16" else bits), values


def fragments(matrix: np.ndarray, each: int, by_row: bool) -> np.ndarray:
    """[trial, lane, register] of a matrix [trial, row, k] (A) or [trial, k, column] (B)."""
    trials = matrix.shape[0]
    k = matrix.shape[2] if by_row else matrix.shape[1]
    steps = k // (4 * each)
    count = 2 * steps if by_row else steps
    out = np.zeros((trials, 32, count), np.uint32)
    width = np.uint32(32 // each)
    for lane in range(32):
        for r in range(count):
            row, step = (lane // 4 + r % 2 * 8, r // 2) if by_row else (lane // 4, r)
            for e in range(each):
                at = step * 4 * each + lane % 4 * each + e
                element = matrix[:, row, at] if by_row else matrix[:, at, row]
                out[:, lane, r] |= element.astype(np.uint32) << np.uint32(width * e)
    return out


# How far the engine's products may be from an H200's, in 2^-24 of sum abs(a b) + abs(c):
# docs/reference/engine.md.
MOST_APART = 8.0


def measure_products(runners: dict, trials: int = 512) -> tuple[list[str], int]:
    """A table, and how many rows are beyond the bound."""
    chance, beyond = np.random.default_rng(11), 0
    lines = [
        "| mma.sync, spread of the elements |"
        + "".join(f" {name}: error of sum abs(a b) + abs(c), in 2^-24 |" for name in runners)
    ]
    lines[0] += " between them |"
    lines.append("|---|" + "---|" * len(runners) + "---|")
    for name, modifiers, k, each, kind, spread in PRODUCTS:
        a_bits, a = random_elements(chance, (trials, 16, k), kind, spread)
        b_bits, b = random_elements(chance, (trials, k, 8), kind, spread)
        c = chance.standard_normal((trials, 16, 8)).astype(np.float32)
        right, scale = a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c)
        fa, fb = fragments(a_bits, each, True), fragments(b_bits, each, False)
        lane = np.arange(32)
        places = [(lane // 4 + r // 2 * 8, lane % 4 * 2 + r % 2) for r in range(4)]
        fc = np.stack([c[:, rows, columns].view(np.uint32) for rows, columns in places], -1)
        memory = np.concatenate([fa, fb, fc, np.zeros_like(fc)], -1)
        cells, results = "", []
        for runner in runners.values():
            head = f".version {runner.ptx_version}\n.target sm_90\n.address_size 64\n"
            text = head + product_text(modifiers, fa.shape[2], fb.shape[2])
            try:
                after = runner.run(text, memory.tobytes(), 32, trials)
            except (RuntimeError, GpuError) as error:
                cells += f" {error} |"
                continue
            out = np.frombuffer(after, np.uint32).reshape(memory.shape)
            got = np.zeros((trials, 16, 8))
            for r, (rows, columns) in enumerate(places):
                got[:, rows, columns] = out[:, :, memory.shape[2] - 4 + r].copy().view(np.float32)
            cells += f" {(np.abs(got - right) / scale).max() * 2**24:.2f} |"
            results.append(got)
        apart = (
            (np.abs(results[0] - results[-1]) / scale).max() * 2**24 if len(results) > 1 else None
        )
        beyond += apart is not None and apart > MOST_APART
        lines.append(f"| {name} |{cells} {'-' if apart is None else f'{apart:.2f}'} |")
    return [*lines, f"bound {MOST_APART:g}; {beyond} rows beyond it"], beyond
