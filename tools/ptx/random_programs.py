# SPDX-License-Identifier: Apache-2.0
"""How does a random PTX program look? Registers of four kinds filled from memory, straight lines,
branches that diverge, loops with a bounded count, and all registers written at the end. Only
operations whose bits the manual fixes."""

from __future__ import annotations

import random
import struct

COUNT = 6  # registers of a kind
KINDS = {"r": "b32", "d": "b64", "f": "f32", "e": "f64"}
INTERESTING_32 = [
    0,
    1,
    2,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x3F800000,
    0x7F800000,
    0x7FC00000,
    0x00800000,
]
ROUNDINGS = ["rn", "rz", "rm", "rp"]


class Program:
    def __init__(self, seed: int, length: int = 60) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.ends: list[int] = []  # lines after which a shorter program may end
        self.block(length, 0)

    def reg(self, kind: str) -> str:
        return f"%{kind}{self.random.randrange(COUNT)}"

    def value(self, kind: str) -> str:
        if kind in "rd" and self.random.random() < 0.2:
            return str(
                self.random.choice(INTERESTING_32)
                if self.random.random() < 0.7
                else self.random.randrange(64)
            )
        return self.reg(kind)

    def position(self) -> str:
        """Of a bit field: ptxas takes no constant above 255, and with one above 31 gives 0 for the
        sign."""
        return str(self.random.randrange(32)) if self.random.random() < 0.2 else self.reg("r")

    def predicate(self) -> str:
        return f"%p{self.random.randrange(3)}"

    def integer(self, kind: str) -> str:
        bits = 32 if kind == "r" else 64
        t, d, a, b, c = (
            self.random.choice("us"),
            self.reg(kind),
            *(self.value(kind) for _ in range(3)),
        )
        pick = self.random.randrange(16)
        if pick < 5:
            name = self.random.choice(["add", "sub", "min", "max", "mul.lo", "mul.hi"])
            return f"{name}.{t}{bits} {d}, {a}, {b};"
        if pick < 7:
            return f"{self.random.choice(['and', 'or', 'xor'])}.b{bits} {d}, {a}, {b};"
        if pick == 7:
            return f"mad.{self.random.choice(['lo', 'hi'])}.{t}{bits} {d}, {a}, {b}, {c};"
        if pick == 8:
            return (
                f"{self.random.choice(['shl.b', 'shr.u', 'shr.s'])}{bits} {d}, {a}, "
                f"{self.value('r')};"
            )
        if pick == 9:
            name = self.random.choice(["popc.b", "clz.b", "bfind.u", "bfind.s"])
            return f"{name}{bits} {self.reg('r')}, {self.reg(kind)};"
        if pick == 10:
            return f"bfe.{t}{bits} {d}, {self.reg(kind)}, {self.position()}, {self.position()};"
        if pick == 11:
            return (
                f"bfi.b{bits} {d}, {self.reg(kind)}, {self.reg(kind)}, {self.position()}, "
                f"{self.position()};"
            )
        if pick == 12:
            return f"selp.b{bits} {d}, {a}, {b}, {self.predicate()};"
        if pick == 13 and kind == "r":
            return (
                f"lop3.b32 {d}, {self.reg('r')}, {self.reg('r')}, {self.reg('r')}, "
                f"{self.random.randrange(256)};"
            )
        if pick == 14 and kind == "r":
            return f"prmt.b32 {d}, {self.reg('r')}, {self.reg('r')}, {self.value('r')};"
        if pick == 15 and kind == "r":
            return (
                f"shf.{self.random.choice('lr')}.{self.random.choice(['clamp', 'wrap'])}.b32 "
                f"{d}, {a}, {b}, {c};"
            )
        return (
            f"{self.random.choice(['abs.s', 'neg.s', 'not.b', 'brev.b'])}{bits} {d}, "
            f"{self.reg(kind)};"
        )

    def floating(self, kind: str) -> str:
        t = "f32" if kind == "f" else "f64"
        d, a, b, c = (self.reg(kind) for _ in range(4))
        ftz = ".ftz" if kind == "f" and self.random.random() < 0.2 else ""
        rounding = self.random.choice(ROUNDINGS)
        pick = self.random.randrange(8)
        if pick < 3:
            sat = ".sat" if kind == "f" and self.random.random() < 0.1 else ""
            return (
                f"{self.random.choice(['add', 'sub', 'mul'])}.{rounding}{ftz}{sat}.{t} {d}, "
                f"{a}, {b};"
            )
        if pick == 3:
            return f"fma.{rounding}{ftz}.{t} {d}, {a}, {b}, {c};"
        if pick == 4:
            return f"{self.random.choice(['min', 'max'])}{ftz}.{t} {d}, {a}, {b};"
        if pick == 5:
            name = self.random.choice(["div", "rcp", "sqrt"])
            operands = f"{d}, {a}, {b}" if name == "div" else f"{d}, {a}"
            return f"{name}.{rounding}.{t} {operands};"
        if pick == 6:
            return f"{self.random.choice(['abs', 'neg'])}.{t} {d}, {a};"
        return f"selp.{t} {d}, {a}, {b}, {self.predicate()};"

    def conversion(self) -> str:
        to_int = self.random.choice(["rni", "rzi", "rmi", "rpi"])
        rounding = self.random.choice(ROUNDINGS)
        sign = self.random.choice("us")
        return self.random.choice(
            [
                f"cvt.{to_int}.{sign}32.f32 {self.reg('r')}, {self.reg('f')};",
                f"cvt.{to_int}.{sign}64.f64 {self.reg('d')}, {self.reg('e')};",
                f"cvt.{rounding}.f32.{sign}32 {self.reg('f')}, {self.reg('r')};",
                f"cvt.{rounding}.f64.{sign}64 {self.reg('e')}, {self.reg('d')};",
                f"cvt.{rounding}.f32.f64 {self.reg('f')}, {self.reg('e')};",
                f"cvt.f64.f32 {self.reg('e')}, {self.reg('f')};",
                f"cvt.u64.u32 {self.reg('d')}, {self.reg('r')};",
                f"cvt.s64.s32 {self.reg('d')}, {self.reg('r')};",
                f"cvt.u32.u64 {self.reg('r')}, {self.reg('d')};",
                f"mul.wide.{sign}32 {self.reg('d')}, {self.reg('r')}, {self.reg('r')};",
                f"mov.b32 {self.reg('f')}, {self.reg('r')};",
                self.bits_of_float(self.reg("r"), self.reg("f")),
            ]
        )

    def bits_of_float(self, into: str, of: str) -> str:
        """Whether a NaN keeps its sign through neg, abs, max or selp depends on what ptxas makes of
        them."""
        return f"setp.nan.f32 %q, {of}, {of}; selp.b32 {into}, 0x7FFFFFFF, {of}, %q;"

    def comparison(self) -> str:
        kind = self.random.choice("rdfe")
        order = self.random.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        if kind in "fe":
            order += self.random.choice(["", "u"])
            return (
                f"setp.{order}.{KINDS[kind]} {self.predicate()}, {self.reg(kind)}, "
                f"{self.reg(kind)};"
            )
        t = self.random.choice("us") + KINDS[kind][1:]
        return f"setp.{order}.{t} {self.predicate()}, {self.reg(kind)}, {self.value(kind)};"

    def simple(self) -> str:
        pick = self.random.random()
        if pick < 0.4:
            text = self.integer(self.random.choice("rrd"))
        elif pick < 0.65:
            text = self.floating(self.random.choice("ffe"))
        elif pick < 0.8:
            text = self.conversion()
        else:
            return self.comparison()
        if self.random.random() < 0.15:
            return f"@{self.random.choice(['', '!'])}{self.predicate()} {text}"
        return text

    def block(self, length: int, depth: int) -> None:
        while length > 0:
            if depth < 3 and length > 8 and self.random.random() < 0.15:
                self.labels += 1
                label, inside = f"$L{self.labels}", self.random.randrange(3, 12)
                if self.random.random() < 0.6:
                    self.lines += [self.comparison(), f"@{self.predicate()} bra {label}_else;"]
                    self.block(inside, depth + 1)
                    self.lines += [f"bra {label}_end;", f"{label}_else:"]
                    self.block(inside, depth + 1)
                    self.lines.append(f"{label}_end:")
                else:
                    # Each lane its own count, from 0 to 7.
                    self.lines += [f"and.b32 %n{depth}, {self.reg('r')}, 7;", f"{label}_top:"]
                    self.block(inside, depth + 1)
                    self.lines += [
                        f"sub.u32 %n{depth}, %n{depth}, 1;",
                        f"setp.lt.s32 %q, %n{depth}, 0;",
                        f"@!%q bra {label}_top;",
                    ]
                length -= inside
            else:
                self.lines.append(self.simple())
                length -= 1
            if depth == 0:
                self.ends.append(len(self.lines))

    def text(self, version: str, target: str, threads: int, end: int | None = None) -> str:
        """The whole, or what comes before line `end`."""
        lines = [
            f".version {version}",
            f".target {target}",
            ".address_size 64",
            ".visible .entry k(.param .u64 memory)",
            "{",
        ]
        lines += [f".reg .{kind} %{name}<{COUNT}>;" for name, kind in KINDS.items()]
        lines += [".reg .pred %p<3>, %q;", ".reg .b32 %n<4>, %lane;", ".reg .b64 %at, %base;"]
        lines += [
            "ld.param.u64 %base, [memory];",
            "mov.u32 %lane, %tid.x;",
            "mad.wide.u32 %at, %lane, 8, %base;",
        ]
        places = [
            (name, i, slot * threads * 8)
            for slot, (name, i) in enumerate((n, i) for n in KINDS for i in range(COUNT))
        ]
        for name, i, at in places:
            lines.append(f"ld.global.{KINDS[name]} %{name}{i}, [%at+{at}];")
        lines += [f"setp.ne.u32 %p{i}, %r{i}, 0;" for i in range(3)] + ["setp.ne.u32 %q, %r3, 0;"]
        lines += self.lines[:end]
        # Which NaN an operation gives is not the manual's business.
        lines += [
            f"setp.nan.f32 %q, %f{i}, %f{i}; selp.f32 %f{i}, 0f7FFFFFFF, %f{i}, %q;"
            for i in range(COUNT)
        ]
        lines += [
            f"setp.nan.f64 %q, %e{i}, %e{i}; selp.f64 %e{i}, 0d7FF8000000000000, %e{i}, %q;"
            for i in range(COUNT)
        ]
        for name, i, at in places:
            lines.append(f"st.global.{KINDS[name]} [%at+{at}], %{name}{i};")
        return "\n".join([*lines, "ret;", "}", ""])


def random_memory(seed: int, threads: int) -> bytes:
    chance = random.Random(seed ^ 0x5EED)
    out = bytearray()
    for name in KINDS:
        for _ in range(COUNT * threads):
            if name in "rf":
                word = (
                    chance.choice(INTERESTING_32)
                    if chance.random() < 0.3
                    else chance.getrandbits(32)
                )
                if name == "f" and chance.random() < 0.4:
                    word = int.from_bytes(struct.pack("<f", chance.uniform(-100, 100)), "little")
            elif name == "e" and chance.random() < 0.6:
                word = int.from_bytes(struct.pack("<d", chance.uniform(-1e6, 1e6)), "little")
            else:
                word = chance.getrandbits(64)
            out += word.to_bytes(8, "little")
    return bytes(out)
