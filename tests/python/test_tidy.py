# SPDX-License-Identifier: Apache-2.0
"""Does tools/tidy check the right files, report findings, and keep only results that hold?

It runs in a repository made for the test, with a clang-tidy that finds the word BAD and writes down
what it was asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { echo "LLVM version ${FAKE_VERSION:-14}"; exit 0; }
for file; do :; done
echo "$file" >>asked
grep -Hn BAD "$file" && exit 1
exit 0
"""
# What ninja knows from the last build: every source includes base.h.
NINJA = """#!/bin/sh
for file in src/*.cpp; do
  name=$(basename "$file" .cpp)
  printf '%s.o: #deps 2, deps mtime 1 (VALID)\\n' "$name"
  printf '    ../../%s\\n    ../../src/base.h\\n\\n' "$file"
done
"""


class Repository:
    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "tools").mkdir()
        shutil.copy(ROOT / "tools/tidy", folder / "tools/tidy")
        (folder / ".clang-tidy").write_text("Checks: '*'\n")
        (folder / ".gitignore").write_text("build\nbin\nasked\n")
        for name, script in (("clang-tidy", CLANG_TIDY), ("ninja", NINJA)):
            (folder / "bin").mkdir(exist_ok=True)
            (folder / "bin" / name).write_text(script)
            (folder / "bin" / name).chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.write("src/base.h", "")
        self.commit("one", "two")

    def git(self, *words: str) -> None:
        identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        subprocess.run(["git", *identity, *words], cwd=self.folder, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.configure()

    def commit(self, *stems: str, text: str = "int x;\n") -> None:
        for stem in stems:
            self.write(f"src/{stem}.cpp", text)
        self.git("add", ".")
        self.git("commit", "-qm", " ".join(stems))

    def configure(self) -> None:
        (self.folder / "build/edit").mkdir(parents=True, exist_ok=True)
        entries = [
            {
                "directory": ".",
                "file": str(path),
                "command": f"g++ -fno-gnu-unique -o {path.stem}.o -c {path}",
            }
            for path in sorted((self.folder / "src").glob("*.cpp"))
        ]
        (self.folder / "build/edit/compile_commands.json").write_text(json.dumps(entries))

    def tidy(self, *words: str, **environment: str) -> tuple[int, str, list[str]]:
        """Exit status, what it printed, which files clang-tidy was asked about."""
        asked = self.folder / "asked"
        asked.unlink(missing_ok=True)
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["python3", "tools/tidy", *words],
            cwd=self.folder,
            env=os.environ | {"PATH": path, "MAX_JOBS": "1"} | environment,
            capture_output=True,
            text=True,
        )
        names = asked.read_text().split() if asked.exists() else []
        return done.returncode, done.stdout + done.stderr, names


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_it_checks_all_and_reports_what_is_found(repository: Repository) -> None:
    repository.commit("three", text="BAD\n")
    status, text, asked = repository.tidy()
    assert status == 1
    assert asked == ["src/one.cpp", "src/three.cpp", "src/two.cpp"]
    assert "src/three.cpp:1:BAD" in text
    assert "3 files, 1 with findings" in text
    assert (
        "fno-gnu-unique" not in (repository.folder / "build/tidy/compile_commands.json").read_text()
    )


def test_a_clean_file_is_checked_again_only_when_something_it_depends_on_changed(
    repository: Repository,
) -> None:
    assert repository.tidy()[2] == ["src/one.cpp", "src/two.cpp"]
    assert repository.tidy()[2] == []
    repository.write("src/one.cpp", "int y;\n")
    assert repository.tidy()[2] == ["src/one.cpp"]
    repository.write("src/base.h", "int z;\n")
    assert repository.tidy()[2] == ["src/one.cpp", "src/two.cpp"]
    (repository.folder / ".clang-tidy").write_text("Checks: 'bugprone-*'\n")
    assert repository.tidy()[2] == ["src/one.cpp", "src/two.cpp"]
    (repository.folder / "src/.clang-tidy").write_text("Checks: '-misc-*'\n")
    assert repository.tidy()[2] == ["src/one.cpp", "src/two.cpp"]
    assert repository.tidy(FAKE_VERSION="15")[2] == ["src/one.cpp", "src/two.cpp"]
    assert repository.tidy()[2] == []


def test_a_header_that_gcc_precompiled_is_read_as_text(repository: Repository) -> None:
    precompiled = repository.folder / "build/edit/cmake_pch.hxx"
    precompiled.write_text("#include <string>\n")
    precompiled.with_suffix(".hxx.gch").write_bytes(b"not for clang")
    commands = repository.folder / "build/edit/compile_commands.json"
    commands.write_text(commands.read_text().replace(" -o ", f" -include {precompiled} -o "))
    assert repository.tidy()[0] == 0
    entry = json.loads((repository.folder / "build/tidy/compile_commands.json").read_text())[0]
    copy = Path(entry["command"].split("-include ")[1].split()[0])
    assert copy.read_text() == "#include <string>\n"
    assert not copy.with_suffix(".hxx.gch").exists()


def test_findings_are_not_kept(repository: Repository) -> None:
    repository.commit("one", text="BAD\n")
    for _ in range(2):
        status, text, asked = repository.tidy("src/one.cpp")
        assert (status, asked) == (1, ["src/one.cpp"]), text


def test_changed_means_newer_than_the_branch_it_left(repository: Repository) -> None:
    repository.git("checkout", "-qb", "work")
    repository.commit("three")
    repository.commit("four")
    repository.write("src/two.cpp", "int changed;\n")
    repository.write("src/five.cpp", "int untracked;\n")
    status, text, asked = repository.tidy("--changed")
    assert status == 0, text
    assert asked == ["src/two.cpp", "src/five.cpp", "src/four.cpp", "src/three.cpp"]
    assert "since " in text


def test_on_the_main_branch_changed_means_the_last_commits_and_the_rest_is_named(
    repository: Repository,
) -> None:
    for stem in ("three", "four"):
        repository.commit(stem)
    status, text, asked = repository.tidy("--changed", "--most", "2")
    assert status == 0, text
    assert asked == ["src/four.cpp", "src/three.cpp"]
    assert "in the last 10 commits" in text
    assert "left out, over 2 files: src/one.cpp" in text
    assert "left out, over 2 files: src/two.cpp" in text


def test_a_clone_of_one_commit_has_files_to_check(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository.commit("three")
    shallow = tmp_path_factory.mktemp("shallow") / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{repository.folder}", str(shallow)],
        check=True,
    )
    shutil.copytree(repository.folder / "bin", shallow / "bin")
    repository.folder = shallow
    repository.configure()
    assert sorted(repository.tidy("--changed")[2]) == [
        "src/one.cpp",
        "src/three.cpp",
        "src/two.cpp",
    ]


def test_a_changed_header_counts_as_a_source_that_includes_it(repository: Repository) -> None:
    repository.git("checkout", "-qb", "work")
    repository.commit("three")
    repository.write("src/base.h", "int z;\n")
    assert repository.tidy("--changed")[2] == ["src/one.cpp", "src/three.cpp"]
    repository.write("src/two.h", "int z;\n")
    assert repository.tidy("--changed")[2] == ["src/two.cpp"]  # the others are clean already


def test_a_source_that_is_not_compiled_is_an_error(repository: Repository) -> None:
    repository.commit("three")
    (repository.folder / "build/edit/compile_commands.json").write_text("[]")
    status, text, _ = repository.tidy()
    assert status == 3
    assert "src/one.cpp cannot be checked" in text and "fix: tools/build edit" in text


def test_a_source_of_another_machine_is_named_and_left_out(repository: Repository) -> None:
    commands = repository.folder / "build/edit/compile_commands.json"
    commands.write_text(
        json.dumps([one for one in json.loads(commands.read_text()) if "two" not in one["file"]])
    )
    status, text, asked = repository.tidy()
    assert status == 0 and asked == ["src/one.cpp"]
    assert "left out, not compiled on this machine: src/two.cpp" in text
    assert repository.tidy("src/two.cpp")[0] == 3


def test_the_real_one_finds_an_exception_that_escapes(tmp_path: Path) -> None:
    if not shutil.which("clang-tidy"):
        pytest.skip("no clang-tidy here: tools/bootstrap test installs it")
    source = tmp_path / "escape.cpp"
    source.write_text("int half(int n) noexcept {\n  if (n % 2) throw n;\n  return n / 2;\n}\n")
    shutil.copy(ROOT / ".clang-tidy", tmp_path)
    done = subprocess.run(
        ["clang-tidy", str(source), "--", "-std=c++20"], capture_output=True, text=True
    )
    assert done.returncode != 0, done.stderr
    assert "bugprone-exception-escape" in done.stdout
