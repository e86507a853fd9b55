# SPDX-License-Identifier: Apache-2.0
"""What does `kiln profile` run? A script, an op of a built library, or a function, under
kiln.profile.

python -m kiln._processes.profile REQUEST.json ANSWER.json
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from ..errors import KilnError, UsageError
from .answer import answer_request


def run(request: dict[str, Any]) -> dict[str, Any]:
    from ..loader import load
    from ..modules import library_of
    from ..profiling import profile, profile_named, profile_script

    arguments = request["arguments"]
    if request["kind"] == "script":
        sys.path.insert(0, str(Path(request["target"]).resolve().parent))
        seen = profile_script(request["target"], arguments)
    elif request["kind"] == "op":
        module = load(request["target"])
        op = getattr(module, request["op"].split(".")[0], None)
        if op is None:
            raise UsageError(
                f"{request['target']} has no op '{request['op']}'",
                "its ops are " + ", ".join(sorted(vars(module))),
            )
        args, kwargs = _read(arguments, library_of(module), request["op"])
        seen = profile(op, *args, **kwargs)
        seen.json["title"] = f"{request['op']}({', '.join(arguments)})"
    else:
        sys.path.insert(0, str(Path.cwd()))
        args, kwargs = _read(arguments)
        seen = profile(profile_named(request["target"]), *args, **kwargs)
        seen.json["title"] = f"{request['target']}({', '.join(arguments)})"
    if request["trace"]:
        seen.save_trace(request["trace"])
    return seen.json


def _read(texts: list[str], *of_op: Any) -> tuple[list[Any], dict[str, Any]]:
    from .._argument_text import arguments_of
    from ..place import device

    try:
        return arguments_of(texts, 0, device(), *of_op)
    except KilnError as error:  # the op did not run: the command line is wrong
        raise UsageError(error.what, error.why, error.fix) from None


def main(request_path: str, answer_path: str) -> int:
    return answer_request(
        run, request_path, answer_path, "what was to be profiled failed", why=_where
    )


def _where(error: Exception) -> str:
    """With the innermost line that is the user's own: kiln's lines say nothing to him."""
    own = Path(__file__).resolve().parents[1]
    trail = traceback.extract_tb(error.__traceback__)
    place = [one for one in trail if own not in Path(one.filename).resolve().parents][-1:]
    at = "".join(f" ({one.filename}:{one.lineno})" for one in place)
    return f"{type(error).__name__}: {error}{at}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
