# SPDX-License-Identifier: Apache-2.0
"""Is what `kiln sanitize --sarif` writes SARIF 2.1.0, with all that code hosts need?"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = [
    pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="the checkers watch the engine"),
]

SOURCE = """#include <cuda_runtime.h>
__global__ void reversed(const int* x, int* y) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void beyond(int* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main() {
  int *x, *y;
  cudaMalloc(&x, 64 * sizeof(int));
  cudaMalloc(&y, 64 * sizeof(int));
  cudaMemset(x, 0, 64 * sizeof(int));
  reversed<<<1, 64>>>(x, y);
  beyond<<<2, 64>>>(y);
  cudaFree(x);
  cudaFree(x);
  cudaDeviceSynchronize();
}
"""
LEVELS = {"none", "note", "warning", "error"}
# RFC 3986, as far as paths go.
URI = re.compile(r"(file:///)?([\w\-.~!$&'()*+,;=@/]|%[0-9A-F]{2})+")


@pytest.fixture(scope="module")
def log(command: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sarif")
    (folder / "two words.cu").write_text(SOURCE)
    (folder / "accepted.txt").write_text("out-of-bounds beyond * a reason\n")
    words = ["two words.cu", "--sarif", "found.sarif", "--suppress", "accepted.txt"]
    done = subprocess.run(
        [command, "sanitize", *words],
        cwd=folder,
        env={**os.environ, "KILN_DEVICE": "engine"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    return json.loads((folder / "found.sarif").read_text())


def test_the_log_has_what_the_standard_requires(log: dict[str, Any]) -> None:
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert set(log) <= {"$schema", "version", "runs"}
    (run,) = log["runs"]
    assert set(run) <= {"tool", "columnKind", "results"}
    assert run["columnKind"] == "utf16CodeUnits"
    driver = run["tool"]["driver"]
    assert driver["name"] and driver["version"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS


def test_each_result_has_its_rule_and_its_place(log: dict[str, Any]) -> None:
    """A code host refuses the file if one result has no place."""
    (run,) = log["runs"]
    ids = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = {result["ruleId"] for result in run["results"]}
    assert found == {"shared-race", "out-of-bounds", "double-free"}
    for result in run["results"]:
        assert result["ruleId"] in ids
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        assert result["occurrenceCount"] >= 1
        assert len(result["locations"]) == 1
        for place in result["locations"] + result.get("relatedLocations", []):
            physical = place["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            artifact = physical["artifactLocation"]
            assert URI.fullmatch(artifact["uri"]), artifact
            assert artifact["uri"] == "two%20words.cu"
            assert artifact["uriBaseId"] == "%SRCROOT%"
        numbers = [each["id"] for each in result.get("relatedLocations", [])]
        assert numbers == list(range(1, len(numbers) + 1))


def test_lines_and_suppressions(log: dict[str, Any]) -> None:
    by_rule = {result["ruleId"]: result for result in log["runs"][0]["results"]}

    def line(place: dict[str, Any]) -> int:
        return place["physicalLocation"]["region"]["startLine"]

    race = by_rule["shared-race"]
    assert {line(race["locations"][0]), line(race["relatedLocations"][0])} == {4, 5}
    assert line(by_rule["double-free"]["locations"][0]) == 1
    (accepted,) = by_rule["out-of-bounds"]["suppressions"]
    assert accepted == {"kind": "external", "justification": "a reason"}
    assert "suppressions" not in race
