#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the text that users read plain English? Prints each doubtful phrase as file:line with what to
write instead, exits 1 if there is one.

usage: check_words.py [ROOT [PATH...]]      PATH: files or folders below ROOT instead of PLACES

Of a Markdown page everything counts but code and quoted output; of a source, the words inside its
string literals. Phrases may break across lines. A pattern earns its row by having been written more
than once: the list is for turns of phrase that read as translated, not for taste.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PLACES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs",
    "templates",
    "src",
    "runtime",
    "compat",
    "python/kiln",
)
# Measurements quote what was printed at the time; the page of checks and that of instructions are
# generated from sources.
EXEMPT = ("docs/results/", "docs/guide/troubleshooting.md")
SOURCES = (".h", ".cpp", ".cu", ".cuh", ".def", ".py")

COUNTED = r"\d[\d.,]*|[KMG]B|bytes|once|one|two|three|four|five|line|row|file|object|function|wheel"
EACH = (
    "job|request|thread|block|warp|core|CPU|GPU|op|step|variant|result|session|namespace|vector|"
    "command|line|launch|compile|check|tile|machine|module|check|multiprocessor|SM"
)
WORDS = [
    (r"told", "reported, printed, shown"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"(?<!\bthere )(?:is|are|was|were) no (?!longer|more|less)[a-z]+", "is not a ..., has no ..."),
    (r"in vain", "without success; say what was not found"),
    (r"for want of", "because ... is missing"),
    (r"so (?:long|many)(?! as| that)", "name the quantity: SECONDS, N"),
    (rf"(?:{COUNTED}) an? (?:{EACH})(?!\.\w)", "per: 3 GB per job, one file per command"),
    (r"beside", "next to; besides; compared with; together with"),
    (r"(?:two|several|many) heaps", "clusters"),
    (r"the (?:whole )?house", "the project"),
    (r"slip of the pen", "syntax error"),
    (r"begins? so", "starts with ..."),
    (r"(?:the|from) begin of", "the start of"),
    (r"inside of", "inside"),
    (r"there already", "already exists, already has"),
    (r"(?:is|are|was|were) wanted", "expected, required"),
    (r"(?:refuse|refused|refuses|skipped) by name", "an error that names it; reported as skipped"),
    (r"for ever", "forever"),
    (r"(?:it|process|build|kiln|run|program) goes on", "continues"),
    (
        r"(?:lie|lies|lay) (?:in|at|below|there|within|beyond|behind|outside|inside|between)",
        "is, are",
    ),
    (r"stands? (?:in(?! for)|at|there|behind|above|below|beyond|between|twice)", "is, are"),
    (r"(?:and|why|as) (?:their|its) kin", "similar"),
    (r"does not know it refuses", "fails with an error that names it"),
    (r"because nothing", "up to date"),
]
PATTERNS = [(re.compile(rf"\b(?:{text})\b", re.IGNORECASE), better) for text, better in WORDS]
# Of messages alone: who installed kiln has no such file.
MESSAGE_PATTERNS = [
    *PATTERNS,
    (re.compile(r"\bdocs/(?:guide|reference)/[\w-]+\.md\b"), "kiln docs NAME"),
]
# Comments are read by those who work on kiln alone: only the worst phrases, and "told apart" is
# English.
IN_COMMENTS = (
    "told", "mend(?:s|ed|ing)?", "in vain", "for want of", "slip of the pen", "for ever",
    "the (?:whole )?house", "(?:two|several|many) heaps", "(?:is|are|was|were) wanted",
)  # fmt: skip
COMMENT_PATTERNS = [
    (re.compile(rf"\b(?:{text})\b(?! apart)", re.IGNORECASE), better)
    for text, better in WORDS
    if text in IN_COMMENTS
]
CPP_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)
PYTHON_COMMENT = re.compile(r'#[^\n]*|""".*?"""', re.DOTALL)
FENCE = re.compile(r"^```.*?^```[^\n]*$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def prose_of_page(text: str) -> str:
    """The page with code blanked: every other character keeps its place."""
    # A comma, so that the words around inline code do not meet.
    return INLINE_CODE.sub(lambda code: "," * len(code.group()), FENCE.sub(blank, text))


def prose_of_source(text: str) -> str:
    """The words of the string literals, each at its place. Literals that the compiler joins read as
    one; a comma keeps the words of others apart."""
    kept = [" " if c != "\n" else c for c in text]
    end = 0
    for literal in LITERAL.finditer(text):
        kept[literal.start() + 1 : literal.end() - 1] = literal.group()[1:-1]
        if text[end : literal.start()].strip():
            kept[literal.start()] = ","
        end = literal.end()
    return "".join(kept)


def comments_of(name: str, text: str) -> str:
    """The words of the comments, each at its place; what marks a comment is blank, so that a
    sentence reads across lines."""
    kept = [c if c == "\n" else " " for c in text]
    for comment in (PYTHON_COMMENT if name.endswith(".py") else CPP_COMMENT).finditer(text):
        plain = re.sub(
            r"(?m)^[ \t]*(?://|#|\*|/\*)", lambda m: " " * len(m.group()), comment.group()
        )
        kept[comment.start() : comment.end()] = plain
    return "".join(kept)


def faults_of(name: str, text: str) -> list[str]:
    if name.endswith(".md"):
        return faults_in(name, prose_of_page(text), PATTERNS)
    return faults_in(name, prose_of_source(text), MESSAGE_PATTERNS) + faults_in(
        name, comments_of(name, text), COMMENT_PATTERNS
    )


def faults_in(name: str, prose: str, patterns: list[tuple[re.Pattern[str], str]]) -> list[str]:
    line_of = [0] * (len(prose) + 1)
    for at, c in enumerate(prose):
        line_of[at + 1] = line_of[at] + (c == "\n")
    flat, places = [], []
    for at, c in enumerate(prose):
        if c.isspace() and flat and flat[-1] == " ":
            continue
        flat.append(" " if c.isspace() else c)
        places.append(at)
    joined = "".join(flat)
    found = [
        (line_of[places[match.start()]] + 1, match.group(), better)
        for pattern, better in patterns
        for match in pattern.finditer(joined)
    ]
    return [f"{name}:{line}: '{words}'; write: {better}" for line, words, better in sorted(found)]


def files_of(root: Path, places: list[str]) -> list[Path]:
    found = []
    for place in places:
        path = root / place
        found += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [path for path in found if path.suffix in (".md", *SOURCES)]


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found, files = [], 0
    for path in files_of(root, sys.argv[2:] or list(PLACES)):
        name = str(path.relative_to(root))
        if not name.startswith(EXEMPT):
            files += 1
            found += faults_of(name, path.read_text(encoding="utf-8"))
    print("\n".join(found))
    print(f"{files} files, {len(found)} phrases to write plainly")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
