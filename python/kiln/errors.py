# SPDX-License-Identifier: Apache-2.0
"""How does the package say that it failed? By exceptions whose text has what, why and fix, as the
command's has."""

from __future__ import annotations

import re

# A compiler, a server or a file name must not steer the terminal that a traceback is printed on.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Control characters as \\x1b, save newline and tab."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r\n", "\n"))


def format_error(what: str, why: str = "", fix: str = "") -> str:
    """Every error in three lines, without those that are empty; a text of several lines stays
    under its label."""
    lines = [f"error: {what}"]
    lines += [
        f"  {label}: " + text.replace("\n", "\n       ")
        for label, text in (("why", why), ("fix", fix))
        if text
    ]
    return printable("\n".join(lines))


def split_error(text: str) -> tuple[str, str, str]:
    """What, why and fix of a text in that form: the reverse of format_error."""
    parts = {"error": "", "why": "", "fix": ""}
    label = "error"
    for line in text.splitlines():
        for candidate, prefix in (("error", "error: "), ("why", "  why: "), ("fix", "  fix: ")):
            if line.startswith(prefix):
                label, line = candidate, line[len(prefix) :]
                break
        else:
            line = line[7:] if line.startswith("       ") else line
        parts[label] += ("\n" if parts[label] else "") + line
    return parts["error"], parts["why"], parts["fix"]


class KilnError(RuntimeError):
    """Base of every error that kiln raises by itself; `what`, `why` and `fix` are kept apart for
    programs."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(format_error(what, why, fix))


class UsageError(KilnError):
    """What was asked for makes no sense, whatever the code does: the command exits with 2."""


class BuildError(KilnError):
    """`kiln build` did not make a library; `log` is what the compiler printed, `fault` the
    command's exit code."""

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, log: str = "", fault: int = 1
    ) -> None:
        super().__init__(what, why, fix)
        self.log, self.fault = log, fault

    def __str__(self) -> str:
        text = format_error(self.what, self.why, self.fix)
        told = {line.strip() for line in text.splitlines()} | {""}
        for line in self.why.splitlines():
            told.add(line.strip())
        if all(line.strip() in told for line in self.log.splitlines()):
            return text
        return f"{text}\n\n{printable(self.log.strip())}"


class LoadError(KilnError):
    """A library was there and could not be loaded, or its ops could not be registered with
    torch."""


class SetupError(KilnError):
    """Something that kiln stands on is missing or of the wrong version: the command, or torch."""


class ArgumentError(KilnError, TypeError):
    """An argument does not fit the schema of the op."""


class RuleError(KilnError):
    """A fake rule that does not parse, or that does not fit the op it belongs to."""


class Mismatch(AssertionError):
    """kiln.test found a difference; `report` has every variant."""

    def __init__(self, text: str, report: object) -> None:
        super().__init__(text)
        self.report = report
