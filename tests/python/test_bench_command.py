# SPDX-License-Identifier: Apache-2.0
"""Does `kiln bench` say what it should of every kind of op, and do baselines, sweeps and reports
hold? On the engine."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import pytest
import torch

pytestmark = [
    pytest.mark.one_in(2),
    pytest.mark.skipif(torch.cuda.is_available(), reason="times the engine; a GPU has tests/gpu"),
]
SPEC = "randn:f32:1024"


@pytest.fixture(scope="module")
def library(command, sources):
    done = subprocess.run(
        [str(command), "build", str(sources / "misbehaving.cu"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["library"]


@pytest.fixture
def kiln(command, tmp_path):
    def run(*words: str, code: int = 0, **env: str) -> subprocess.CompletedProcess:
        merged = {**os.environ, "KILN_PYTHON": sys.executable, **env}
        done = subprocess.run(
            [str(command), *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=merged,
            timeout=240,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def bench(kiln, library, op, *words, **more):
    return kiln("bench", library, op, SPEC, "--quick", *words, **more)


def test_an_op(kiln, library):
    done = bench(kiln, library, "good")
    assert "good(x: f32 1024): CPU engine time (not GPU time)" in done.stdout
    assert "not compared with a reference" in done.stdout and "GB/s" not in done.stdout


def test_json_and_what_is_expected(kiln, library, tmp_path):
    done = kiln(
        "bench", library, "good", "zeros:f32:64", "--expect", "ones:f32:64", "--quick", "--json"
    )
    result = json.loads(done.stdout)["results"][0]
    assert result["time"] == "engine time" and "equal to ones:f32:64" in result["correct"]
    assert result["machine"]["host"] and result["source_hash"]
    done = kiln(
        "bench", library, "good", "zeros:f32:64", "--expect", "zeros:f32:64", "--quick", code=1
    )
    assert "gives a wrong result" in done.stderr and "64 of 64 elements differ" in done.stderr


@pytest.mark.parametrize(
    "op, words",
    [
        ("throws", ["no luck with 1024 elements"]),
        ("crashes", ["ended by signal 6"]),
        ("leaks", ["free memory fell at each check"]),
        ("spoils_input", ["wrote to its input 'x'"]),
        ("changes", ["returns a different result in its second call"]),
    ],
)
def test_ops_that_cannot_be_timed(kiln, library, op, words):
    done = bench(kiln, library, op, code=1)
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_hang_ends_at_its_limit(kiln, library):
    done = bench(kiln, library, "hangs", "--limit", "2", code=1)
    assert "did not finish in 2 s" in done.stderr


def test_more_memory_than_there_is(kiln, library):
    done = kiln("bench", library, "good", "randn:f32:2^44", code=3)
    assert "more than this machine can allocate" in done.stderr


def test_no_gpu(kiln, library):
    done = bench(kiln, library, "good", "--device", "cuda", code=3)
    assert "error:" in done.stderr and "GPU" in done.stderr + done.stdout


@pytest.mark.long
def test_against_torch(kiln, library):
    done = bench(kiln, library, "good", "--against", "torch.erf", code=1)
    assert "gives a wrong result" in done.stderr
    done = bench(kiln, library, "good", "--against", "torch.no_such", code=2)
    assert "cannot compare with 'torch.no_such'" in done.stderr
    done = kiln(
        "bench",
        library,
        "good",
        "full=-1:f32:512",
        "--against",
        "torch.zeros_like",
        "--quick",
        "--naive-times",
        "--json",
    )
    result = json.loads(done.stdout)["results"][0]
    assert result["comparisons"][0]["b"] == "torch.zeros_like"
    assert result["start"]["import_s"] > 0 and result["versions"]["torch"] == torch.__version__


def test_explain(kiln, library):
    done = bench(kiln, library, "good", "--naive-times")
    assert (
        "what other timers would report:" in done.stdout
        and "true: the engine's time of a call" in done.stdout
    )


def test_sweeps_and_files(kiln, library, tmp_path):
    done = kiln(
        "bench", library, "good", "randn:f32:{n}", "--axis", "n=64,2^8", "--bytes",
        "2 * n * size(f32)", "--quick", "--csv", "out.csv", "--markdown", "out.md", "--html",
        "out.html", "--json",
    )  # fmt: skip
    results = json.loads(done.stdout)["results"]
    assert [one["axes"] for one in results] == [{"n": "64"}, {"n": "2^8"}]
    assert [one["contenders"][0]["bytes"] for one in results] == [512, 2048]
    assert len(list(csv.reader((tmp_path / "out.csv").open()))) == 3
    assert (tmp_path / "out.md").read_text().count("| good |") == 2
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>") and "http://" not in page and "https://" not in page


def test_baselines(kiln, library, tmp_path):
    words = ("--baseline", "mine.jsonl")
    assert "saved the baseline" in bench(kiln, library, "good", *words).stderr
    path = tmp_path / "mine.jsonl"
    kept = json.loads(path.read_text())

    def write(change):
        value = json.loads(json.dumps(kept))
        change(value)
        path.write_text(json.dumps(value) + "\n")

    def scale(value, factor):
        cold = value["contenders"][0]["cold"]
        cold["samples_ns"] = [one * factor for one in cold["samples_ns"]]

    # As if it had been three times as fast: what runs now is a regression.
    write(lambda value: scale(value, 1 / 3))
    done = bench(kiln, library, "good", *words, code=1)
    assert "SLOWER" in done.stdout
    write(lambda value: scale(value, 3))
    assert "FASTER" in bench(kiln, library, "good", *words).stdout
    write(lambda value: value["machine"].update(host="elsewhere"))
    done = bench(kiln, library, "good", *words, code=1)
    assert "another machine" in done.stderr and "--across-machines" in done.stderr
    write(lambda value: (value["machine"].update(host="elsewhere"), scale(value, 3)))
    assert (
        "warning: the baseline was measured on another machine"
        in bench(kiln, library, "good", "--across-machines", *words).stderr
    )
    path.write_text("half a li")
    assert "has no result in it" in bench(kiln, library, "good", *words, code=1).stderr
    assert "saved the baseline" in bench(kiln, library, "good", "--update", *words).stderr


def test_history_is_kept(kiln, library, tmp_path):
    for _ in range(2):
        bench(kiln, library, "good", "--history", "h.jsonl")
    bench(kiln, library, "good", "--history", "h.jsonl", "--no-history")
    lines = (tmp_path / "h.jsonl").read_text().splitlines()
    assert len(lines) == 2 and all(json.loads(line)["format"] == 1 for line in lines)


def test_benchmarks_of_a_project(kiln, sources, tmp_path):
    (tmp_path / "plus.cu").write_text((sources / "plus.cu").read_text())
    (tmp_path / "kiln.toml").write_text(
        'name = "plus"\n[bench.small]\nop = "plus"\nargs = ["randn:f32:{n}"]\naxes = { n = [32, '
        "64] }\n"
        'defines = { STEP = ["1.0f", "2.0f"] }\nbytes = "8 * n"\n'
    )
    results = json.loads(kiln("bench", "--quick", "--json").stdout)["results"]
    assert len(results) == 4
    assert {one["defines"][0] for one in results} == {"STEP=1.0f", "STEP=2.0f"}
    (tmp_path / "kiln.toml").write_text('name = "plus"\n[bench.small]\nopp = "plus"\n')
    assert "unknown key 'opp'" in kiln("bench", code=2).stderr


@pytest.mark.long
def test_cold(kiln, library, tmp_path):
    done = kiln(
        "bench",
        library,
        "good",
        SPEC,
        "--cold",
        "--cold-runs",
        "2",
        "--html",
        "cold.html",
        "--json",
    )
    value = json.loads(done.stdout)
    kinds = {one["kind"]: {s["name"]: s for s in one["stages"]} for one in value["kinds"]}
    native = kinds["native"]
    assert native["cuInit"]["median_ns"] is None and "no GPU" in native["cuInit"]["why"]
    for stage in (
        "dlopen of the library",
        "symbol resolution",
        "first allocation",
        "first call",
        "steady call",
    ):
        assert native[stage]["median_ns"] > 0
    assert any(name.startswith("dlopen lib") for name in native)
    assert kinds["python"]["import torch"]["median_ns"] > 1e6
    assert any("import torch takes" in line for line in value["advice"])
    assert "<svg" in (tmp_path / "cold.html").read_text()
    text = kiln("bench", library, "good", SPEC, "--cold", "--cold-runs", "1").stdout
    assert "until the first result" in text and "#" in text


@pytest.mark.long
def test_profile_of_an_op_and_a_script(kiln, library, tmp_path):
    done = kiln("profile", library, "good", SPEC, "--html", "p.html", "--trace", "t.json")
    assert (
        "add_one" in done.stdout
        and "    engine  shapes" in done.stdout
        and "16 blocks of 64" in done.stdout
    )
    assert "misbehaving::good" in done.stdout
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "flame graph" in (tmp_path / "p.html").read_text()
    (tmp_path / "s.py").write_text(
        "import torch, sys\nx = torch.ones(int(sys.argv[1]))\ntorch.sqrt(x * x)\n"
    )
    done = kiln("profile", "s.py", "100")
    assert "aten::mul" in done.stdout and "aten::sqrt" in done.stdout
    (tmp_path / "s.py").write_text("raise ValueError('no such luck')\n")
    assert "no such luck" in kiln("profile", "s.py", code=1).stderr
    assert "there is no such file" in kiln("profile", "missing.py", code=2).stderr


def test_profile_of_a_function():
    import kiln

    x = torch.randn(1000)
    seen = kiln.profile(lambda: torch.sqrt(x * x))
    assert seen.ops()[:2] == ["aten::mul", "aten::sqrt"]
    assert "aten::sqrt" in str(seen) and json.loads(seen.chrome_trace)["traceEvents"]
    nested = kiln.profile(torch.nn.functional.layer_norm, x, (1000,))
    assert "aten::native_layer_norm" in nested.ops()
    assert nested.json["tree"][0]["children"], "an op under its caller"


def keys_of(value: object, path: tuple = ()) -> list[tuple]:
    """The path of every key of objects, those in lists once."""
    if isinstance(value, list):
        return keys_of(value[0], (*path, 0)) if value else []
    if not isinstance(value, dict):
        return []
    return [k for key, one in value.items() for k in [(*path, key), *keys_of(one, (*path, key))]]


def without(value: dict, path: tuple) -> dict:
    copy = json.loads(json.dumps(value))
    inner = copy
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return copy


def test_what_python_writes_the_renderer_reads_whole():
    """A key that one side renames is an error, never a zero."""
    import kiln
    from kiln import _measure

    x = torch.randn(1000)
    profile = kiln.profile(lambda: torch.sqrt(x * x)).json
    needed = ("title", "time", "wall_us", "gpu_us", "gpu_idle", "verdict", "kernel_count")
    paths = [path for path in keys_of(profile) if path[0] in ("tree", "timeline", *needed)]
    assert ("tree", 0, "cpu_self_us") in paths and ("timeline", 0, "lane") in paths
    for path in paths:
        with pytest.raises(kiln.KilnError, match=f"has no key '{path[-1]}'"):
            _measure.render("profile-text", without(profile, path))
    with pytest.raises(kiln.KilnError, match=r"tree\[0\] has no key 'shapes'"):
        _measure.render("profile-html", without(profile, ("tree", 0, "shapes")))
    bench = kiln.bench(
        torch.add, x, x, check=False, options={"max_time_s": 0.2, "max_warm_up_s": 0.05}
    ).json
    for path in (("device", "name"), ("contenders", 0, "cold", "median_ns"), ("roof",)):
        with pytest.raises(kiln.KilnError, match=f"has no key '{path[-1]}'"):
            _measure.render("html", without(bench, path))
    assert "engine time" in _measure.render("text", bench)


def test_another_profiler_is_told():
    import kiln

    x = torch.randn(10)
    with torch.profiler.profile(), pytest.raises(kiln.KilnError, match="one profiler at a time"):
        kiln.profile(lambda: x * x)
    assert kiln.profile(lambda: x * x).ops() == ["aten::mul"]  # and when it has gone, it works


def test_bytes_of_ops_are_known_by_their_tensors():
    import kiln
    from kiln._facts.moved_bytes import moved_bytes
    from kiln.profiling import add_bytes

    x, row = torch.randn(256, 4), torch.randn(4)

    def body():
        return torch.sqrt(x * x), x + row.expand(256, 4), x.add_(1)

    moved = moved_bytes(body)
    assert moved["aten::mul"] == [2 * 4096] and moved["aten::sqrt"] == [2 * 4096]  # x is read once
    assert moved["aten::add"] == [2 * 4096 + 16]  # the row is read once
    assert moved["aten::add_"] == [2 * 4096]
    tree = kiln.profile(body).json["tree"]
    tree[0]["kernels"].append({"name": "mul", "us": 1.0, "bytes": None})
    add_bytes(tree, moved)
    assert (
        tree[0]["name"] == "aten::mul"
        and tree[0]["bytes"] == tree[0]["kernels"][0]["bytes"] == 8192
    )
    add_bytes(tree, {"aten::sqrt": [1, 2]})  # not as many calls: nothing is known
    assert next(n for n in tree if n["name"] == "aten::sqrt")["bytes"] == 8192


def test_kernels_have_short_names():
    from kiln.profiling import short_name

    whole = (
        "void at::native::elementwise<4, Functor<float>, std::array<char*, 3ul> >(int, "
        "Functor<float>)"
    )
    assert (
        short_name(whole) == "at::native::elementwise<4, Functor<float>, std::array<char*, 3ul> >"
    )
    assert (
        short_name("(anonymous namespace)::add<f32>(float*, long)")
        == "(anonymous namespace)::add<f32>"
    )
    assert short_name("add") == "add"
