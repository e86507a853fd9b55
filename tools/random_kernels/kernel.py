# SPDX-License-Identifier: Apache-2.0
"""How does a random kernel look? Straight lines, conditions, and loops of the shapes that kernels
have, over arrays of several types; some with shared memory, warps that act together, atomics,
local arrays or functions. It reads and writes inside its arrays, and no thread depends on the order
of the others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .patterns import OF_BLOCKS, OF_WARPS, PATTERNS
from .words import (
    APPROXIMATE,
    ATOMICS,
    BFLOAT,
    COMMON,
    DOUBLE,
    DOUBLE_ROUNDS,
    ELEMENTS,
    EXACT,
    FLOAT,
    FLOAT_CONSTANTS,
    FLOAT_ROUNDS,
    HALF,
    IN_PLAIN,
    INT,
    INTEGER_CONSTANTS,
    INTEGER_ROUNDS,
    LONG,
    LOOPS,
    OF_AXES,
    OTHERS,
    SMALL_ROUNDS,
    TYPES,
    UNSIGNED,
    VECTORS,
    WALKS,
    WARPWIDE,
    Type,
)

HOLE = re.compile(r"\{(\w+)\}")
NAME = re.compile(r"\b[a-z]\w*")
BINS = ["bins", "ones", "odd"]
PARAMETERS = [f"{t.name}* __restrict__ {name}_{t.short}" for t in TYPES for name in ("out", "wide")]
PARAMETERS = [f"const {t.name}* __restrict__ in_{t.short}" for t in TYPES] + PARAMETERS
PARAMETERS += [f"unsigned* {name}" for name in [*BINS, "own"]]
PARAMETERS += ["int* least", "int* greatest", "unsigned long long* long_bins"]
PARAMETERS += ["int n", "int count", "float scale", "Shape shape"]
NAMES = [each.split()[-1].lstrip("*") for each in PARAMETERS]
HEAD = [
    "const int threads = blockDim.x * blockDim.y * blockDim.z;",
    "const int tid = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;",
]


@dataclass
class Variable:
    name: str
    type: Type
    is_mutable: bool = True


@dataclass
class Block:
    """Statements in braces; a statement is a line or another block."""

    head: str
    body: list[str | Block] = field(default_factory=list)
    tail: str = ""

    def lines(self, depth: int = 0) -> Iterator[str]:
        pad = "  " * depth
        yield f"{pad}{self.head} {{"
        for each in self.body:
            if isinstance(each, str):
                yield f"{pad}  {each}"
            else:
                yield from each.lines(depth + 1)
        yield f"{pad}}}{self.tail}"


class Kernel:
    def __init__(self, seed: int, name: str, is_exact: bool, is_plain: bool = False) -> None:
        """`is_plain`: whose threads do not act together, and whose bits are exact: C++ without a
        GPU computes the same."""
        self.random = random.Random(seed)
        self.name = name
        self.variables: list[Variable] = []
        self.flags: list[str] = []
        self.named = 0
        self.loops = 0
        self.functions: list[tuple[str, Type]] = []
        self.blocks: list[Block] = []  # functions, then the kernel
        chance = self.random.random
        self.is_plain = is_plain
        self.has_warps, self.has_atomics = chance() < 0.3 and not is_plain, chance() < 0.35
        self.has_approximations = chance() < 0.25 and not is_exact and not is_plain
        others = [each for each in OTHERS if not (is_plain and each.is_small_float)]
        self.random.shuffle(others)
        self.types = [*COMMON, *others[: self.random.randrange(4)]]
        if chance() < 0.2:  # integers alone
            self.types = [t for t in self.types if not t.is_float]
        self.tile = self.random.choice(self.types) if chance() < 0.35 and not is_plain else None
        # How many dimensions the grid has.
        self.dimensions = self.random.choice([1, 2, 3] if is_plain else [1, 1, 1, 1, 2])
        self.spot = self.random.choice(self.types) if chance() < 0.2 else None
        self.may_return = False
        for _ in range(self.random.randrange(3) if chance() < 0.3 else 0):
            self.function()
        self.kernel()

    @property
    def is_whole(self) -> bool:
        """Does it need all threads of a block, in whole warps?"""
        return self.has_warps or self.tile is not None

    def text(self) -> str:
        return "\n".join(line for block in self.blocks for line in block.lines()) + "\n"

    def names(self) -> set[str]:
        """Of all that its statements name; the lists of parameters have every array."""
        lines = (line for block in self.blocks for line in list(block.lines())[1:-1])
        return set(NAME.findall("\n".join(lines)))

    # ---- names --------------------------------------------------------------------------------

    def new(self, kind: Type, is_mutable: bool = True) -> str:
        self.named += 1
        name = f"v{self.named}"
        self.variables.append(Variable(name, kind, is_mutable))
        return name

    def counter(self) -> str:
        return self.new(INT, False)

    def type(self, wanted: Callable[[Type], bool] = lambda _: True) -> Type:
        return self.random.choice([t for t in self.types if wanted(t)])

    # ---- expressions ----------------------------------------------------------------------------

    def constant(self, kind: Type) -> str:
        if not kind.is_float:
            value = self.random.choice(INTEGER_CONSTANTS) & ((1 << kind.bits) - 1)
            return f"({kind.name}){value}ull"
        value = self.random.choice(FLOAT_CONSTANTS)
        if kind.bits == 64:
            return value
        return f"{value}f" if kind == FLOAT else f"({kind.name}){value}f"

    def index(self, depth: int) -> str:
        """Of an input."""
        pick = self.random.random()
        if pick < 0.5:
            offset = self.random.choice([1, 2, 3, 8, 32, 64])
            known = ["i", "i", "i", f"i + {offset}", "tid", "i * 2", "i * 2 + 1", "blockIdx.x"]
            known += ["threadIdx.y * 16 + threadIdx.x", f"{self.axes()} & {ELEMENTS - 1}"]
            return self.random.choice(known)
        counters = [v.name for v in self.variables if not v.is_mutable and v.type == INT]
        if counters and pick < 0.8:
            k = self.random.choice(counters)
            known = [f"({k} & 63)", f"({k} & 15) * 64 + tid % 64", f"i + ({k} & 63)"]
            return self.random.choice([*known, f"((unsigned)i * 8 + ({k} & 7)) & {ELEMENTS - 1}"])
        return f"((unsigned){self.expression(UNSIGNED, depth)}) & {ELEMENTS - 1}"

    def axes(self) -> str:
        return self.random.choice(OF_AXES)

    def leaf(self, kind: Type) -> str:
        pick = self.random.random()
        known = [v.name for v in self.variables if v.type == kind]
        if known and pick < 0.6:
            return self.random.choice(known)
        if pick < 0.72:
            return self.constant(kind)
        if pick < 0.87:
            return f"in_{kind.short}[{self.index(0)}]"
        if pick < 0.9:  # what it may have written
            own = [f"out_{kind.short}[i]", f"wide_{kind.short}[i * 4 + {self.random.randrange(4)}]"]
            return self.random.choice(own)
        if kind == FLOAT:
            return self.random.choice(["scale", "(float)i"])
        return f"({kind.name}){self.random.choice(['i', 'tid', 'n', self.axes(), self.axes()])}"

    def condition(self, depth: int) -> str:
        pick = self.random.random()
        if pick < 0.15 and depth > 0:
            word = self.random.choice(["&&", "||"])
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if self.flags and pick < 0.25:
            return self.random.choice(self.flags)
        if pick < 0.3:
            return f"(i & {self.random.choice([1, 2, 3, 4, 8, 16, 32, 31])})"
        kind, order = self.type(), self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"({self.expression(kind, depth - 1)} {order} {self.expression(kind, depth - 1)})"

    def expression(self, kind: Type, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        if self.random.random() < 0.08:
            return self.filled("({c} ? {e} : {e})", kind, depth)
        approximate = APPROXIMATE.get(kind, []) if self.has_approximations else []
        if approximate and self.random.random() < 0.15:
            return self.filled(self.random.choice(approximate), kind, depth)
        return self.filled(self.random.choice(EXACT[kind]), kind, depth)

    def other(self, kind: Type, depth: int) -> str:
        of = self.type(lambda t: t != kind)
        text = self.expression(of, depth)
        return f"(float)({text})" if of.is_small_float or kind.is_small_float else text

    def filled(self, template: str, kind: Type, depth: int, **words: str) -> str:
        pick = self.random.choice
        if self.is_plain:
            template = IN_PLAIN.get(template, template)
        wide = max(kind.bits, 32)
        holes: dict[str, Callable[[], str]] = {
            "e": lambda: self.expression(kind, depth - 1),
            "u": lambda: self.expression(UNSIGNED, depth - 1),
            "i": lambda: self.expression(INT, depth - 1),
            "f": lambda: self.expression(FLOAT if FLOAT in self.types else INT, depth - 1),
            "l": lambda: self.expression(LONG, depth - 1),
            "d": lambda: self.expression(DOUBLE, depth - 1),
            "o": lambda: self.other(kind, depth - 1),
            "c": lambda: self.condition(depth - 1),
            "T": lambda: kind.name,
            "U": lambda: "unsigned long long" if kind.bits == 64 else "unsigned",
            "W": lambda: str(wide - 1),
            "n": lambda: str(pick([1, 3, 5, 7, 10, 15, 16, 63, 100])),
            "p": lambda: hex(self.random.randrange(1 << 16)),
            "s": lambda: pick(
                [
                    str(self.random.randrange(1, 32)),
                    f"((unsigned){self.leaf(UNSIGNED)} & {wide - 1})",
                ]
            ),
            "lanes": lambda: str(pick([1, 2, 4, 8, 16, 3])),
            "mine": lambda: pick(["i", f"i + ({self.leaf(UNSIGNED)} & 3) * 16384"]),
            "at": lambda: self.index(1),
            "in": lambda: f"in_{kind.short}",
            "part": lambda: str(self.random.randrange(6)),
        }
        return HOLE.sub(lambda hole: words.get(hole[1]) or holes[hole[1]](), template)

    # ---- statements -----------------------------------------------------------------------------

    def statements(self, into: Block, count: int, depth: int, is_uniform: bool) -> None:
        before, flags = len(self.variables), len(self.flags)
        for _ in range(count):
            self.statement(into, depth, is_uniform)
        del self.variables[before:], self.flags[flags:]

    def statement(self, into: Block, depth: int, is_uniform: bool) -> None:
        """`depth`: how many blocks may stand in each other. `is_uniform`: all threads are here."""
        pick = self.random.random()
        mutable = [v for v in self.variables if v.is_mutable]
        if pick < 0.28 or not mutable:
            kind = self.type()
            value = self.expression(kind, 3)
            into.body.append(f"{kind.name} {self.new(kind)} = {value};")
        elif pick < 0.52:
            self.assignment(into, self.random.choice(mutable))
        elif pick < 0.58 and self.loops < 2:
            self.pattern(into, PATTERNS, self.type(lambda t: t.has_operators))
        elif pick < 0.68 and depth > 0:
            self.choice(into, depth)
        elif pick < 0.82 and depth > 0 and self.loops < 3:
            self.loop(into, depth, is_uniform)
        elif pick < 0.84 and depth > 0:
            self.switch(into, depth)
        elif pick < 0.855:
            self.flag(into)
        elif pick < 0.86 and self.may_return:
            into.body.append(f"if ({self.condition(1)}) return;")
        elif pick < 0.90:
            self.store(into)
        elif pick < 0.93 and self.has_atomics:
            self.declares(into, UNSIGNED, self.random.choice(ATOMICS))
        elif pick < 0.97 and is_uniform and self.has_warps:
            self.warpwide(into)
        elif is_uniform and self.tile:
            self.phase(into, self.tile)
        elif pick < 0.97 and self.spot:
            into.body.append(
                f"spot[({self.leaf(UNSIGNED)}) & 7] = {self.expression(self.spot, 2)};"
            )
            value = f"spot[({self.leaf(UNSIGNED)}) & 7]"
            into.body.append(f"{self.spot.name} {self.new(self.spot)} = {value};")
        elif pick < 0.99 and self.functions:
            name, kind = self.random.choice(self.functions)
            call = f"{name}({self.expression(kind, 1)}, {self.leaf(UNSIGNED)})"
            into.body.append(f"{kind.name} {self.new(kind)} = {call};")
        else:
            self.assignment(into, self.random.choice(mutable))

    def declares(self, into: Block, kind: Type, template: str) -> None:
        name = self.new(kind) if "{new}" in template else ""
        if name:
            known = self.variables.pop()
        into.body.append(self.filled(template, kind, 3, new=name))
        if name:
            self.variables.append(known)

    def pattern(self, into: Block, known: list[tuple[Type | None, str]], kind: Type) -> None:
        """`kind`: of those that serve several types."""
        usable = [each for each in known if each[0] in (None, *self.types)]
        of, template = self.random.choice(usable)
        self.declares(into, of or kind, template)

    def assignment(self, into: Block, to: Variable) -> None:
        if to.type.has_operators and self.random.random() < 0.3:
            how = self.random.choice("+-*" if to.type.is_float else "+-*^|&")
            value = self.expression(to.type, 2)
            into.body.append(f"{to.name} = ({to.type.name})({to.name} {how} {value});")
        else:
            into.body.append(f"{to.name} = {self.expression(to.type, 3)};")

    def choice(self, into: Block, depth: int) -> None:
        then = Block(f"if ({self.condition(2)})")
        self.statements(then, self.random.randrange(1, 4), depth - 1, False)
        into.body.append(then)
        if self.random.random() < 0.5:
            other = Block("else")
            self.statements(other, self.random.randrange(1, 4), depth - 1, False)
            into.body.append(other)

    def flag(self, into: Block) -> None:
        self.named += 1
        name = f"is_{self.named}"
        into.body.append(f"const bool {name} = {self.condition(2)};")
        self.flags.append(name)

    def switch(self, into: Block, depth: int) -> None:
        whole = Block(f"switch ((unsigned){self.expression(UNSIGNED, 1)} & 3)")
        for number in range(self.random.randrange(2, 5)):
            case = Block(f"case {number}:", tail=self.random.choice([" break;", " break;", ""]))
            self.statements(case, self.random.randrange(1, 3), depth - 1, False)
            whole.body.append(case)
        into.body.append(whole)

    def store(self, into: Block) -> None:
        pick = self.random.random()
        if pick < 0.3:
            usable = [v for v in VECTORS if v[1] in self.types]
            vector, kind, count = self.random.choice(usable or [VECTORS[2]])
            if pick < 0.12:
                name = self.new(INT, False)
                self.variables.pop()
                at = f"reinterpret_cast<const {vector}*>(in_{kind.short})[i & {ELEMENTS // 8 - 1}]"
                into.body.append(f"{vector} {name} = {at};")
                self.variables += [Variable(f"{name}.{part}", kind) for part in "xyzw"[:count]]
                return
            values = ", ".join(self.expression(kind, 1) for _ in range(count))
            at = "i" if count == 4 else self.random.choice(["i * 2", "i * 2 + 1"])
            to = f"reinterpret_cast<{vector}*>(wide_{kind.short})[{at}]"
            into.body.append(f"{to} = make_{vector}({values});")
            return
        kind = self.type()
        own = f"out_{kind.short}[i]"
        value = self.expression(kind, 2)
        if pick < 0.55:
            into.body.append(f"{own} = {value};")
        elif pick < 0.7:
            into.body.append(
                f"{own} = {self.filled('({T})({old} + {new})', kind, 0, old=own, new=value)};"
            )
        else:
            part = self.random.choice(["0", "1", "2", "3", f"({self.leaf(UNSIGNED)} & 3)"])
            into.body.append(f"wide_{kind.short}[i * 4 + {part}] = {value};")

    def warpwide(self, into: Block) -> None:
        if self.random.random() < 0.25:
            self.pattern(into, OF_WARPS, self.type(lambda t: t.has_operators and t.bits >= 32))
        else:
            self.pattern(into, WARPWIDE, self.type(lambda t: t.bits >= 32 or t.short == "h"))

    def phase(self, into: Block, kind: Type) -> None:
        """Shared memory between barriers."""
        pick = self.random.randrange(8)
        into.body.append("__syncthreads();")
        if pick > 4 and kind.has_operators:
            self.pattern(into, OF_BLOCKS, kind)
            return
        if pick == 0:
            into.body += ["if (tid < 64) bin[tid] = 0;", "__syncthreads();"]
            into.body.append(self.filled("atomicAdd(&bin[({u}) & 63], {u});", UNSIGNED, 2))
            into.body.append("__syncthreads();")
            value = f"bin[({self.leaf(UNSIGNED)}) & 63]"
            into.body.append(f"unsigned {self.new(UNSIGNED)} = {value};")
            return
        into.body += [f"tile[tid] = {self.expression(kind, 2)};", "__syncthreads();"]
        if pick == 1 and kind.has_operators:
            tree = Block("for (int s = threads / 2; s > 0; s >>= 1)")
            tree.body = ["if (tid < s) tile[tid] = tile[tid] + tile[tid + s];", "__syncthreads();"]
            into.body.append(tree)
            into.body.append(f"{kind.name} {self.new(kind)} = tile[0];")
            return
        if pick == 2 and kind.has_operators:
            at = ["s", "(tid & ~15) + s", "(tid + s) % threads", "s * 4 + (tid & 3)"]
            at.append("threadIdx.y * blockDim.x + s % blockDim.x")
            name = self.new(kind)
            into.body.append(f"{kind.name} {name} = 0;")
            into.body.append(self.random.choice(["", "#pragma unroll", "#pragma unroll 1"]))
            into.body.append(
                f"for (int s = 0; s < 16; ++s) {name} = {name} + tile[{self.random.choice(at)}];"
            )
            return
        at = ["tid ^ 1", "(tid + 1) % threads", "threads - 1 - tid", "(tid * 7) % threads"]
        at.append(f"((unsigned){self.leaf(UNSIGNED)}) % threads")
        value = f"tile[{self.random.choice(at)}]"
        into.body.append(f"{kind.name} {self.new(kind)} = {value};")

    # ---- loops ----------------------------------------------------------------------------------

    def loop(self, into: Block, depth: int, is_uniform: bool) -> None:
        self.loops += 1
        before = len(self.variables)
        if self.random.random() < 0.5:
            self.sum(into, depth)
        else:
            self.plain_loop(into, depth, is_uniform)
            del self.variables[before:]
        self.loops -= 1

    def plain_loop(self, into: Block, depth: int, is_uniform: bool) -> None:
        most = [40, 12, 5][self.loops - 1]
        limit = (
            self.random.choice(["n", "n / 2 + 1", "n & 15", "(n + 3) / 4"]) if most > 5 else "n & 3"
        )
        lanes = self.expression(UNSIGNED, 2)
        k = self.counter()
        most_rounds = str(self.random.randrange(1, most))
        template, is_same = self.random.choice(LOOPS)
        head = self.filled(template, INT, 0, k=k, most=most_rounds, limit=limit, lanes=lanes)
        if "{most}" in template:
            into.body.append(self.random.choice(["", "#pragma unroll 1", "#pragma unroll 4"]))
        loop = Block(head)
        leaves = self.random.random() < 0.25
        self.statements(
            loop, self.random.randrange(1, 5), depth - 1, is_uniform and is_same and not leaves
        )
        if leaves:
            word = self.random.choice(["break", "continue"])
            loop.body.append(f"if ({self.condition(1)}) {word};")
            self.statements(loop, self.random.randrange(3), depth - 1, False)
        into.body.append(loop)

    def sum(self, into: Block, depth: int) -> None:
        """A loop that adds up elements, as most kernels have."""
        kind = self.type()
        total = self.new(kind)
        into.body.append(f"{kind.name} {total} = {self.constant(kind)};")
        if kind == DOUBLE:
            into.body.append(f"long long {total}_bits = 0x3ff0000000000000ll;")
        before = len(self.variables)
        condition, start = self.condition(1), self.leaf(UNSIGNED)
        k = self.counter()
        own = self.random.choice(["i", "tid", "blockIdx.x", "threadIdx.x", "threadIdx.y"])
        few = self.random.choice(["n / 4", "3", "(tid & 3) + 1"])
        prepare, head, places = self.random.choice(WALKS)

        def filled(template: str) -> str:
            return self.filled(template, INT, 0, k=k, own=own, few=few, start=start)

        into.body += [filled(each) for each in prepare]
        loop = Block(filled(head))
        if head.startswith("while"):
            loop.body.append(self.random.choice([f"{k} &= {k} - 1;", f"{k} >>= 1;", f"{k} /= 3;"]))
        arrays: dict[Type, str] = {}
        if self.random.random() < 0.15:
            kinds = {FLOAT: UNSIGNED, INT: UNSIGNED, UNSIGNED: INT, DOUBLE: LONG}
            if kind in kinds:
                arrays[kind] = f"{k}_in"
                other = f"(const {kind.name}*)in_{kinds[kind].short}"
                which = f"{condition} ? in_{kind.short} : {other}"
                into.body.append(f"const {kind.name}* {k}_in = {which};")
        for _ in range(self.random.randrange(1, 4)):
            of = self.random.choice([kind, kind, self.type()])
            at = filled(self.random.choice(places))
            array = arrays.get(of, f"in_{of.short}")
            loop.body.append(f"const {of.name} {self.new(of, False)} = {array}[{at}];")
        if self.random.random() < 0.3:
            word = self.random.choice(["break", "continue"])
            loop.body.append(f"if ({self.condition(1)}) {word};")
        if self.random.random() < 0.3:
            self.statements(loop, self.random.randrange(1, 3), min(depth - 1, 1), False)
        small = dict.fromkeys([HALF, BFLOAT], SMALL_ROUNDS)
        rounds = {FLOAT: FLOAT_ROUNDS, DOUBLE: DOUBLE_ROUNDS, **small}
        template = self.random.choice(rounds.get(kind, INTEGER_ROUNDS))
        words = {"sum": total, "bits": f"{total}_bits", "value": self.expression(kind, 2)}
        loop.body.append(self.filled(template, kind, 2, **words))
        if self.random.random() < 0.2:
            self.store(loop)
        into.body.append(loop)
        del self.variables[before:]

    # ---- the whole ------------------------------------------------------------------------------

    def function(self) -> None:
        kind = self.type()
        name = f"{self.name}_{len(self.functions)}"
        kept = (self.has_warps, self.has_atomics, self.tile, self.spot, self.functions)
        self.has_warps, self.has_atomics, self.tile, self.spot, self.functions = (
            False,
            False,
            None,
            None,
            [],
        )
        self.variables = [Variable("x", kind), Variable("y", UNSIGNED)]
        inline = self.random.choice(["__noinline__ ", ""])
        parameters = ", ".join(
            [f"{kind.name} x", "unsigned y", *PARAMETERS, "int i, int tid, int threads"]
        )
        body = Block(f"__device__ {inline}{kind.name} {name}_whole({parameters})")
        self.loops = 1
        self.statements(body, self.random.randrange(1, 5), 1, False)
        body.body.append(f"return {self.expression(kind, 2)};")
        self.loops, self.variables, self.flags = 0, [], []
        self.has_warps, self.has_atomics, self.tile, self.spot, self.functions = kept
        self.functions.append((name, kind))
        body.tail = (
            f"\n#define {name}(x, y) {name}_whole(x, y, {', '.join(NAMES)}, i, tid, threads)"
        )
        self.blocks.append(body)

    def kernel(self) -> None:
        whole = Block(f"__global__ void {self.name}({', '.join(PARAMETERS)})", list(HEAD))
        block = {
            1: "blockIdx.x",
            2: "(blockIdx.y * gridDim.x + blockIdx.x)",
            3: "((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)",
        }[self.dimensions]
        whole.body.append(f"const int i = {block} * threads + tid;")
        self.may_return = not self.is_whole
        if not self.is_whole and self.random.random() < 0.5:
            whole.body.append("if (i >= count) return;")
        if self.tile:
            value = self.constant(self.tile)
            whole.body += [
                f"__shared__ {self.tile.name} tile[256], grid[2][16][17];",
                "__shared__ unsigned bin[64];",
                f"for (int s = tid; s < 256; s += threads) tile[s] = {value};",
                f"for (int s = tid; s < 544; s += threads) (&grid[0][0][0])[s] = {value};",
            ]
        if self.spot:
            value = self.constant(self.spot)
            whole.body += [
                f"{self.spot.name} spot[8];",
                f"for (int s = 0; s < 8; ++s) spot[s] = {value};",
            ]
        for kind in (self.type(), self.type()):
            value = self.leaf(kind)
            whole.body.append(f"{kind.name} {self.new(kind)} = {value};")
        for _ in range(self.random.randrange(5, 16)):
            self.statement(whole, 3, True)
        for each in self.variables:
            if each.is_mutable and self.random.random() < 0.7:
                whole.body.append(f"out_{each.type.short}[i] = {each.name};")
        self.blocks.append(whole)
