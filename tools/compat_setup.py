# SPDX-License-Identifier: Apache-2.0
"""Which extensions does a setup.py build, of which sources and with which flags? The file is run,
with stand-ins for setup() and for the classes of torch.utils.cpp_extension: nothing is built."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

_ENDINGS = (".cu", ".cpp", ".cc", ".cxx", ".c")
# Flags that matter to what a source means. Architectures and levels of warnings do not, and a
# standard that torch's headers refuse is left out.
_KEPT = re.compile(
    r"-[DU]\w|-std=c\+\+(?!11|14)|--expt-|--extended-lambda|--?use_fast_math|-fopenmp$|--?fmad"
)
_ASKS = re.compile(r"\b(CUDAExtension|CppExtension)\b")


def shown(extension: object) -> dict[str, object]:
    """Of an Extension: what a loader must be given."""
    passed = getattr(extension, "extra_compile_args", None) or {}
    by_kind = passed if isinstance(passed, dict) else {"cxx": passed, "nvcc": passed}
    flags = {
        kind: [str(flag) for flag in by_kind.get(kind) or () if _KEPT.match(str(flag))]
        for kind in ("cxx", "nvcc")
    }
    defines = [
        f"-D{name}" + (f"={value}" if value is not None else "")
        for name, value in getattr(extension, "define_macros", None) or ()
    ]
    folders = [str(folder) for folder in getattr(extension, "include_dirs", None) or ()]
    for flag in by_kind.get("cxx") or ():
        if str(flag).startswith("-I") and len(str(flag)) > 2:
            folders.append(str(flag)[2:])
    return {
        "name": extension.name,
        "sources": [os.path.abspath(str(source)) for source in extension.sources],
        "include": [os.path.abspath(folder) for folder in folders],
        "cxx": defines + flags["cxx"],
        "nvcc": defines + flags["nvcc"],
    }


def run(path: str) -> None:
    """In a process of its own: prints the extensions of a setup.py as JSON."""
    import runpy

    import setuptools
    import torch
    from torch.utils import cpp_extension

    found: list[object] = []

    def take(**words: object) -> None:
        found.extend(words.get("ext_modules") or ())

    def extension(name: str, sources: list[str], *_: object, **words: object) -> object:
        kept = {"include_dirs", "define_macros", "extra_compile_args"}
        made = setuptools.Extension(name, [str(source) for source in sources])
        for word in kept & set(words):
            setattr(made, word, words[word])
        return made

    # What a setup.py asks of the machine that it is made for.
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    for one in ("CUDAExtension", "CppExtension"):
        setattr(cpp_extension, one, extension)
    setuptools.setup = take
    try:
        import distutils.core

        distutils.core.setup = take
    except ImportError:
        pass
    os.chdir(Path(path).parent)
    sys.path.insert(0, "")
    sys.argv = ["setup.py", "build_ext", "--inplace"]
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        print("\n" + json.dumps([shown(one) for one in found]))


def asks(setup: Path) -> bool:
    """Whether it is about extensions of torch."""
    return bool(_ASKS.search(setup.read_text(errors="replace")))


def extensions_of(root: Path, limit: float = 60) -> list[dict[str, object]]:
    """Of all setup.py below a folder, with paths relative to it. Extensions with sources that are
    not there are left out, and so are folders outside."""
    found: list[dict[str, object]] = []
    for setup in sorted(root.rglob("setup.py")):
        if not asks(setup):
            continue
        try:
            done = subprocess.run(
                [sys.executable, __file__, str(setup)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            continue
        line = done.stdout.strip().splitlines()[-1:] or [""]
        for one in json.loads(line[0]) if line[0].startswith("[") else ():
            sources = [Path(source) for source in one["sources"]]
            if not sources or not all(
                source.is_file() and source.suffix in _ENDINGS and source.is_relative_to(root)
                for source in sources
            ):
                continue
            one["sources"] = [source.relative_to(root).as_posix() for source in sources]
            inside = [Path(folder) for folder in one["include"]]
            one["include"] = [
                folder.relative_to(root).as_posix()
                for folder in inside
                if folder.is_dir() and folder.is_relative_to(root)
            ]
            found.append(one)
    return found


if __name__ == "__main__":
    run(os.path.abspath(sys.argv[1]))
