# SPDX-License-Identifier: Apache-2.0
"""What does a file of tests/ptx/<chapter> say? The same reading as tests/unit/engine/ptx_case.h:
columns in and out, a body, and the program that a runner gives to the engine or to a GPU.

  // in a .s32: 1 -2 0x7fffffff     one value a thread; threads without one get the last
  // out d .s32: 2 -4               what must come out; `~1e-6` before the colon: within that ratio;
                                    `~1e-6+1e-5/f16x2`: and that distance, of halves in a .b32
  // reg p .pred                    a register beside those; // outside TEXT: text before the kernel
  // block: 64  // grid: 2  // cluster: 2  // target: sm_90a
  // scratch: 512                   bytes of memory at %scratch, word i holds i
  // tensor: TYPE RANK OFFSET SIZES STRIDES BOX STEPS SWIZZLE FILL     %map is a tensor map of the
  scratch memory
  // gpu: REASON                    not run on a GPU, and why
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

WIDTHS = {"pred": 4, "f32": 4, "f64": 8, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4}
SCRATCH_ALIGN = 1024


def width_of(kind: str) -> int:
    return WIDTHS.get(kind) or int("".join(c for c in kind if c.isdigit())) // 8


def case_files(folder: Path) -> list[Path]:
    """Every case under tests/ptx; the whole programs under kernels/ are not cases."""
    return sorted(path for path in folder.rglob("*.ptx") if path.parent != folder / "kernels")


def bits_of(text: str, kind: str) -> int:
    mask = (1 << 8 * width_of(kind)) - 1
    if "0x" not in text and kind in ("f32", "f64"):
        code = "<f" if kind == "f32" else "<d"
        return int.from_bytes(struct.pack(code, float(text)), "little")
    return int(text, 0) & mask


@dataclass
class Column:
    name: str
    kind: str
    values: list[str]
    tolerance: str = ""  # "RATIO", "RATIO+DISTANCE", either with "/KIND" behind

    @property
    def width(self) -> int:
        return width_of(self.kind)


@dataclass
class Case:
    path: Path
    inputs: list[Column] = field(default_factory=list)
    outputs: list[Column] = field(default_factory=list)
    registers: list[str] = field(default_factory=list)
    outside: str = ""
    body: str = ""
    block: int = 32
    grid: int = 1
    cluster: int = 1
    scratch: int = 0
    target: str = "sm_90"
    tensor: list[int] = field(default_factory=list)
    not_on_gpu: str = ""

    @property
    def threads(self) -> int:
        return self.block * self.grid

    @property
    def scratch_at(self) -> int:
        used = (len(self.inputs) + len(self.outputs)) * self.threads * 8
        return (used + SCRATCH_ALIGN - 1) // SCRATCH_ALIGN * SCRATCH_ALIGN

    def memory(self) -> bytearray:
        out = bytearray()
        for column in self.inputs:
            for i in range(self.threads):
                text = column.values[min(i, len(column.values) - 1)]
                out += bits_of(text, column.kind).to_bytes(8, "little")
        out += bytes(self.scratch_at - len(out))
        return out + b"".join(struct.pack("<I", i) for i in range(self.scratch // 4))

    def results(self, memory: bytes) -> dict[str, list[int]]:
        """By output column: the bits of each thread."""
        found = {}
        for c, column in enumerate(self.outputs):
            first = (len(self.inputs) + c) * self.threads * 8
            words = [
                memory[first + 8 * i : first + 8 * i + column.width] for i in range(self.threads)
            ]
            found[column.name] = [int.from_bytes(word, "little") for word in words]
        return found

    def program(self, version: str = "9.0") -> str:
        lines = [f".version {version}", f".target {self.target}", ".address_size 64", self.outside]
        parameters = ".param .u64 memory" + (
            ", .param .align 64 .b8 map[128]" if self.tensor else ""
        )
        lines += [f".visible .entry k({parameters})", "{", ".reg .b64 %at, %base, %scratch, %map;"]
        lines += [".reg .b32 %lane, %bool, %cta, %size;", *self.registers]
        lines += [f".reg .{column.kind} {column.name};" for column in self.inputs + self.outputs]
        lines += [
            "ld.param.u64 %base, [memory];",
            "mov.u32 %lane, %tid.x;",
            "mov.u32 %cta, %ctaid.x;",
        ]
        lines += ["mov.u32 %size, %ntid.x;", "mad.lo.u32 %lane, %cta, %size, %lane;"]
        lines += [f"add.u64 %scratch, %base, {self.scratch_at};"]
        if self.tensor:
            lines += ["mov.b64 %map, map;", "cvta.param.u64 %map, %map;"]
        for slot, column in enumerate(self.inputs + self.outputs):
            place = f"[%at+{slot * self.threads * 8}]"
            predicate = column.kind == "pred"
            kind, name = ("b32", "%bool") if predicate else (f"b{column.width * 8}", column.name)
            if slot == len(self.inputs):
                lines += ["{", self.body, "}"]
            lines.append("mad.wide.u32 %at, %lane, 8, %base;")
            if slot < len(self.inputs):
                lines.append(f"ld.global.{kind} {name}, {place};")
                lines += [f"setp.ne.u32 {column.name}, %bool, 0;"] if predicate else []
            else:
                lines += [f"selp.u32 %bool, 1, 0, {column.name};"] if predicate else []
                lines.append(f"st.global.{kind} {place}, {name};")
        return "\n".join([*lines, "ret;", "}", ""])

    def mismatches(self, memory: bytes) -> list[str]:
        """What is not as the file says."""
        wrong = []
        for column in self.outputs:
            seen = self.results(memory)[column.name]
            if not column.values:
                wrong.append(f"{column.name}: the file says nothing of it")
            for i, text in enumerate(column.values):
                wanted = bits_of(text, column.kind)
                if not holds(seen[i], text, column):
                    wrong.append(
                        f"{column.name}, thread {i}: 0x{seen[i]:x}, the file says {text} "
                        f"(0x{wanted:x})"
                    )
        return wrong

    def updated(self, memory: bytes) -> str:
        """The file's text with these results; what holds stays as it is written."""
        results, lines = self.results(memory), []
        for line in self.path.read_text().splitlines():
            if line.startswith("// out "):
                head, _, tail = line.partition(":")
                name = head.split()[2]
                column = next(c for c in self.outputs if c.name == name)
                said = tail.split() or [""] * max(
                    (len(c.values) for c in self.inputs), default=self.threads
                )
                words = [
                    text if text and holds(seen, text, column) else shown(seen, column.kind)
                    for text, seen in zip(said, results[name])
                ]
                line = head + ": " + " ".join(words)
            lines.append(line)
        return "\n".join(lines) + "\n"


def shown(bits: int, kind: str) -> str:
    width = width_of(kind)
    if kind == "pred":
        return str(bits)
    if kind[0] == "s":
        return str(bits - (1 << 8 * width) if bits >> (8 * width - 1) else bits)
    if kind[0] == "u":
        return str(bits)
    if kind in ("f32", "f64"):
        value = struct.unpack("<f" if width == 4 else "<d", bits.to_bytes(width, "little"))[0]
        text = (
            repr(int(value))
            if value == value and abs(value) < 2**20 and value == int(value)
            else ""
        )
        return text if text and not (value == 0 and bits) else f"0x{bits:x}"
    return f"0x{bits:x}"


def number(bits: int, kind: str) -> float:
    if kind == "bf16":
        return struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0]
    code = {"f16": "<e", "f32": "<f", "f64": "<d"}[kind]
    return struct.unpack(code, bits.to_bytes(struct.calcsize(code), "little"))[0]


def holds(seen: int, text: str, column: Column) -> bool:
    wanted = bits_of(text, column.kind)
    return seen == wanted or near(seen, wanted, column)


def near(seen: int, wanted: int, column: Column) -> bool:
    if not column.tolerance:
        return False
    bounds, _, kind = column.tolerance.partition("/")
    ratio, _, distance = bounds.partition("+")
    kind = kind or column.kind
    pairs = [(seen, wanted)]
    if kind.endswith("x2"):
        kind = kind[:-2]
        pairs = [(seen & 0xFFFF, wanted & 0xFFFF), (seen >> 16, wanted >> 16)]
    for one, other in pairs:
        a, b = number(one, kind), number(other, kind)
        if (
            a != b
            and not (a != a and b != b)
            and not abs(a - b) <= float(ratio) * abs(b) + float(distance or 0)
        ):
            return False
    return True


def read_case(path: Path) -> Case:
    case = Case(path)
    body = []
    for line in path.read_text().splitlines():
        text = line[3:] if line.startswith("// ") else ""
        key, _, rest = text.partition(" ")
        if key in ("in", "out"):
            head, _, values = text.partition(":")
            words = head.split()
            tolerance = words[3][1:] if len(words) > 3 else ""
            column = Column(words[1], words[2][1:], values.split(), tolerance)
            (case.inputs if key == "in" else case.outputs).append(column)
        elif key in ("block:", "grid:", "cluster:", "scratch:"):
            setattr(case, key[:-1], int(rest))
        elif key == "target:":
            case.target = rest.strip()
        elif key == "tensor:":
            case.tensor = [int(word) for word in rest.split()]
        elif key == "gpu:":
            case.not_on_gpu = rest
        elif key == "reg":
            name, kind = rest.split()
            case.registers.append(f".reg {kind} {name};")
        elif key == "outside":
            case.outside += rest + "\n"
        else:
            body.append(line)
    case.body = "\n".join(body)
    return case
