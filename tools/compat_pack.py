# SPDX-License-Identifier: Apache-2.0
"""How do the sources of a sample get to a machine that has torch's headers and time? As an archive
of what they include, with the folders and flags of each (rows.json), and what it found comes back
into the state of tools/compat-list."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

# Flags of a setup.py without which a source means something else, whatever else is built there.
_MEANING = re.compile(r"-U__CUDA_NO_\w+|--expt-extended-lambda|--extended-lambda|-std=c\+\+2\w")


def setup_flags(root: Path, source: Path) -> list[str]:
    """Of the nearest setup.py above the source, as its text has them."""
    for folder in source.parents:
        setup = folder / "setup.py"
        if setup.is_file():
            found = set(_MEANING.findall(setup.read_text(encoding="utf-8", errors="replace")))
            if source.suffix != ".cu":
                found = {flag for flag in found if flag.startswith("-std")}
            return sorted(found)
        if folder == root:
            break
    return []


def pack(folder: Path, rows: list[dict], archive: Path, headers_of: Callable) -> int:
    """Paths in rows.json are relative to the archive's folder."""
    known: dict[Path, object] = {}
    listed, files = [], set()
    for row in rows:
        root = folder / row["repository"].replace("/", "+", 1)
        headers = known.setdefault(root, None) or headers_of(root)
        known[root] = headers
        source = root / row["path"]
        _, _, folders, _, reached = headers.closure(source)
        files |= reached
        listed.append({
            "key": f"{row['repository']} {row['path']}",
            "source": source.relative_to(folder).as_posix(),
            "include": [one.relative_to(folder).as_posix() for one in folders],
            "flags": [*(f"-D{one}" for one in [*row.get("defines", ()), "WITH_CUDA"]),
                      *setup_flags(root, source)],
        })  # fmt: skip
    with tarfile.open(archive, "w:gz") as out:
        text = json.dumps(listed, indent=1).encode()
        info = tarfile.TarInfo("rows.json")
        info.size = len(text)
        out.addfile(info, io.BytesIO(text))
        for path in sorted(files):
            out.add(path, path.relative_to(folder).as_posix(), recursive=False)
    print(f"{len(listed)} sources, {len(files)} files, {archive.stat().st_size} bytes")
    return 0


def take(state: Path, results: Path) -> int:
    done = json.loads(state.read_text())
    found = json.loads(results.read_text())
    for key, result in found["sources"].items():
        if key in done:
            done[key]["never"] = result
    done["torch's machine"] = found["machine"]
    state.write_text(json.dumps(done, indent=1) + "\n")
    return 0
