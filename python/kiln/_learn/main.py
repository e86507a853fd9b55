# SPDX-License-Identifier: Apache-2.0
"""`kiln learn [list|start|check|hint|watch|notebooks]`: the exercises of the lessons, in the
terminal, and the lessons as notebooks.

Progress is not stored: an exercise is done if its check passes. What a check said is kept next to
the exercises with a hash of the file, so that listing them takes no time.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from .. import _progress
from ..command import PACKAGE
from ..errors import KilnError, printable
from .checks import LIMIT_S, NotYet
from .exercises import EXERCISES, FOLDER, Exercise, named
from .notebooks import lessons_in, link_to_docs, write_notebooks

_STATE = ".kiln-learn.json"
_TICK_S = 0.3
_FOLDER = "kiln-exercises"
_OF_ALL = ("list", "start", "notebooks")  # actions that are not about one exercise
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)  # no line of progress


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="kiln learn", add_help=False)
    parser.add_argument("action", nargs="?", default="list")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--folder", type=Path, default=Path(_FOLDER))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT_S.get())
    options = parser.parse_args(words)
    actions: dict[str, Callable[[Path, str], int]] = {
        "list": show_list, "start": start, "check": check, "hint": hint, "watch": watch,
        "notebooks": notebooks,
    }  # fmt: skip
    LIMIT_S.set(options.limit)
    QUIET.set(options.quiet)
    try:
        if options.action not in actions:
            raise Wrong(f"kiln learn has no action '{options.action}'", fix=f"{', '.join(actions)}")
        if options.name and options.action in _OF_ALL:
            raise _not_of_one(options.action, options.name)
        if options.name and named(options.name) is None:
            raise _no_exercise(options.name)
        if options.json:
            return as_json(options.folder, options.action, options.name)
        code = actions[options.action](options.folder, options.name)
        sys.stdout.flush()
        return code
    except KilnError as error:
        fault = "usage" if isinstance(error, Wrong) else "environment"
        return _failed(error, fault, options.json)
    except BrokenPipeError:  # who reads has seen enough: kiln learn | head -3
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Of the exercises: a folder or a file that cannot be written or read.
        why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        fix = "use another folder: --folder DIR"
        failed = KilnError(f"cannot use the folder {options.folder}", why, fix)
        return _failed(failed, "environment", options.json)
    except KeyboardInterrupt:
        return 130


class Wrong(KilnError):
    """Something in the command line: exit code 2."""


def _no_exercise(name: str) -> Wrong:
    near = difflib.get_close_matches(name, [one.name for one in EXERCISES], 1)
    why = f"did you mean {near[0]}?" if near else "no exercise has a similar name"
    return Wrong(f"there is no exercise '{name}'", why, "kiln learn lists them")


def _not_of_one(action: str, name: str) -> Wrong:
    if named(name) is not None:
        fix = f"kiln learn {action}, then kiln learn check {name}"
    elif action == "list":
        fix = f"kiln learn --folder {name} lists what is done in that folder"
    else:
        fix = f"kiln learn {action} --folder {name} writes to that folder"
    return Wrong(f"kiln learn {action} takes no '{name}'", "it is about all of them", fix)


def _no_folder(folder: Path) -> Wrong:
    what = f"there are no exercises in {folder}"
    if folder.exists():
        return Wrong(what, "it is a file, not a folder", "--folder DIR")
    where = "" if str(folder) == _FOLDER else f" --folder {folder}"
    return Wrong(what, "there is no such folder", f"kiln learn start{where} writes them")


def _failed(error: KilnError, fault: str, as_object: bool) -> int:
    if as_object:
        said = {"what": error.what, "why": error.why, "fix": error.fix, "fault": fault}
        print(json.dumps({"error": said}, indent=2))
    print(error, file=sys.stderr)
    return {"usage": 2, "environment": 3}[fault]


def show_list(folder: Path, _name: str) -> int:
    begun = folder.is_dir()
    passed = _passed(folder)
    for one in EXERCISES:
        mark = "x" if one.name in passed else " "
        print(f"[{mark}] {one.name:<9} lesson {one.lesson:<3} {one.goal}")
    if begun:
        print(f"{len(passed)} of {len(EXERCISES)} done; edit {folder}/*, then: kiln learn check")
    else:
        print(f"kiln learn start writes them to {folder}")
    return 0


def as_json(folder: Path, action: str, name: str) -> int:
    """list and check for programs."""
    if action not in ("list", "check"):
        raise Wrong(
            f"kiln learn {action} has no --json", "only list and check have it", "leave it out"
        )
    code = 0
    if action == "check":
        with contextlib.redirect_stdout(sys.stderr):
            code = check(folder, name)
    passed = _passed(folder)
    rows = [
        {"name": one.name, "lesson": one.lesson, "goal": one.goal, "done": one.name in passed}
        for one in EXERCISES
    ]
    print(json.dumps({"exercises": rows}, indent=2))
    return code


def start(folder: Path, _name: str) -> int:
    """Files that exist stay as they are: they may be half done."""
    if folder.exists() and not folder.is_dir():
        raise Wrong(
            f"cannot write exercises to {folder}", "it is a file, not a folder", "--folder DIR"
        )
    folder.mkdir(parents=True, exist_ok=True)
    new = [one for one in EXERCISES if not (folder / one.file).exists()]
    for one in new:
        shutil.copyfile(FOLDER / one.file, folder / one.file)
    kept = len(EXERCISES) - len(new)
    plural = "" if len(new) == 1 else "s"
    print(
        f"{len(new)} exercise{plural} written to {folder}"
        + f", {kept} kept as they are" * bool(kept)
    )
    print(f"next: edit {folder / EXERCISES[0].file}, with kiln learn watch in another terminal")
    return 0


def notebooks(folder: Path, _name: str) -> int:
    """The lessons; notebooks that exist stay as they are."""
    if folder.exists() and not folder.is_dir():
        raise Wrong(
            f"cannot write notebooks to {folder}", "it is a file, not a folder", "--folder DIR"
        )
    lessons = PACKAGE / "docs" / "learn"
    count = len(lessons_in(lessons))
    if not count:
        raise KilnError(
            "cannot write notebooks", f"{lessons} has no lessons", "install kiln-cuda again"
        )
    new = len(write_notebooks(lessons, folder, link_to_docs, keep=True))
    kept = f", {count - new} kept as they are" * (new < count)
    print(f"{new} notebooks written to {folder}{kept}")
    print(f"next: pip install jupyterlab torch, then jupyter lab {folder}")
    return 0


def check(folder: Path, name: str) -> int:
    """The exercise, or all in order until one is not done."""
    if not folder.is_dir():
        raise _no_folder(folder)
    for one in [named(name)] if name else EXERCISES:
        assert one is not None
        if not check_one(folder, one):
            return 1
    if not name:
        print("All exercises are done.")
    return 0


def check_one(folder: Path, one: Exercise) -> bool:
    path = folder / one.file
    if not path.is_file():
        why = "is a folder; remove it" if path.is_dir() else "does not exist"
        print(f"[ ] {one.name}: {path} {why}; kiln learn start writes it again")
        return False
    before = _digest(path)
    try:
        with _progress.line(quiet=QUIET.get()) as show:
            show(f"checking {one.name}")
            one.check(path.resolve())
    except NotYet as missing:
        print(f"[ ] {one.name}: {one.goal}\n{_indented(str(missing))}")
        print(f"    kiln learn hint {one.name}")
        return False
    if _digest(path) == before:
        _remember(folder, one.name, before)
    print(f"[x] {one.name}: {one.goal}")
    return True


def hint(folder: Path, name: str) -> int:
    """One more each time it is asked for."""
    one = named(name) if name else _first_open(folder)
    if one is None:
        print("All exercises are done.")
        return 0
    if not folder.is_dir():
        raise _no_folder(folder)
    state = _state(folder)
    given = state.setdefault("hints", {}).get(one.name, 0)
    for number, text in enumerate(one.hints[: given + 1], 1):
        print(f"{one.name}, hint {number} of {len(one.hints)}: {text}")
    state["hints"][one.name] = min(given + 1, len(one.hints) - 1)
    _write(folder, state)
    return 0


def watch(folder: Path, name: str) -> int:
    """Checks the first open exercise, and again whenever its file is saved."""
    if not folder.is_dir():
        raise _no_folder(folder)
    while True:
        one = named(name) if name else _first_open(folder)
        if one is None:
            print("All exercises are done.")
            return 0
        seen = _digest(folder / one.file)
        if check_one(folder, one) and name:
            return 0
        if one.name in _passed(folder):
            continue
        print(f"    watching {folder / one.file} (Ctrl-C to stop)", flush=True)
        while _digest(folder / one.file) == seen:
            time.sleep(_TICK_S)


def _first_open(folder: Path) -> Exercise | None:
    passed = _passed(folder)
    return next((one for one in EXERCISES if one.name not in passed), None)


def _passed(folder: Path) -> set[str]:
    """Whose file is the one that passed."""
    passed = _state(folder).get("passed", {})
    return {
        one.name
        for one in EXERCISES
        if passed.get(one.name, "") == _digest(folder / one.file) != ""
    }


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _state(folder: Path) -> dict:
    """What of the file is as this module writes it; a damaged one is begun again."""
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    kinds = {"passed": str, "hints": int}
    return {
        key: state[key]
        for key, kind in kinds.items()
        if isinstance(state, dict)
        and isinstance(state.get(key), dict)
        and all(isinstance(value, kind) for value in state[key].values())
    }


def _remember(folder: Path, name: str, digest: str) -> None:
    state = _state(folder)
    state.setdefault("passed", {})[name] = digest
    _write(folder, state)


def _write(folder: Path, state: dict) -> None:
    if folder.is_dir():
        (folder / _STATE).write_text(json.dumps(state), encoding="utf-8")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in printable(text).splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
