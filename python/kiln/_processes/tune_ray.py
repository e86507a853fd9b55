# SPDX-License-Identifier: Apache-2.0
"""How does `kiln tune --ray ADDRESS` use several machines? Actors that build, one per core, and
lanes that measure, one per GPU (or one per machine, on the engine). Each takes the next
variant as soon as it is free.

The command speaks with this process line by line; src/tune/ray_workers.h has the messages.
"""

from __future__ import annotations

import base64
import io
import json
import os
import queue
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Optional

from ..errors import KilnError

_LEFT_OUT = {"build", ".git", "__pycache__"}


def pack(target: Path) -> bytes:
    """A project's folder, or the folder of a lone file without its subfolders, as a tar."""

    def wanted(info: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
        return None if _LEFT_OUT & set(Path(info.name).parts) else info

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        if target.is_dir():
            archive.add(target, arcname="target", filter=wanted)
        else:
            for file in sorted(target.parent.iterdir()):
                if file.is_file() and file.suffix in {
                    ".cu",
                    ".cuh",
                    ".h",
                    ".hpp",
                    ".inl",
                    ".inc",
                    ".cpp",
                    ".cc",
                }:
                    archive.add(file, arcname=f"target/{file.name}")
    return out.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")


class Builder:
    """Builds variants on one core of some machine."""

    def __init__(self, sources: bytes, name: str) -> None:
        import ray

        from ..command import checked_command

        self._command = str(checked_command())
        self._worker = ray.get_runtime_context().get_node_id()[:12]
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-tune-")
        unpack(sources, Path(self._folder.name))
        self._target = Path(self._folder.name) / "target" / name

    def build(self, number: int, words: list[str]) -> dict[str, Any]:
        place = Path(self._folder.name) / f"variant-{number}"
        line = [
            self._command,
            "build",
            str(self._target),
            "--json",
            "--build-dir",
            str(place),
            *words,
        ]
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "MAX_JOBS": "1"},
            stdin=subprocess.DEVNULL,
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"error": {"what": "kiln build", "why": done.stderr[-500:]}}
        if done.returncode != 0:
            answer.pop("library", None)
        elif "library" in answer:
            answer["bytes"] = Path(answer["library"]).read_bytes()
        answer["worker"] = self._worker
        return answer


class Lane:
    """Measures on one GPU of some machine, or checks on its engine, by the process that also
    measures locally."""

    def __init__(self, device: str) -> None:
        from ..command import PACKAGE, checked_command

        self._line = [str(checked_command()), "tune", "--measuring"]
        self._env = dict(os.environ)
        if device:
            self._env["KILN_DEVICE"] = device
        engine = PACKAGE / "lib" / "libkiln_engine.so"
        if engine.is_file():
            self._env.setdefault("KILN_ENGINE", str(engine))
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-lane-")
        self._process: Optional[subprocess.Popen] = None

    def hello(self) -> dict[str, Any]:
        self.stop()
        self._process = subprocess.Popen(
            self._line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
        )
        return self._ask({"do": "hello"})

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def measure(
        self, request: dict[str, Any], libraries: list[bytes], reference: dict[str, bytes]
    ) -> dict[str, Any]:
        """An {"ended": words} when the process went down with the variant."""
        place = Path(self._folder.name)
        paths = []
        for i, data in enumerate(libraries):
            # A path of its own for each: dlopen gives the old library for a path it has seen.
            path = place / f"variant-{request.get('id', 0)}-{i}.so"
            path.write_bytes(data)
            paths.append(str(path))
        request = {
            **request,
            "library": paths[0],
            "libraries": paths,
            "reference": str(place / "reference"),
        }
        if reference and not (place / "reference").exists():
            (place / "reference").mkdir()
            for name, data in reference.items():
                (place / "reference" / name).write_bytes(data)
        answer = self._ask(request)
        if answer.get("established"):
            answer["files"] = {
                file.name: file.read_bytes() for file in (place / "reference").iterdir()
            }
        for path in paths:
            Path(path).unlink(missing_ok=True)
        return answer

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        if line:
            return json.loads(line)
        code = process.wait()
        return {
            "ended": f"the process ended by signal {-code}"
            if code < 0
            else f"the process ended with code {code}"
        }


class Cluster:
    """Ray's side: who there is, and what is asked of whom."""

    def __init__(self, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> None:
        try:
            import ray
        except ImportError:
            raise KilnError("cannot use Ray", "it is not installed", "pip install ray") from None
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as OnNode

        self._ray, self._say = ray, say
        address = request["address"]
        environment = {
            k: v
            for k, v in os.environ.items()
            if k in ("PYTHONPATH", "KILN_BIN", "CUDA_HOME", "KILN_HOME")
        }
        try:
            ray.init(
                address=None if address == "local" else address, include_dashboard=False,
                log_to_driver=False, logging_level="ERROR", runtime_env={"env_vars": environment},
            )  # fmt: skip
        except Exception as error:
            raise KilnError(
                f"cannot reach Ray at {address}", f"{error}", "ray status; ray start --head"
            ) from None
        target = Path(request["target"])
        sources = ray.put(pack(target))
        name = "" if target.is_dir() else target.name
        self._folder = Path(request["folder"])
        self._folder.mkdir(parents=True, exist_ok=True)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        gpus = (
            {}
            if request["device"] == "engine"
            else {n["NodeID"]: int(n["Resources"].get("GPU", 0)) for n in nodes}
        )
        self._builders: queue.Queue = queue.Queue()
        self._builds: queue.Queue = queue.Queue()
        self._lanes: list[Any] = []
        self.builders = 0
        for node in nodes:
            here = OnNode(node["NodeID"], soft=False)
            for _ in range(max(1, int(node["Resources"].get("CPU", 1)))):
                actor = (
                    ray.remote(Builder)
                    .options(num_cpus=1, scheduling_strategy=here)
                    .remote(sources, name)
                )
                threading.Thread(target=self._run_builder, args=(actor,), daemon=True).start()
                self.builders += 1
            count = gpus.get(node["NodeID"], 0) or (1 if not any(gpus.values()) else 0)
            for _ in range(count):
                options = {"num_gpus": 1} if any(gpus.values()) else {}
                lane = ray.remote(Lane).options(
                    num_cpus=0, max_concurrency=2, scheduling_strategy=here, **options
                )
                self._lanes.append(lane.remote(request["device"]))
        answers = ray.get([lane.hello.remote() for lane in self._lanes])
        for answer in answers:
            if "device" not in answer:
                raise KilnError(
                    "a worker of Ray cannot measure",
                    answer.get("ended") or str(answer.get("error")),
                )
        self.devices = [answer["device"] for answer in answers]

    def _run_builder(self, actor: Any) -> None:
        """Takes one variant after the other from the queue."""
        while True:
            number, words = self._builds.get()
            try:
                answer = self._ray.get(actor.build.remote(number, words))
            except Exception as error:
                answer = {"error": {"what": "a worker of Ray was lost", "why": str(error)}}
            data = answer.pop("bytes", None)
            if data is not None:
                path = self._folder / f"variant-{number}.so"
                path.write_bytes(data)
                answer["library"] = str(path)
            self._say({"built": number, "answer": answer})

    def build(self, number: int, words: list[str]) -> None:
        self._builds.put((number, words))

    def measure(self, lane: int, number: int, request: dict[str, Any]) -> None:
        paths = request["libraries"] if request["do"] == "race" else [request["library"]]
        folder = Path(request["reference"])
        reference = (
            {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}
        )
        libraries = [Path(path).read_bytes() for path in paths]

        def wait() -> None:
            try:
                answer = self._ray.get(
                    self._lanes[lane].measure.remote(request, libraries, reference)
                )
            except Exception as error:
                answer = {"ended": f"a worker of Ray was lost: {error}"}
            if "ended" in answer:
                self._say({"lane_ended": lane, "id": number, "words": answer["ended"]})
                return
            files = answer.pop("files", None)
            if files is not None and not folder.is_dir():
                folder.mkdir(parents=True)
                for name, data in files.items():
                    (folder / name).write_bytes(data)
            self._say({"measured": number, "lane": lane, "answer": answer})

        threading.Thread(target=wait, daemon=True).start()

    def restart(self, lane: int) -> None:
        # The one that waits for a hanging process is released by the end of that process.
        self._ray.get(self._lanes[lane].stop.remote())
        answer = self._ray.get(self._lanes[lane].hello.remote())
        if "device" not in answer:
            raise KilnError(
                "a worker of Ray cannot measure any more",
                answer.get("ended") or str(answer.get("error")),
            )
        self._say({"restarted": lane, "device": answer["device"]})


def main() -> int:
    # What Ray prints must not get between the lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(value: dict[str, Any]) -> None:
        text = json.dumps(value, default=lambda data: base64.b64encode(data).decode())
        with lock:
            answers.write(text + "\n")
            answers.flush()

    cluster: Optional[Cluster] = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                cluster = Cluster(request, say)
                say({"ready": {"builders": cluster.builders, "lanes": cluster.devices}})
            elif cluster is None:
                raise KilnError("the cluster is not open")
            elif request["do"] == "build":
                cluster.build(request["id"], request["words"])
            elif request["do"] == "measure":
                cluster.measure(request["lane"], request["id"], request["request"])
            elif request["do"] == "restart":
                cluster.restart(request["lane"])
        except KilnError as error:
            say({"error": {"what": error.what, "why": error.why, "fix": error.fix}})
        except Exception as error:
            say({"error": {"what": "Ray", "why": f"{type(error).__name__}: {error}"}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
