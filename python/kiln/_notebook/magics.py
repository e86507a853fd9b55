# SPDX-License-Identifier: Apache-2.0
"""%%kiln compiles a cell, %%kiln run runs it, %kiln COMMAND runs any command on it.

Any command works: what it takes (a target, build options, a page) is read from its --help.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from ..command import answer_of
from ..errors import KilnError
from ..extension import load_extension
from ..modules import attach
from ..op import Op
from .arguments import build_words, command_of, with_cell, with_page, with_tensors, words_of
from .cells import Cell, in_words_of_the_notebook, write_cell
from .run import Listener, help_of, run
from .show import CellError, ProgressLine, Shown


def register(shell: Any) -> None:
    shell.register_magics(KilnMagics(shell))


@magics_class
class KilnMagics(Magics):
    """The cells that this notebook compiled, and what it does with them."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._last: Optional[Cell] = None
        self._of_op: dict[str, Cell] = {}
        self._cells: dict[Path, Cell] = {}
        self._built: set[Path] = set()

    @cell_magic("kiln")
    def compile_or_run(self, line: str, body: str) -> Optional[Shown]:
        """%%kiln [BUILD OPTIONS]: compile this cell; its ops get names in the notebook.
        %%kiln COMMAND [ARGUMENTS]: run `kiln COMMAND` on it."""
        now: list[Cell] = []
        try:
            words = words_of(line)
            if words and not words[0].startswith("-"):
                now.append(self._keep(_cell_of_command(words, body)))
                return self._run([command_of(words[0]), *words[1:]], now[0])
            now.append(self._keep(_cell_of_ops(words, body)))
            return self._compile(now[0])
        except KilnError as error:
            raise self._in_cell(error, now[0] if now else None) from None

    @line_magic("kiln")
    def command(self, line: str) -> Optional[Shown]:
        """%kiln COMMAND [ARGUMENTS]: run `kiln COMMAND`; without a target, on the last cell or the
        one that defines the op."""
        try:
            words = words_of(line) or ["--help"]
            if words[0].startswith("-"):
                return self._run(words, None)
            return self._run([command_of(words[0]), *words[1:]], self._last)
        except KilnError as error:
            raise self._in_cell(error, None) from None

    def _keep(self, cell: Cell) -> Cell:
        self._cells[cell.path] = cell
        return cell

    def _in_cell(self, error: KilnError, now: Optional[Cell]) -> CellError:
        text = in_words_of_the_notebook(str(error), self._cells.values(), now)
        return CellError(error, text)

    def _compile(self, cell: Cell) -> Shown:
        begun = time.perf_counter()
        line = ["build", str(cell.path), *build_words(cell, help_of("build")), "--json"]
        done = run(line, _nothing, _nothing, ProgressLine())
        built = answer_of(["kiln", *line], done.code, done.out, done.err, "library")
        module = _load(cell, built)
        names = _names_of(module)
        self.shell.push(names)
        self._last = cell
        self._of_op.update(dict.fromkeys(names, cell))
        took = time.perf_counter() - begun
        how = f"built in {took:.1f} s" if built["rebuilt"] else f"up to date, {took * 1e3:.0f} ms"
        if built["rebuilt"] and cell.path in self._built:
            # The cell is the same: a header, the compiler or kiln itself changed meanwhile.
            steps = ", ".join(step["what"] for step in built["steps"])
            how += f" again, because something that it reads changed: {steps}"
        self._built.add(cell.path)
        text = f"{', '.join(sorted(names)) or cell.name}: {how}\n"
        warnings = in_words_of_the_notebook(done.err, self._cells.values(), cell)
        return Shown("kiln", text + warnings, 0)

    def _run(self, words: Sequence[str], now: Optional[Cell]) -> Optional[Shown]:
        with tempfile.TemporaryDirectory(prefix="kiln-notebook-") as folder:
            page = Path(folder) / "page.html"
            line = list(words)
            if now is not None:
                line = with_cell(line, self._of_op, now)
            line = with_tensors(with_page(line, page), self.shell.user_ns, Path(folder))
            wants_page = str(page) in line
            # Beside a page the text is only for those who cannot show pages.
            out = _nothing if wants_page else self._writer(sys.stdout)
            err = _nothing if wants_page else _calm(self._writer(sys.stderr), out)
            done = run(line, out, err, ProgressLine())
            if page.is_file():
                # "wrote /tmp/.../page.html" would name a file that is gone.
                said = done.out or done.err.replace(f"wrote {page}\n", "")
                text = in_words_of_the_notebook(
                    said or "the result is a page, which this viewer does not show\n",
                    self._cells.values(),
                )
                html = page.read_text(encoding="utf-8", errors="replace")
                html = in_words_of_the_notebook(html, self._cells.values())
                return Shown(f"kiln {words[0]}", text, done.code, html)
        if done.code:
            raise _failed(words, done.code, done.err if wants_page else "")
        if wants_page:  # a form without a page, such as a list of what could be asked for
            print(in_words_of_the_notebook(done.out, self._cells.values()), end="")
        return None

    def _writer(self, stream: Any) -> Any:
        def write(text: str) -> None:
            stream.write(in_words_of_the_notebook(text, self._cells.values()))
            stream.flush()

        return write


def _nothing(_text: str) -> None:
    pass


def _calm(warn: Listener, tell: Listener) -> Listener:
    """A notebook shows stderr in red. "built NAME in 2 s" is nothing to worry about, and the line
    of progress has shown it; "next: COMMAND" is advice."""

    def sorted_out(text: str) -> None:
        text = re.sub(r"^built \S+ in .*\n", "", text, flags=re.MULTILINE)
        advice = "".join(re.findall(r"^next: .*\n?", text, flags=re.MULTILINE))
        rest = re.sub(r"^next: .*\n?", "", text, flags=re.MULTILINE)
        if rest:
            warn(rest)
        if advice:
            tell(advice)

    return sorted_out


def _cell_of_ops(words: Sequence[str], body: str) -> Cell:
    name, flags = _name_in(words)
    return write_cell(body, name, flags, program=False)


def _cell_of_command(words: Sequence[str], body: str) -> Cell:
    """Of a cell with ops, too: %%kiln inspect --sass."""
    return write_cell(body, "", [], program="KILN_OP" not in body)


def _name_in(words: Sequence[str]) -> tuple[str, list[str]]:
    """--name NAME, and the other words."""
    rest = list(words)
    if "--name" not in rest:
        return "", rest
    at = rest.index("--name")
    name = rest[at + 1] if at + 1 < len(rest) else ""
    if not name.isidentifier():
        raise KilnError(
            "--name needs the name of a namespace",
            f"'{name}' is not an identifier" if name else "NAME is missing after it",
            "%%kiln --name my_ops",
        )
    return name, [*rest[:at], *rest[at + 2 :]]


def _load(cell: Cell, built: Mapping[str, Any]) -> Any:
    library, name = Path(built["library"]), built["name"]
    if built.get("headers"):
        return load_extension(library, name, built.get("python_module", False), built["headers"])

    def again() -> Any:
        return attach(library, Path("notebook") / name, again, name)

    return again()


def _names_of(module: Any) -> dict[str, Any]:
    """The ops of a library, or the functions of an extension module."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, Op)}
    return found or {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    }


def _failed(words: Sequence[str], code: int, told: str) -> CellError:
    """With the command's own words, which have what, why and fix, unless they were shown."""
    error = KilnError(f"kiln {words[0]} ended with exit code {code}", "its message is above")
    return CellError(error, told.strip() or str(error))
