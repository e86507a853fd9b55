# SPDX-License-Identifier: Apache-2.0
"""Does `kiln tune` survive every variant, go on after it was killed, and do builds and loads take
what it chose?"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)

FATES = {
    0: "checked", 1: "wrong", 2: "crashed", 3: "hung", 4: "crashed", 5: "pruned", 6: "unbuildable",
    7: "pruned",
}  # fmt: skip


def tune_line(command: Path, source: Path, *words: str) -> list[str]:
    # MODE 7 asks for more shared memory than a GPU has.
    rules = ["--shared-bytes", "(MODE == 7) * 1000000", "--json"]
    return [str(command), "tune", str(source), "shift", "randn:f32:300", "by=2", *rules, *words]


@pytest.fixture(scope="module")
def tuned(command, sources, tmp_path_factory):
    """All variants at once; --json, --html and the journal."""
    folder = tmp_path_factory.mktemp("tune")
    source = folder / "tunable.cu"
    source.write_text((sources / "tunable.cu").read_text())
    line = tune_line(
        command, source, "--vary", "MODE=0,1,2,3,4,5,6,7", "--html", str(folder / "page.html"),
        "--limit", "5", "--journal", str(folder / "journal.jsonl"), "--device", "engine",
    )  # fmt: skip
    # The one that hangs spins until it is ended: on one core.
    environment = {**os.environ, "KILN_ENGINE_THREADS": "1"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_every_variant_has_its_fate_and_the_next_goes_on(tuned):
    _, result = tuned
    seen = {int(o["defines"][0].split("=")[1]): o["fate"] for o in result["outcomes"]}
    why = {o["defines"][0]: o.get("reason", "") for o in result["outcomes"]}
    assert seen == FATES, why
    assert "differ" in why["MODE=1"]
    assert "did not finish in 5 s" in why["MODE=3"]
    assert "signal 6" in why["MODE=4"]
    assert "spill" in why["MODE=5"]
    assert "does not compile" in why["MODE=6"]
    assert "shared memory" in why["MODE=7"]


def test_options_of_a_build_reach_the_builds_of_the_variants(command, tuned):
    """MODE 5 spills. With findings as errors its build fails; without, it is built and then left
    out."""
    folder, result = tuned
    line = tune_line(
        command, folder / "tunable.cu", "--vary", "MODE=0,5", "--findings", "error", "--device",
        "engine", "--journal", str(folder / "findings.jsonl"),
    )  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before = {o["defines"][0]: o for o in result["outcomes"]}["MODE=5"]
    after = {o["defines"][0]: o for o in json.loads(done.stdout)["outcomes"]}
    assert after["MODE=0"]["fate"] == "checked"
    assert after["MODE=5"]["fate"] == before["fate"] == "pruned"
    assert "registers" in before["facts"]
    assert "registers" not in after["MODE=5"].get("facts", {})


def test_without_a_gpu_nothing_is_timed(tuned):
    _, result = tuned
    assert result["timed"] is False and result["best"] is None
    assert not any("us" in outcome for outcome in result["outcomes"])


def test_every_outcome_is_in_the_journal(tuned):
    folder, result = tuned
    first, *lines = (folder / "journal.jsonl").read_text().splitlines()
    assert json.loads(first)["subject"]["op"] == "shift"
    assert [json.loads(line) for line in lines] == result["outcomes"]


@pytest.mark.long
def test_killed_it_goes_on_where_it_was(command, tuned):
    folder, _ = tuned
    source, journal = folder / "tunable.cu", folder / "killed.jsonl"
    words = [
        "--vary",
        "BLOCK=32,64,96,128",
        "--journal",
        str(journal),
        "--device",
        "engine",
        "--json",
    ]
    line = [str(command), "tune", str(source), "shift", "randn:f32:300", "by=2", *words]
    process = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (
        not journal.exists() or len(journal.read_text().splitlines()) < 2
    ):
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = journal.read_text().splitlines()
    assert len(before) >= 2
    again = subprocess.run(line, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"resuming: {len(before) - 1} outcomes" in again.stderr
    lines = journal.read_text().splitlines()
    assert lines[: len(before)] == before
    assert sorted(json.loads(one)["defines"][0] for one in lines[1:]) == [
        "BLOCK=128",
        "BLOCK=32",
        "BLOCK=64",
        "BLOCK=96",
    ]


def test_progress_on_a_terminal(command, tuned):
    folder, _ = tuned
    words = [
        "--vary",
        "BLOCK=32,64,96,128",
        "--journal",
        str(folder / "shown.jsonl"),
        "--device",
        "engine",
    ]
    line = [
        str(command),
        "tune",
        str(folder / "tunable.cu"),
        "shift",
        "randn:f32:300",
        "by=2",
        *words,
    ]
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    shown = b""
    while True:
        try:
            more = os.read(screen, 4096)
        except OSError:  # the other end was closed
            break
        if not more:
            break
        shown += more
    os.close(screen)
    assert process.wait() == 0, shown
    assert re.search(rb"\[[123]/4\] [123] checked; [^\r]* left", shown), shown


def test_the_journal_of_another_subject_is_refused(command, tuned):
    folder, _ = tuned
    line = [
        str(command),
        "tune",
        str(folder / "tunable.cu"),
        "shift",
        "randn:f32:301",
        "by=2",
        "--vary",
        "BLOCK=32",
    ]
    done = subprocess.run(
        [*line, "--journal", str(folder / "journal.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "it belongs to another run: arguments was" in done.stderr


def entry(**more) -> dict:
    return {
        "op": "shift", "arguments": ["f32 300", "by=2"], "gpu": "GPU A", "compute": "8.0",
        "defines": ["BLOCK=96"], "us": 10.0, "date": "2026-01-01", "kiln": "0.1.0", "with": [],
        "arch": "8.0", **more
    }  # fmt: skip


def write_tuned(folder: Path, *entries: dict) -> None:
    (folder / "tunable.tuned.json").write_text(
        json.dumps({"kiln_tuned": 1, "entries": list(entries)})
    )


def test_a_build_bakes_in_the_choice(command, tuned):
    folder, _ = tuned
    write_tuned(
        folder, entry(), entry(arguments=["f32 9", "by=2"], compute="9.0", defines=["BLOCK=32"])
    )
    line = [str(command), "build", str(folder / "tunable.cu"), "--arch", "8.0", "--tuned", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tuned: BLOCK=96" in done.stderr
    built = json.loads(done.stdout)
    plain = subprocess.run(
        [*line[:3], "--arch", "8.0", "-DBLOCK=96", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(plain.stdout)["library"] == built["library"]
    release = subprocess.run([*line, "--release"], capture_output=True, text=True, check=False)
    assert release.returncode == 0, release.stderr
    library = json.loads(release.stdout)["library"]
    called = subprocess.run(
        [str(command), "call", library, "shift", "ones:f32:300", "by=2", "--expect",
        "full=3:f32:300"], capture_output=True, text=True, check=False, env={**os.environ,
        "KILN_DEVICE": "engine"},
    )  # fmt: skip
    assert called.returncode == 0, called.stderr
    shown = subprocess.run(
        [str(command), "inspect", library, "--kernels", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    (file,) = json.loads(shown.stdout)["files"]
    assert [kernel["max_threads"] for kernel in file["kernels"]] == [[96, 1, 1]]
    none = subprocess.run(
        [*line[:3], "--arch", "8.6", "--tuned"], capture_output=True, text=True, check=False
    )
    assert none.returncode == 2 and "none is for 8.6" in none.stderr


def block_of(op, *args) -> int:
    """Of the one kernel that a call launches on the engine."""
    import kiln

    text = str(kiln.profile(op, *args))
    return int(re.search(r"blocks of (\d+)", text).group(1))


def test_a_load_picks_by_shape_and_gpu(command, tuned, monkeypatch):
    """On the engine, which is told to be one GPU after the other."""
    import kiln
    import torch
    from kiln import tuned as tuned_package

    folder, _ = tuned
    write_tuned(
        folder,
        entry(),
        entry(gpu="GPU B", defines=["BLOCK=32"], **{"with": ["MODE=0", "ALONE"]}, arch="8.0"),
    )
    module = kiln.load(folder / "tunable.cu", tuned=True, arch="8.0")
    x = torch.randn(300)
    assert torch.equal(module.shift(x, 2.0), x + 2)  # no GPU: the defaults
    assert module.shift.choice(x, 2.0) is None and block_of(module.shift, x, 2.0) == 64

    def on(gpu: str, compute: str) -> None:
        module.shift._known.clear()
        monkeypatch.setattr(tuned_package, "gpu_of", lambda values: (gpu, compute))

    for gpu, compute, length, block in (
        ("GPU A", "8.0", 300, 96),
        ("GPU B", "8.0", 300, 32),
        ("GPU C", "8.0", 300, 96),  # another model of the same architecture
        ("GPU C", "9.0", 300, 64),
        ("GPU A", "8.0", 301, 64),
    ):
        on(gpu, compute)
        x = torch.randn(length)
        assert torch.equal(module.shift(x, by=2.0), x + 2)
        assert block_of(module.shift, x, 2.0) == block, (gpu, compute, length)
    on("GPU A", "8.0")
    assert module.shift.choice(torch.randn(300), 3.0) is None  # tuned for by=2


def test_a_bad_tuned_file_says_what_is_wrong(command, tuned):
    import kiln

    folder, _ = tuned
    for text, why in (
        ("{", "Expecting"),
        ("[]", "not a file of kiln tune"),
        ('{"kiln_tuned": 2}', "another version"),
    ):
        (folder / "tunable.tuned.json").write_text(text)
        with pytest.raises(kiln.KilnError, match=why):
            kiln.load(folder / "tunable.cu", tuned=True, arch="8.0")
    os.remove(folder / "tunable.tuned.json")
    with pytest.raises(kiln.KilnError, match="no tuned configuration"):
        kiln.load(folder / "tunable.cu", tuned=True, arch="8.0")


TABLE = """
name = "shifted"
sources = ["tunable.cu"]
arch = ["8.0"]
[tune.small]
op = "shift"
args = ["randn:f32:300", "by=2"]
check = ["randn:f32:40", "by=3"]
params = { BLOCK = [32, 64, 96, 128], MODE = [0] }
where = ["BLOCK != 64"]
defines = ["UNUSED=1"]
shared_bytes = "(BLOCK == 96) * 100000 + (BLOCK == 128) * 200000"
min_blocks = 2
"""


@pytest.mark.long
def test_a_space_in_kiln_toml_and_every_reason_to_prune(command, sources, tmp_path):
    (tmp_path / "tunable.cu").write_text((sources / "tunable.cu").read_text())
    (tmp_path / "kiln.toml").write_text(TABLE)

    def tune(*words: str, code: int = 0) -> dict:
        line = [str(command), "tune", ".", "small", "--device", "engine", "--json", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    result = tune()
    assert result["op"] == "shift" and result["check"] == ["randn:f32:40", "by=3"]
    assert (
        result["space"]["size"] == 4 and result["space"]["allowed"] == 3
    )  # the constraint forbids one
    why = {o["defines"][0]: (o["fate"], o.get("reason", "")) for o in result["outcomes"]}
    assert why == {
        "BLOCK=32": ("checked", ""),
        "BLOCK=96": ("pruned", "only 1 blocks fit on a multiprocessor, limited by shared memory"),
        "BLOCK=128": (
            "pruned",
            "a block needs 200000 bytes of shared memory, the GPU has 166912 bytes per block",
        ),
    }
    # Another journal: what is pruned by is part of what was asked. Nothing is left, and that is a
    # failure.
    none = tune("--vary", "BLOCK=32", "--max-registers", "4", "--journal", "other.jsonl", code=1)
    (outcome,) = none["outcomes"]
    assert outcome["fate"] == "pruned" and re.fullmatch(
        r"\d+ registers per thread", outcome["reason"]
    )
    # So many trials and no more.
    few = tune("--vary", "BLOCK=32,160,192", "--trials", "2", "--journal", "few.jsonl")
    assert few["counts"] == {"checked": 2} and few["mode"] == "search"


def test_a_copy_of_a_tuned_op_is_the_op(command, tuned):
    """A model that holds one is copied with it, and pickled without a loop that has no end."""
    import copy

    from kiln.tuned import TunedOp

    op = TunedOp("shift", len, [], lambda entry: None)
    holder = {"op": op, "list": [op]}
    copied = copy.deepcopy(holder)
    assert copied["op"] is op and copied["list"][0] is op and copy.copy(op) is op
    assert op("abc") == 3
    assert op.__self__ is len.__self__  # what it does not have itself comes from the default
    empty = TunedOp.__new__(TunedOp)  # as copy and pickle make one
    with pytest.raises(AttributeError):
        empty.anything  # noqa: B018
