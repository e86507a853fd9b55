# SPDX-License-Identifier: Apache-2.0
"""What does `kiln inspect` say of damaged or hostile input? An error with file and offset, never a
crash."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
VIEWS = ["--overview", "--kernels", "--ptx", "--sass", "--symbols"]


@pytest.fixture
def told(command, tmp_path):
    """told(words...) -> exit code and what was said; a signal is a failure."""

    def ask(*words: object) -> tuple[int, str]:
        done = subprocess.run(
            [str(command), "inspect", *map(str, words)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=60,
        )
        assert done.returncode in (0, 1, 2, 3), f"{done.returncode}\n{done.stdout}"
        return done.returncode, done.stdout

    return ask


def test_a_file_that_may_not_be_read(command, tmp_path_factory):
    """Root may read everything: then another user asks."""
    folder = tmp_path_factory.mktemp("unreadable")
    (folder / "secret.so").write_bytes((CORPUS / "versioned.so").read_bytes())
    (folder / "secret.so").chmod(0)
    shutil.copy(command, folder / "kiln")  # where it lies, the other user may have no way to it
    user: dict = {}
    if os.geteuid() == 0:
        user = {"user": 65534, "group": 65534, "extra_groups": []}
        for parent in [folder, *folder.parents][:-2]:
            parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run(
        [folder / "kiln", "inspect", folder / "secret.so"],
        cwd="/",
        capture_output=True,
        text=True,
        env={"HOME": "/nowhere"},
        **user,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"cannot read {folder}/secret.so" in done.stderr
    assert "Permission denied" in done.stderr or "may not" in done.stderr


def test_what_is_no_regular_file(told, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.so").touch()
    os.mkfifo(tmp_path / "pipe.so")
    code, text = told("folder")
    assert code == 2
    assert text.startswith(
        "error: cannot inspect folder\n  why: it is a directory without a kiln.toml\n  fix: "
    )
    code, text = told("empty.so")
    assert code == 1
    assert text.startswith(
        "error: cannot inspect empty.so\n  why: at offset 0: the file is empty\n  fix: "
    )
    for name in ("pipe.so", "/dev/null"):
        code, text = told(name)
        assert code == 1 and "it is not a regular file" in text


@pytest.mark.parametrize(
    "offset, value, why",
    [(4, 1, "at offset 4: a 32-bit file"), (5, 2, "at offset 5: a big-endian file")],
)
def test_elf_of_another_kind(told, tmp_path, offset, value, why):
    data = bytearray((CORPUS / "versioned.so").read_bytes())
    data[offset] = value
    (tmp_path / "x.so").write_bytes(data)
    code, text = told("x.so")
    assert code == 1 and text.startswith("error: cannot inspect x.so\n") and why in text


@pytest.mark.parametrize(
    "name",
    sorted(
        path.name
        for path in CORPUS.iterdir()
        if path.suffix in (".so", ".cubin", ".fatbin", ".whl")
    ),
)
def test_cut_short_and_bits_flipped(told, tmp_path, name):
    """Every view of each; the fuzzers have millions more of these."""
    whole = (CORPUS / name).read_bytes()
    chance = random.Random(name)
    path = tmp_path / name
    for count in range(6):
        path.write_bytes(whole[: chance.randrange(len(whole))])
        told(path.name, *VIEWS)
        data = bytearray(whole)
        for _ in range(1 << count):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        told(path.name, *VIEWS)


def sections(data: bytes) -> list[tuple[int, tuple]]:
    """(offset of the header, its fields) of an ELF file's sections."""
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    return [
        (table + 64 * i, struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i))
        for i in range(count)
    ]


def test_cycles_in_elf_tables(told, tmp_path):
    """Version records that lead to themselves, and sections that link to themselves."""
    (tmp_path / "v.c").write_text("#include <stdio.h>\nint f(void) { return puts(__FILE__); }\n")
    (tmp_path / "v.map").write_text("V1 { global: f; local: *; }; V2 { global: g; } V1;\n")
    words = ["gcc", "-shared", "-fPIC", "v.c", "-Wl,--version-script=v.map", "-o", "v.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    whole = (tmp_path / "v.so").read_bytes()
    found = {fields[1]: fields for _, fields in sections(whole)}
    needs, defines = found[0x6FFFFFFE], found[0x6FFFFFFD]
    for fields, fixed, links in ((needs, 16, (12, 28)), (defines, 20, (16, 24))):
        for link in links:
            for step in (0, 1, 0xFFFFFFFF, 0x100000000 - fixed):
                data = bytearray(whole)
                struct.pack_into("<I", data, fields[4] + link, step)
                struct.pack_into(
                    "<H", data, fields[4] + 2, 0xFFFF
                )  # as many records as can be claimed
                (tmp_path / "x.so").write_bytes(data)
                told("x.so", "--symbols")
    data = bytearray(whole)
    for index, (at, _) in enumerate(sections(whole)):
        struct.pack_into("<I", data, at + 40, index)
    (tmp_path / "x.so").write_bytes(data)
    told("x.so", *VIEWS)


def write_zip(path: Path, names: list[str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in names:
            info = zipfile.ZipInfo("x")
            info.filename = name
            wheel.writestr(info, (CORPUS / "versioned.so").read_bytes())


@pytest.mark.parametrize(
    "name, why",
    [
        ("../../evil.so", "is outside its folder"),
        ("/etc/evil.so", "is outside its folder"),
        ("pkg\\..\\evil.so", "is outside its folder"),
        ("pkg/\x1b]0;evil\x07.so", "a member's name has a control character"),
        ("pkg/a.so: fine\nerror: b.so", "a member's name has a control character"),
    ],
)  # fmt: skip
def test_hostile_names_in_a_wheel(told, tmp_path, name, why):
    write_zip(tmp_path / "x.whl", ["pkg/good.so", name])
    code, text = told("x.whl", "--extract", "out")
    assert code == 1
    assert text.startswith("error: cannot inspect x.whl\n  why: at offset ") and why in text
    assert "\x1b" not in text
    assert not (tmp_path / "out").exists()


def test_names_in_a_library_do_not_steer_the_terminal(told, tmp_path):
    data = (CORPUS / "versioned.so").read_bytes()
    at = next(fields[4] for _, fields in sections(data) if fields[1] == 3)
    start = data.index(b"\0", at) + 1
    hostile = bytearray(data)
    hostile[start + 1 : start + 3] = b"\x1b["
    (tmp_path / "x.so").write_bytes(hostile)
    code, text = told("x.so", "--all-symbols", "-v", "--overview")
    assert code == 0 and "\x1b" not in text
    assert text.count(r"\x1b[") >= 1


def test_bombs(told, tmp_path):
    """A wheel that grows a thousandfold, one that lies about it, an image that claims more than its
    bytes hold."""
    with zipfile.ZipFile(tmp_path / "bomb.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("x.so", bytes(100 << 20))
    code, text = told("bomb.whl")
    assert code == 1 and "more than 200 times as much" in text
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(bytes(1 << 20)) + packed.flush()
    with zipfile.ZipFile(tmp_path / "lie.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("x.so", bytes(1 << 20))
    data = bytearray((tmp_path / "lie.whl").read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    assert body in bytes(data)
    struct.pack_into("<I", data, entry + 24, 1000)
    (tmp_path / "lie.whl").write_bytes(data)
    code, text = told("lie.whl")
    assert code == 1 and "deflate: damaged at byte" in text
    fatbin = bytearray((CORPUS / "tiny_zstd.fatbin").read_bytes())
    struct.pack_into("<Q", fatbin, 16 + 56, 1 << 40)
    (tmp_path / "bomb.fatbin").write_bytes(fatbin)
    code, text = told("bomb.fatbin", "--kernels")
    assert code == 1 and f"claims {1 << 40} bytes" in text and "offset" in text
