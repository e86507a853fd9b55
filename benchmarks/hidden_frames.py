# SPDX-License-Identifier: Apache-2.0
"""How does valgrind run torch? With copies of its libraries whose unwind tables it does not see.

valgrind 3.19 reads .eh_frame of every library that is mapped, and on aarch64 it fails
at an expression that some libraries of torch and numpy have there. A copy in which that section has
another name runs as before: the loader and the unwinder find the table by its program header.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
from pathlib import Path

SECTION, HIDDEN = b".eh_frame", b".xh_frame"


def hide_frames(library: Path, copy: Path) -> None:
    """Renames the section in the table of section names of a 64-bit ELF file."""
    shutil.copyfile(library, copy)
    with copy.open("r+b") as file:
        head = file.read(64)
        table = struct.unpack_from("<Q", head, 40)[0]
        entry_bytes, _, names_index = struct.unpack_from("<HHH", head, 58)
        file.seek(table + entry_bytes * names_index)
        offset, size = struct.unpack_from("<QQ", file.read(64), 24)
        file.seek(offset)
        at = file.read(size).find(b"\0" + SECTION + b"\0")
        if at >= 0:
            file.seek(offset + at + 1)
            file.write(HIDDEN)


def environment(scratch: Path) -> dict[str, str]:
    """What makes the loader take the copies, which are made in `scratch`: most of a gigabyte."""
    folders = [str(scratch)]
    preload = []
    for package, folder in (("torch", "lib"), ("numpy", "../numpy.libs")):
        found = importlib.util.find_spec(package)
        if not found or not found.origin:
            continue
        place = (Path(found.origin).parent / folder).resolve()
        folders.append(str(place))
        for library in sorted(place.glob("lib*.so*")):
            hide_frames(library, scratch / library.name)
            # The others are found by name; these two are looked for beside who needs them first.
            if library.name == "libtorch_cpu.so" or "openblas" in library.name:
                preload.append(str(scratch / library.name))
    folders += [folder for folder in [os.environ.get("LD_LIBRARY_PATH", "")] if folder]
    return {"LD_PRELOAD": ":".join(preload), "LD_LIBRARY_PATH": ":".join(folders)}
