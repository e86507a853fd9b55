# SPDX-License-Identifier: Apache-2.0
"""What does `kiln inspect file.py:kernel` look at? The script runs on the engine until it launches
the Triton kernel; its PTX, assembled by the ptxas that Triton brings, goes to FILE.

python -m kiln._processes.triton_kernel REQUEST.json ANSWER.json
"""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import KilnError
from .answer import answer_request


class _Found(BaseException):
    """Ends the script; no `except Exception` of the script stops it."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    script, kernel = request["script"], request["kernel"]
    os.environ["KILN_DEVICE"] = "engine"
    import triton

    import kiln.triton

    if request.get("arch"):
        kiln.triton.enable(request["arch"])
    found: list[Any] = []
    seen: list[str] = []
    compiled = triton.compiler.CompiledKernel
    start = compiled._init_handles

    def watch(self: Any) -> None:
        seen.append(self.metadata.name)
        if self.metadata.name == kernel:
            found.append(self)
            raise _Found
        start(self)

    compiled._init_handles = watch
    sys.argv = [script]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except _Found:
        pass
    except SystemExit:
        pass
    finally:
        compiled._init_handles = start
    if not found:
        names = ", ".join(dict.fromkeys(seen)) or "none"
        raise KilnError(
            f"cannot inspect {kernel} of {script}",
            f"the script launched no Triton kernel of that name; it launched: {names}",
            "run it with arguments that reach the kernel, or name another",
        )
    ptx = found[0].asm["ptx"]
    ptx = ptx.decode() if isinstance(ptx, bytes) else ptx
    cubin = _assemble(ptx, kernel)
    Path(request["file"]).write_bytes(cubin if cubin is not None else ptx.encode())
    metadata = found[0].metadata
    return {"threads": 32 * metadata.num_warps, "shared_bytes": metadata.shared}


def _assemble(ptx: str, kernel: str) -> bytes | None:
    """The cubin; None where Triton has no ptxas."""
    from triton.backends.nvidia.compiler import get_ptxas

    from .._launch.ptx_text import read_ptx

    text = read_ptx(ptx, kernel)
    try:
        # Before 3.6 there was one assembler for every architecture.
        ptxas = get_ptxas(*[text.arch][: len(inspect.signature(get_ptxas).parameters)]).path
    except (OSError, RuntimeError):
        return None
    with tempfile.TemporaryDirectory(prefix="kiln-inspect-") as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        arch = f"sm_{text.arch}{text.variant}"
        done = subprocess.run(
            [ptxas, "-lineinfo", f"--gpu-name={arch}", str(source), "-o", str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise KilnError(f"ptxas refuses the PTX of {kernel}", done.stderr.strip())
        return made.read_bytes()


if __name__ == "__main__":
    sys.exit(answer_request(run, sys.argv[1], sys.argv[2], "the script failed"))
