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

from ..errors import KilnError
from .answer import answer_request


def run(request: dict[str, Any]) -> dict[str, Any]:
    from .._argument_text import arguments_of
    from ..loader import load
    from ..modules import library_of
    from ..place import device
    from ..profiling import profile, profile_named, profile_script

    arguments = request["arguments"]
    if request["kind"] == "script":
        sys.path.insert(0, str(Path(request["target"]).resolve().parent))
        seen = profile_script(request["target"], arguments)
    elif request["kind"] == "op":
        module = load(request["target"])
        op = getattr(module, request["op"].split(".")[0], None)
        if op is None:
            raise KilnError(
                f"{request['target']} has no op '{request['op']}'",
                "its ops are " + ", ".join(sorted(vars(module))),
            )
        args, kwargs = arguments_of(arguments, 0, device(), library_of(module), request["op"])
        seen = profile(op, *args, **kwargs)
        seen.json["title"] = f"{request['op']}({', '.join(arguments)})"
    else:
        sys.path.insert(0, str(Path.cwd()))
        args, kwargs = arguments_of(arguments, 0, device())
        seen = profile(profile_named(request["target"]), *args, **kwargs)
        seen.json["title"] = f"{request['target']}({', '.join(arguments)})"
    if request["trace"]:
        seen.save_trace(request["trace"])
    return seen.json


def main(request_path: str, answer_path: str) -> int:
    return answer_request(
        run, request_path, answer_path, "what was to be profiled failed", why=_where
    )


def _where(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
