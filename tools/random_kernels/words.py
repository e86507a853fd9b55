# SPDX-License-Identifier: Apache-2.0
"""Which types, operations and loops do random kernels have? These are templates: what stands in
braces is filled in by kernel.py.

  {e}  an expression of the template's own type     {T}  the name of that type
  {U}  the unsigned type of its width, 32 at least  {W}  its width, less one
  {u} {i} {f}  of unsigned, int, float              {o}  of another type of the kernel
  {l} {d}      of long long, double
  {c}  a condition                                  {n}  a small number
  {s}  an amount to shift by                        {p}  a constant that selects bytes
"""

from __future__ import annotations

from dataclasses import dataclass

ELEMENTS = (
    4096  # of an input; there are as many again behind them, which indices with offsets reach
)


@dataclass(frozen=True)
class Type:
    name: str
    short: str  # as it stands in the names of arrays
    bits: int
    is_float: bool = False

    @property
    def is_small_float(self) -> bool:
        return self.is_float and self.bits == 16

    @property
    def has_operators(self) -> bool:
        return not self.is_small_float


INT, UNSIGNED = Type("int", "i", 32), Type("unsigned", "u", 32)
LONG, UNSIGNED_LONG = Type("long long", "l", 64), Type("unsigned long long", "ul", 64)
FLOAT, DOUBLE = Type("float", "f", 32, True), Type("double", "d", 64, True)
HALF, BFLOAT = Type("__half", "h", 16, True), Type("__nv_bfloat16", "b", 16, True)
SMALL_INTS = [
    Type("short", "s", 16),
    Type("unsigned short", "us", 16),
    Type("signed char", "c", 8),
    Type("unsigned char", "uc", 8),
]
COMMON = [INT, UNSIGNED, FLOAT]
OTHERS = [DOUBLE, HALF, BFLOAT, LONG, UNSIGNED_LONG, *SMALL_INTS]
TYPES = [*COMMON, *OTHERS]
VECTORS = [
    ("float4", FLOAT, 4),
    ("float2", FLOAT, 2),
    ("int4", INT, 4),
    ("uint2", UNSIGNED, 2),
    ("double2", DOUBLE, 2),
    ("uchar4", SMALL_INTS[3], 4),
    ("short2", SMALL_INTS[0], 2),
]

INTEGER_CONSTANTS = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 100, 127, 128, 255, 256, 0xFFFF]
INTEGER_CONSTANTS += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x01010101, 0x9E3779B9]
FLOAT_CONSTANTS = [
    "0.0",
    "1.0",
    "-1.0",
    "0.5",
    "2.0",
    "3.25",
    "-7.5",
    "1e-3",
    "1e10",
    "1e-39",
    "0.1",
]


def calls(names: str, *operands: str) -> list[str]:
    return [f"{name}({', '.join(operands)})" for name in names.split()]


# Of every integer. Arithmetic is unsigned, for which C++ defines what an overflow gives.
INTEGERS = [
    *["({T})(({U}){e} + ({U}){e})", "({T})(({U}){e} - ({U}){e})", "({T})(({U}){e} * ({U}){e})"] * 2,
    *["({T})({e} & {e})", "({T})({e} | {e})", "({T})({e} ^ {e})", "({T})(~{e})"],
    *["({T})(({U}){e} << {s})", "({T})({e} >> {s})"] * 2,
    *calls("min max", "({T}){e}", "({T}){e}"),
    *["({T})({e} / ({T})(({e} & 63) | 1))", "({T})({e} % ({T}){n})", "({T})({e} / ({T}){n})"],
    *["({T})({c})", "({T})({o})", "({T})({o})"],
]
WORDS = [
    *calls("({T})__popc ({T})__brev ({T})__clz ({T})__ffs", "{e}"),
    *calls("({T})__byte_perm", "{e}", "{e}", "{p}"),
    *calls("({T})__byte_perm", "{e}", "{e}", "{u}"),
    *calls("({T})__funnelshift_l ({T})__funnelshift_rc", "{e}", "{e}", "{s}"),
    *calls("({T})__funnelshift_r ({T})__funnelshift_lc", "{e}", "{e}", "{u}"),
    *calls("({T})__vadd4 ({T})__vsub2 ({T})__vmaxu4 ({T})__vmins2 ({T})__vcmpgtu4", "{e}", "{e}"),
    *calls("({T})__vabsdiffu4 ({T})__vavgu4 ({T})__vaddss4 ({T})__vsetltu4", "{e}", "{e}"),
    "(({e} >> {s}) & {n})",
]
DOUBLE_WORDS = [
    *calls("({T})__popcll ({T})__brevll ({T})__clzll ({T})__ffsll", "{e}"),
    "({T})__umul64hi({e}, {e})",
]
OPERATORS = ["({e} + {e})", "({e} - {e})", "({e} * {e})"]
SMALL_FLOATS = [
    *calls("__hadd __hsub __hmul __hmax __hmin", "{e}", "{e}"),
    *calls("__hneg __habs", "{e}"),
    *["__hfma({e}, {e}, {e})", "({T})(float){f}", "({T})(float)({o})"],
]
HALVES = "__low2float(__hadd2(__halves2half2({e}, {e}), __halves2half2({e}, {e})))"

# Their bits are fixed by the manual, or by C++.
EXACT: dict[Type, list[str]] = {
    INT: [
        *INTEGERS,
        *WORDS,
        *calls("__mulhi __mul24 __rhadd __hadd", "(int){i}", "(int){i}"),
        *calls("__dp4a __dp2a_lo", "(int){i}", "(int){i}", "(int){i}"),
        *["(int)__sad({i}, {i}, {u})", "abs((int){i})"],
    ],
    UNSIGNED: [
        *INTEGERS,
        *WORDS,
        *["__umulhi({e}, {e})", "(unsigned)(((unsigned long long){e} * {e}) >> {s})"],
    ],
    LONG: [*INTEGERS, *DOUBLE_WORDS],
    UNSIGNED_LONG: [*INTEGERS, *DOUBLE_WORDS],
    **dict.fromkeys(SMALL_INTS, INTEGERS),
    FLOAT: [
        *OPERATORS * 4,
        *["fmaf({e}, {e}, {e})"] * 3,
        *calls("fminf fmaxf copysignf __fadd_rz __fmul_ru __fsub_rd", "{e}", "{e}"),
        *calls("fabsf floorf ceilf rintf truncf sqrtf __saturatef roundf -", "{e}"),
        *["({e} / {e})", "__uint_as_float({u})", "(isnan({e}) ? {e} : {e})"],
        *["(float)({o})"] * 2,
    ],
    DOUBLE: [
        *OPERATORS * 3,
        *["fma({e}, {e}, {e})"] * 2,
        *calls("fmin fmax", "{e}", "{e}"),
        *calls("fabs floor ceil rint trunc sqrt -", "{e}"),
        *["({e} / {e})", "(double)({o})", "(double)({o})"],
        *["__longlong_as_double({l})"] * 2,
    ],
    HALF: [*SMALL_FLOATS, f"(__half){HALVES}"],
    BFLOAT: [
        *SMALL_FLOATS,
        f"(__nv_bfloat16){HALVES.replace('half2', 'bfloat162').replace('hadd2', 'hmul2')}",
    ],
}
# The engine's bits are its own, the same interpreted and compiled.
APPROXIMATE: dict[Type, list[str]] = {
    UNSIGNED: ["__float_as_uint({f})"],  # of a NaN too
    LONG: ["__double_as_longlong({d})"],
    UNSIGNED_LONG: ["(unsigned long long)__double_as_longlong({d})"],
    FLOAT: [
        *calls("__expf __logf __sinf __cosf expf logf tanhf rsqrtf exp2f sinf erff cbrtf", "{e}"),
        *calls("powf fmodf __fdividef atan2f hypotf", "{e}", "{e}"),
    ],
    DOUBLE: calls("exp log sin rsqrt tanh erf cbrt", "{e}"),
    HALF: calls("hexp hlog hsqrt hrcp hfloor htrunc", "{e}"),
    BFLOAT: calls("hexp hlog hsqrt hrcp hfloor htrunc", "{e}"),
}

# What C++ leaves open, as text that says what is meant: a float that does not fit into an integer,
# and the sign of a NaN that was computed.
IN_PLAIN = {
    "({T})({o})": "as<{T}>({o})",
    "copysignf({e}, {e})": "copysignf({e}, (float){i})",
}

# Special registers, and sums and products of them: indices are made of these.
AXES = "xyz"
OF_AXES = ["GX", "GY", "GZ", "(int)(GX * GY)", "(int)(GY * blockIdx.x)", "(int)(GZ * GX + GY)"]
OF_AXES += [f"(int){word}.{d}" for word in ("threadIdx", "blockIdx") for d in AXES]
OF_AXES += ["(int)(blockIdx.x * blockIdx.y)", "(int)(threadIdx.x * blockIdx.z)"]
OF_AXES += ["(int)(blockIdx.x * blockDim.y)", "(int)(blockIdx.y * gridDim.x)", "(int)gridDim.y"]
OF_AXES += ["(int)(blockIdx.z * blockIdx.y)", "(int)(blockIdx.x << threadIdx.y)"]

LOW = ELEMENTS - 1
# The heads of loops; whether all threads take as many rounds.
LOOPS = [
    ("for (int {k} = 0; {k} < {most}; ++{k})", True),
    ("for (int {k} = 0; {k} < {limit}; ++{k})", True),
    ("for (int {k} = 0; {k} < (int)({lanes} & 7); ++{k})", False),
    ("for (int {k} = tid & 31; {k} < n * 4; {k} += 32)", False),
    ("for (int {k} = tid & 31; {k} < 100; {k} += 32)", False),
    ("for (int {k} = (int)(threadIdx.x & 7); {k} >= 0; --{k})", False),
    ("for (int {k} = n; {k} >= 0; {k} -= {n})", True),
]
# What a round of a sum does, by the type of the sum.
ROUNDS = ["{sum} += {value};", "{sum} += {value};", "if ({c}) {sum} += {value};"]
INTEGER_ROUNDS = [*ROUNDS, "{sum} = ({T})(({sum} ^ {value}) * ({T})16777619);"]
FLOAT_ROUNDS = [*ROUNDS, "{sum} = fmaxf({sum}, {value});", "{sum} = fmaf({value}, 0.5f, {sum});"]
BITS = "{bits} = {bits} * 3 + 0x100000000000ll; {sum} += {value} + __longlong_as_double({bits});"
DOUBLE_ROUNDS = [*ROUNDS, BITS]
SMALL_ROUNDS = [
    "{sum} = __hadd({sum}, {value});",
    "{sum} = __hfma({sum}, {e}, {value});",
    "{sum} = __hfma({value}, {e}, {sum});",
    "{sum} = __hmax({sum}, {value});",
]
# Loops that add up elements: what comes before, the head, and the places that are read.
ROW = ["blockIdx.x * 77 + {k}", f"({{k}} * 3) & {LOW}", "{k}"]
WALKS = [
    (
        [],
        "for (int {k} = 0; {k} < n; ++{k})",
        [
            f"({{own}} * n + {{k}}) & {LOW}",
            f"({{k}} * 64 + {{own}}) & {LOW}",
            "{k} * 16 + threadIdx.x",
        ],
    ),
    (
        [],
        f"for (int {{k}} = i; {{k}} < {ELEMENTS}; {{k}} += gridDim.x * threads * 2)",
        ["{k}", "{k} + 1", "{k} ^ 1", "{k} * 2"],
    ),
    (
        [
            "const int {k}_first = (i * 7) & 1023;",
            "const int {k}_last = {k}_first + (int)(in_u[i] & 31);",
        ],
        "for (int {k} = {k}_first; {k} < {k}_last; ++{k})",
        ["{k}", f"in_u[{{k}}] & {LOW}"],
    ),
    (
        [],
        "for (int {k} = -2; {k} <= 2; ++{k})",
        [f"min(max(i + {{k}}, 0), {LOW})", "min(max(i / 64 + {k}, 0), 63) * 64 + (i & 63)"],
    ),
    (["unsigned {k} = {start} & 0xffff;"], "while ({k})", [f"{{k}} & {LOW}", "i"]),
    (
        [],
        "for (unsigned {k} = n + 7; {k}-- > 0;)",
        ["i + {k}", f"({{k}} * n + tid) & {LOW}", f"{LOW} - {{k}}"],
    ),
    ([], "for (int {k} = threadIdx.x; {k} < n * 8; {k} += blockDim.x)", ROW),
    ([], "for (int {k} = threadIdx.x; {k} < 77; {k} += blockDim.x)", ROW),
    ([], "for (size_t {k} = tid; {k} < n * 16; {k} += threads)", ["{k}", "(size_t)i + {k}"]),
    (
        [],
        "for (int j = 0; j < {few}; ++j) for (int {k} = 0; {k} < j + 2; ++{k})",
        [f"(j * 64 + {{k}} + i) & {LOW}", "j * 8 + {k}"],
    ),
    (
        [],
        "for (unsigned {k} = n * 8 + 1; {k} > 0; {k} >>= 1)",
        ["tid ^ {k}", f"(tid + {{k}}) & {LOW}", "tid < {k} ? tid + {k} : i"],
    ),
]

# Of threads that are all there, in whole warps. {new} is declared by them.
WARPWIDE: list[tuple[Type | None, str]] = [
    (None, "{T} {new} = __shfl_xor_sync(~0u, {e}, {lanes});"),
    (None, "{T} {new} = __shfl_down_sync(~0u, {e}, {lanes});"),
    (None, "{T} {new} = __shfl_up_sync(~0u, {e}, {lanes}, 16);"),
    (None, "{T} {new} = __shfl_sync(~0u, {e}, {u} & 31);"),
    (
        None,
        "{T} {new} = {e};"
        " for (int o = 16; o > 0; o >>= 1) {new} += __shfl_down_sync(~0u, {new}, o);",
    ),
    (UNSIGNED, "unsigned {new} = __ballot_sync(~0u, {c});"),
    (UNSIGNED, "unsigned {new} = (unsigned)__any_sync(~0u, {c});"),
    (UNSIGNED, "unsigned {new} = __reduce_add_sync(~0u, {u});"),
    (UNSIGNED, "unsigned {new} = __reduce_max_sync(~0u, {u});"),
    (UNSIGNED, "unsigned {new} = __match_any_sync(~0u, {u} & 7);"),
]

# The order of threads must not matter: sums, or a place that only one thread has.
ATOMICS = [
    *["atomicAdd(&bins[({u}) & 63], {u});"] * 3,
    *["atomicAdd({c} ? &bins[({u}) & 63] : &own[{mine}], {u});"] * 2,
    "atomicMin(&least[({u}) & 63], {i});",
    "atomicMax(&greatest[({u}) & 63], {i});",
    "atomicOr(&ones[({u}) & 63], {u});",
    "atomicXor(&odd[({u}) & 63], {u});",
    "atomicAdd(&long_bins[({u}) & 63], (unsigned long long){u});",
    "unsigned {new} = out_u[i]; out_u[i] = {u};"
    " atomicAdd({c} ? &bins[({u}) & 63] : &own[{mine}], {new});",
    "atomicAdd(&out_f[i], {f});",
    "unsigned {new} = atomicExch(&own[{mine}], {u});",
    "unsigned {new} = atomicAdd(&own[{mine}], {u});",
    "unsigned {new} = atomicMax(&own[{mine}], {u});",
    "unsigned {new} = atomicCAS(&own[{mine}], {u}, {u});",
]
