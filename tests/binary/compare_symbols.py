#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the symbols, libraries and wheel tags of `kiln inspect` agree with nm, readelf, ldd and
auditwheel?

    compare_symbols.py --kiln KILN [--count N] [FOLDER...]

Compares N shared libraries (default 200) under the folders (default: the system's, and this
Python's packages). Without auditwheel its part is skipped by name.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path


def run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, errors="replace").stdout


def is_native_elf(path: Path) -> bool:
    try:
        head = path.open("rb").read(20)
    except OSError:
        return False
    own = Path(sys.executable).resolve().open("rb").read(20)
    return len(head) == 20 and head[:6] == own[:6] and head[18:20] == own[18:20] and head[16] == 3


def libraries(folders: list[Path], count: int) -> list[Path]:
    """Every folder gives its share, smallest paths first, so that one large package does not crowd
    out the rest."""
    lists = []
    for folder in folders:
        seen = set()
        found = []
        for path in sorted(folder.rglob("*.so*")):
            real = path.resolve()
            if real in seen or not real.is_file() or not is_native_elf(real):
                continue
            seen.add(real)
            found.append(path)
        lists.append(found)
    out: list[Path] = []
    while len(out) < count and any(lists):
        for found in lists:
            if found and len(out) < count:
                out.append(found.pop(0))
    return out


def nm_rows(path: Path) -> Counter:
    rows = Counter()
    for line in run("nm", "-D", "--with-symbol-versions", str(path)).splitlines():
        words = line.split()
        if len(words) >= 2:
            rows[(words[-2], words[-1])] += 1
    return rows


def kiln_nm_rows(symbols: dict) -> Counter:
    rows = Counter()
    for one in symbols["defined"] + symbols["needed"]:
        # nm leaves it away from the symbol that stands for the version itself.
        version = None if one["version"] == one["name"] else one["version"]
        mark = "@@" if one.get("default_version") else "@"
        rows[(one["nm"], one["name"] + (mark + version if version else ""))] += 1
    return rows


def readelf_rows(path: Path) -> dict[str, list[tuple]]:
    tables: dict[str, list[tuple]] = {}
    table: list[tuple] = []
    pattern = re.compile(
        r"\s*\d+:\s+([0-9a-f]+)\s+(\w+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+\[[^]]*\])?\s+(\S+)(?: (.*))?$"
    )
    for line in (
        run("readelf", "-sW", str(path)).replace("<OS specific>: 10", "UNIQUE").splitlines()
    ):
        if line.startswith("Symbol table"):
            table = tables.setdefault(line.split("'")[1], [])
            continue
        match = pattern.match(line)
        if match:
            value, size, kind, bind, visibility, section, name = match.groups()
            name = re.sub(r"@.*$", "", (name or "").split(" ")[0])
            table.append((int(value, 16), int(size, 0), kind, bind, visibility, section, name))
    return tables


def kiln_rows(rows: list[dict]) -> list[tuple]:
    # In .symtab linkers write the version into the name itself.
    names = [re.sub(r"@.*$", "", row["name"]) for row in rows]
    return [
        (r["value"], r["bytes"], r["type"], r["binding"], r["visibility"], r["section"], name)
        for r, name in zip(rows, names)
    ]


def ldd_rows(path: Path) -> dict[str, str]:
    rows = {}
    for line in run("ldd", str(path)).splitlines():
        match = re.match(r"\s*(\S+) => (not found|\S+)", line)
        if match:
            rows[match.group(1)] = (
                "" if match.group(2) == "not found" else str(Path(match.group(2)).resolve())
            )
    return rows


def auditwheel_tag(path: Path, policies: object) -> str:
    from auditwheel.elfutils import elf_find_versioned_symbols
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        versioned: dict[str, set[str]] = {}
        for library, version in elf_find_versioned_symbols(ELFFile(file)):
            versioned.setdefault(library, set()).add(version)
    return policies.versioned_symbols_policy(versioned).name


def disagreements(kiln: str, path: Path, policies: object) -> list[str]:
    answer = json.loads(run(kiln, "inspect", str(path), "--all-symbols", "--json"))
    if "error" in answer:
        return [f"kiln: {answer['error']}"]
    symbols = answer["files"][0]["symbols"]
    out = []
    ours, theirs = kiln_nm_rows(symbols), nm_rows(path)
    if ours != theirs:
        out.append(f"nm -D: only nm {list(theirs - ours)[:3]}, only kiln {list(ours - theirs)[:3]}")
    for name, rows in readelf_rows(path).items():
        mine = kiln_rows(symbols.get(name.strip("."), []))
        # readelf names sections' symbols after the section, and cuts nothing with -W.
        pairs = [(a, b) for a, b in zip(rows, mine) if a != b and a[2] != "SECTION"]
        if len(rows) != len(mine) or pairs:
            out.append(
                f"readelf -s {name}: {len(rows)} and {len(mine)} rows, first difference {pairs[:1]}"
            )
    found = {
        lib["name"]: str(Path(lib["path"]).resolve()) if lib["found_by_loader"] else ""
        for lib in symbols["libraries"]
    }
    # ldd leaves out what the object names by an absolute path; the loader itself has no arrow.
    found = {
        name: where
        for name, where in found.items()
        if "/" not in name and not name.startswith("ld-linux")
    }
    theirs_ldd = {
        name: where
        for name, where in ldd_rows(path).items()
        if not name.startswith(("ld-linux", "linux-vdso"))
    }
    if found != theirs_ldd:
        both = set(found.items()) ^ set(theirs_ldd.items())
        out.append(f"ldd: {sorted(both)[:4]}")
    if policies:
        tag = auditwheel_tag(path, policies)
        if symbols["system"]["tag"] != tag:
            out.append(f"auditwheel: {tag}, kiln {symbols['system']['tag']}")
    return out


def load_policies() -> object:
    try:
        from auditwheel.architecture import Architecture
        from auditwheel.libc import Libc
        from auditwheel.policy import WheelPolicies
    except ImportError:
        print("skipped: auditwheel is not installed")
        return None
    return WheelPolicies(libc=Libc.GLIBC, arch=Architecture.detect())


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kiln", required=True)
    arguments.add_argument("--count", type=int, default=200)
    arguments.add_argument("folders", nargs="*", type=Path)
    given = arguments.parse_args()
    folders = given.folders or [
        Path("/usr/lib"),
        *{Path(p) for p in sys.path if p.endswith("-packages")},
    ]
    paths = libraries([f for f in folders if f.is_dir()], given.count)
    policies = load_policies()
    wrong = 0
    for path in paths:
        for line in disagreements(given.kiln, path, policies):
            wrong += 1
            print(f"{path}: {line}")
    tools = "nm, readelf, ldd" + (", auditwheel" if policies else "")
    print(f"{len(paths)} libraries compared with {tools}: {wrong} disagreements")
    return 1 if wrong or len(paths) < given.count else 0


if __name__ == "__main__":
    sys.exit(main())
