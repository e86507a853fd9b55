# SPDX-License-Identifier: Apache-2.0
"""`kiln learn [list|start|check|hint|watch]`: the exercises of the lessons, in the terminal.

Progress is not stored: an exercise is done if its check passes. What a check said is kept next to
the exercises with a hash of the file, so that listing them takes no time.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import KilnError, printable
from .checks import NotYet
from .exercises import EXERCISES, FOLDER, Exercise, named

_STATE = ".kiln-learn.json"
_TICK_S = 0.3


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="kiln learn", add_help=False)
    parser.add_argument("action", nargs="?", default="list")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--folder", type=Path, default=Path("kiln-exercises"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    actions: dict[str, Callable[[Path, str], int]] = {
        "list": show_list, "start": start, "check": check, "hint": hint, "watch": watch,
    }  # fmt: skip
    if options.action not in actions:
        return _usage(
            f"kiln learn has no action '{options.action}'", f"one of {', '.join(actions)}"
        )
    if options.name and named(options.name) is None:
        return _usage(f"there is no exercise '{options.name}'", "kiln learn lists them")
    if options.json:
        return as_json(options.folder, options.action, options.name)
    try:
        return actions[options.action](options.folder, options.name)
    except KilnError as error:
        print(error, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


def _usage(what: str, fix: str) -> int:
    print(f"error: {what}\n  fix: {fix}", file=sys.stderr)
    return 2


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
        return _usage(f"kiln learn {action} has no JSON", "--json is for list and check")
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
    folder.mkdir(parents=True, exist_ok=True)
    new = [one for one in EXERCISES if not (folder / one.file).exists()]
    for one in new:
        shutil.copyfile(FOLDER / one.file, folder / one.file)
    print(f"{len(new)} exercises written to {folder}, {len(EXERCISES) - len(new)} were there")
    print(f"next: edit {folder / EXERCISES[0].file}, with kiln learn watch in another terminal")
    return 0


def check(folder: Path, name: str) -> int:
    """The exercise, or all in order until one is not done."""
    if not folder.is_dir():
        return _usage(f"{folder} does not exist", "kiln learn start")
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
        print(f"[ ] {one.name}: {path} does not exist; kiln learn start writes it again")
        return False
    before = _digest(path)
    try:
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
        return _usage(f"{folder} does not exist", "kiln learn start")
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
        print(f"    watching {folder / one.file}; Ctrl-C ends it", flush=True)
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
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


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
