#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a build do with bad input? Damaged entries, disks that are full or read-only, clocks
that are wrong, servers that die.

    test_bad_input.py KILN [--every N] [unittest's arguments]

nvcc is the script of tests/golden/survival.py, which the host compiler stands behind; the Redis
server is a real one.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import one_in  # noqa: E402
from survival import KILN, Build  # noqa: E402

SECRET = "a secret of the whole team"


class Cached(Build):
    def setUp(self) -> None:
        super().setUp()
        self.store = self.top / "cache/kiln/store"
        self.environment["KILN_CACHE_TIMEOUT"] = "0.5"

    def build_told(self, *arguments: str) -> tuple[dict, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out), err

    def forget_build(self) -> None:
        shutil.rmtree(self.top / "cache/kiln/lone", ignore_errors=True)

    def entries(self) -> list[Path]:
        return [path for path in self.store.glob("entries/*/*") if path.is_file()]

    def words(self, built: dict) -> set[str]:
        return {step["cache"] for step in built["steps"]}


class Cache(Cached):
    def test_hit_after_the_build_folder_is_gone(self) -> None:
        first = self.build()
        self.forget_build()
        again = self.build()
        self.assertEqual(self.words(again), {"hit"})
        self.assertEqual(self.compiles(), 1)
        self.assertEqual(self.value_in(again["library"]), 1)
        self.assertEqual(Path(first["library"]).name, Path(again["library"]).name)

    def test_damaged_entries_are_seen_told_and_made_anew(self) -> None:
        self.build()
        for damage in (
            lambda b: b[: len(b) // 2],
            lambda b: b"",
            lambda b: b[:-70] + b"X" * 70,
            lambda b: b.replace(b"e", b"f"),
        ):
            for path in self.entries():
                path.write_bytes(damage(path.read_bytes()))
            self.forget_build()
            built, err = self.build_told()
            self.assertIn("damaged and is being rebuilt", err)
            self.assertEqual(self.value_in(built["library"]), 1)
            self.forget_build()
            self.assertEqual(self.words(self.build()), {"hit"})

    def test_read_only_cache(self) -> None:
        self.build()
        self.write("value.h", "#define VALUE 2\n")
        script = (
            f"mount --bind {self.store} {self.store} && mount -o remount,ro,bind {self.store} && "
            f"exec {KILN} build {self.source} --json"
        )
        done = subprocess.run(
            ["unshare", "-m", "-r", "sh", "-c", script],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if "mount" in done.stderr or "unshare" in done.stderr:
            self.skipTest(f"cannot mount here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the cache cannot be written", done.stderr)
        self.assertEqual(self.value_in(json.loads(done.stdout)["library"]), 2)

    def test_full_disk_under_the_cache(self) -> None:
        self.store.mkdir(parents=True, mode=0o700)
        script = (
            f"mount -t tmpfs -o size=8k,mode=700 tmpfs {self.store} && exec {KILN} build "
            f"{self.source} --json"
        )
        done = subprocess.run(
            ["unshare", "-m", "-r", "sh", "-c", script],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if not done.stdout:
            self.skipTest(f"cannot mount a small disk here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(self.value_in(json.loads(done.stdout)["library"]), 1)

    def test_cache_that_others_may_write_to_is_refused(self) -> None:
        self.build()
        self.store.chmod(0o777)
        self.forget_build()
        built, err = self.build_told()
        self.assertIn(f"other users can write to {self.store}", err)
        self.assertEqual(self.words(built), {"made"})
        code = subprocess.run(
            [str(KILN), "cache"], env=self.environment, capture_output=True, text=True
        )
        self.assertEqual(code.returncode, 3)
        self.assertIn("chmod -R go-w", code.stderr)

    def test_two_versions_on_one_cache_do_not_meet(self) -> None:
        self.build()
        for path in self.entries():  # as a later kiln would write them
            path.write_bytes(path.read_bytes().replace(b"kiln-entry 1\n", b"kiln-entry 2\n"))
        self.forget_build()
        built = self.build()
        self.assertEqual(self.value_in(built["library"]), 1)
        # The version is a part of every key.
        key = json.loads(
            subprocess.run(
                [str(KILN), "cache", "explain", self.entries()[0].name, "--json"],
                env=self.environment, capture_output=True, text=True, check=True,
            ).stdout
        )  # fmt: skip
        self.assertIn("kiln", key["parts"])

    def test_many_at_once_share_one_cache(self) -> None:
        sources = []
        for number in range(6):
            folder = self.top / f"p{number}"
            folder.mkdir()
            shutil.copy(self.source, folder)
            shutil.copy(self.top / "value.h", folder)
            sources.append(folder / "add.cu")
        running = [
            subprocess.Popen(
                [str(KILN), "build", str(s), "--json"],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for s in sources
        ]
        for process in running:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(self.value_in(json.loads(out)["library"]), 1)

    def test_limit_evicts(self) -> None:
        self.environment["KILN_CACHE_SIZE"] = "6K"
        for value in range(5):
            self.write("value.h", f"#define VALUE {value}\n")
            self.build()
        self.assertLessEqual(sum(path.stat().st_size for path in self.entries()), 20_000)
        told = json.loads(
            subprocess.run(
                [str(KILN), "cache", "--json"], env=self.environment, capture_output=True, text=True
            ).stdout
        )
        self.assertGreater(told["evicted"], 0)


class Places(Cached):
    def test_moved_project_hits(self) -> None:
        project = self.top / "one"
        project.mkdir()
        (project / "kiln.toml").write_text('name = "p"\nsources = ["h.cpp"]\n')
        (project / "h.cpp").write_text(
            'extern "C" __attribute__((visibility("default"))) int value() { return 4; }\n'
        )
        self.source = project
        self.assertEqual(self.words(self.build()), {"made"})
        shutil.move(project, self.top / "two")
        shutil.rmtree(self.top / "two/build")
        self.source = self.top / "two"
        moved = self.build()
        self.assertIn("hit", self.words(moved))
        self.assertEqual(self.value_in(moved["library"]), 4)

    def test_symlinked_project(self) -> None:
        link = self.top / "link.cu"
        link.symlink_to(self.source)
        self.assertEqual(self.value_in(self.build()["library"]), 1)
        self.source = link
        self.assertEqual(self.value_in(self.build()["library"]), 1)
        self.write("value.h", "#define VALUE 2\n")
        self.assertEqual(self.value_in(self.build()["library"]), 2)

    def test_blanks_and_letters_of_other_scripts(self) -> None:
        folder = self.top / "mit Leerzeichen ü 核"
        folder.mkdir()
        shutil.copy(self.top / "value.h", folder)
        self.source = folder / "kérnel $x #1.cpp"
        self.source.write_text(
            (self.top / "add.cu")
            .read_text()
            .replace("int value", '__attribute__((visibility("default"))) int value')
        )
        self.assertEqual(self.value_in(self.build("--name", "k")["library"]), 1)
        (folder / "value.h").write_text("#define VALUE 2\n")
        self.assertEqual(self.value_in(self.build("--name", "k")["library"]), 2)
        self.assertFalse(self.build("--name", "k")["rebuilt"])

    def test_header_cycle_is_the_compilers_error_and_ends(self) -> None:
        self.write("value.h", '#include "other.h"\n')
        self.write("other.h", '#include "value.h"\n')
        code, error = self.error()
        self.assertEqual(code, 1)
        self.assertIn("nested", error["why"])

    def test_guarded_header_cycle_builds(self) -> None:
        self.write("value.h", '#pragma once\n#include "other.h"\n#define VALUE 6\n')
        self.write("other.h", '#pragma once\n#include "value.h"\n')
        self.assertEqual(self.value_in(self.build()["library"]), 6)

    def test_shadowing_header_with_an_old_time(self) -> None:
        self.write("second/extra.h", "#define EXTRA 1\n")
        self.write("value.h", "#include <extra.h>\n#define VALUE EXTRA\n")
        flags = ("-I", str(self.top / "first"), "-I", str(self.top / "second"))
        (self.top / "first").mkdir()
        self.assertEqual(self.value_in(self.build(*flags)["library"]), 1)
        self.write("first/extra.h", "#define EXTRA 2\n")
        os.utime(self.top / "first/extra.h", (1e9, 1e9))
        self.assertEqual(self.value_in(self.build(*flags)["library"]), 2)
        (self.top / "first/extra.h").unlink()
        self.assertEqual(self.value_in(self.build(*flags)["library"]), 1)

    def test_clock_that_was_wrong(self) -> None:
        self.build()
        future = time.time() + 10 * 365 * 86400
        self.write("value.h", "#define VALUE 2\n")
        os.utime(self.top / "value.h", (future, future))
        self.assertEqual(self.value_in(self.build()["library"]), 2)
        self.assertFalse(self.build()["rebuilt"], "a file of the future is no change for ever")
        # Edited with its old time, and the same size.
        stamp = (self.top / "value.h").stat()
        self.write("value.h", "#define VALUE 3\n")
        os.utime(self.top / "value.h", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        self.assertEqual(self.value_in(self.build()["library"]), 3)
        past = time.time() - 20 * 365 * 86400
        self.write("value.h", "#define VALUE 4\n")
        os.utime(self.top / "value.h", (past, past))
        self.assertEqual(self.value_in(self.build()["library"]), 4)


class Watch(Cached):
    def test_a_saved_header_builds_again_and_an_error_is_no_end(self) -> None:
        process = subprocess.Popen(
            [str(KILN), "build", str(self.source), "--watch"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []

        def until(word: str) -> None:
            for line in process.stdout:
                lines.append(line)
                if word in line:
                    return
            self.fail(f"no '{word}' in {lines}")

        ended = threading.Timer(300, lambda: os.killpg(process.pid, signal.SIGKILL))
        ended.start()
        try:
            for content, word in (("2\n", "built in"), ("(\n", "error"), ("3\n", "built in")):
                until("watching")
                # In one step: a save that is seen in the middle may be built twice.
                os.replace(
                    self.write("value.new", f"#define VALUE {content}"), self.top / "value.h"
                )
                until("value.h changed")
                until(word)
            until("watching")
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(timeout=120), 130)
        finally:
            ended.cancel()
            process.kill()
            process.stdout.close()
            process.wait()
        self.assertFalse(self.build()["rebuilt"])
        self.assertEqual(self.value_in(self.build()["library"]), 3)


class Explain(Cached):
    def told(self, *arguments: str) -> str:
        line = [str(KILN), "build", str(self.source), "--explain", *arguments]
        done = subprocess.run(
            line, env=self.environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_what_was_rebuilt_and_the_part_of_the_key_that_differed(self) -> None:
        first = self.told("-DX=1")
        for word in (
            "because       there was no finished build",
            "lane          full",
            "architectures sm_",
            "jobs",
            "memory",
            "miss: no entry",
        ):
            self.assertIn(word, first)
        self.assertIn("up to date    no input changed", self.told("-DX=1"))
        self.assertIn("miss: -DX=1 is now -DX=2", self.told("-DX=2"))
        self.write("value.h", "#define VALUE 2\n")
        changed = self.told("-DX=2")
        self.assertIn(f"because       {self.top}/value.h changed", changed)
        self.assertIn(f"miss: {self.top}/value.h changed", changed)
        self.environment["NVCC_APPEND_FLAGS"] = "-DY"
        self.assertIn("miss: NVCC_APPEND_FLAGS is new", self.told("-DX=2"))
        nvcc = self.top / "cuda/bin/nvcc"
        nvcc.write_text(nvcc.read_text() + "# another one\n")
        self.assertIn("miss: nvcc changed", self.told("-DX=2"))
        self.source.write_text(self.source.read_text() + "int more;\n")
        self.assertIn("add.cu changed", self.told("-DX=2"))
        self.forget_build()
        self.assertIn("hit in the cache: key ", self.told("-DX=2"))
        self.assertIn(f"+ {nvcc} -c", self.told("-DX=3", "-v"))

    def test_a_line_of_progress_on_a_terminal(self) -> None:
        self.slow.touch()
        ours, theirs = pty.openpty()
        line = [str(KILN), "build", str(self.source)]
        process = subprocess.Popen(
            line, env=self.environment, stdout=subprocess.DEVNULL, stderr=theirs
        )
        os.close(theirs)
        seen = b""
        ended = threading.Timer(240, process.kill)
        ended.start()
        try:
            while b"] compile add.cu" not in seen and process.poll() is None:
                seen += os.read(ours, 4096)
            self.slow.unlink()
            while True:
                try:
                    more = os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
                if not more:
                    break
                seen += more
            self.assertEqual(process.wait(timeout=240), 0)
        finally:
            ended.cancel()
            process.kill()
            process.wait()
            os.close(ours)
        self.assertIn(b"[0/2] compile add.cu", seen)
        self.assertIn(b"\r\x1b[K", seen, "the line is cleared")


class Findings(Cached):
    """What ptxas found is told, or fails the build where that is asked, whether it ran or the cache
    answered."""

    def setUp(self) -> None:
        super().setUp()
        nvcc = self.top / "cuda/bin/nvcc"
        spill = (
            "ptxas warning : Registers are spilled to local memory in function '_Z5heavyPf', "
            "204 bytes spill stores"
        )
        nvcc.write_text(nvcc.read_text().replace("exec g++", f'echo "{spill}"\nexec g++'))

    def test_a_warning_or_an_error_also_from_the_cache(self) -> None:
        for _ in range(2):
            _, err = self.build_told()
            self.assertIn("heavy(float*): registers spill to local memory", err)
            for _ in range(2):  # the second finds everything as it was
                code, error = self.error("--findings", "error")
                self.assertEqual(code, 1)
                self.assertIn("heavy(float*)", error["why"])
            self.forget_build()
        self.assertEqual(self.compiles(), 1)


class Memory(Cached):
    def test_compiler_that_was_killed_for_memory_runs_again_alone(self) -> None:
        nvcc = self.top / "cuda/bin/nvcc"
        script = nvcc.read_text()
        # Killed as long as another one runs beside it.
        nvcc.write_text(
            script.replace(
                "#!/bin/sh\n",
                '#!/bin/sh\ncase "$*" in *--dryrun*) exit 1 ;; esac\n[ -e "$FAKE_LOG.once" ] || { '
                'touch "$FAKE_LOG.once"; kill -9 $$; }\n',
            )
        )
        self.environment["MAX_JOBS"] = "4"
        built, err = self.build_told()
        self.assertIn("one at a time", err)
        self.assertEqual(self.value_in(built["library"]), 1)


class Shared(Cached):
    """Two machines: two cache folders and one shared place."""

    def setUp(self) -> None:
        super().setUp()
        self.environment |= {
            "KILN_CACHE_REMOTE": str(self.top / "shared"),
            "KILN_CACHE_SECRET": SECRET,
        }

    def other_machine(self) -> None:
        shutil.rmtree(self.top / "cache", ignore_errors=True)

    def test_folder(self) -> None:
        self.build()
        self.other_machine()
        built = self.build()
        self.assertEqual(self.words(built), {"shared hit"})
        self.assertEqual(self.value_in(built["library"]), 1)

    def test_poisoned_entry_is_never_linked(self) -> None:
        self.build()
        for path in (self.top / "shared").glob("*/*"):
            path.write_bytes(path.read_bytes()[:-64] + b"0" * 64)
        self.other_machine()
        built, err = self.build_told()
        self.assertIn("not signed with this team's key", err)
        self.assertEqual(self.words(built), {"made"})
        self.assertEqual(self.value_in(built["library"]), 1)

    def test_entry_under_another_entrys_name(self) -> None:
        self.build()
        paths = sorted((self.top / "shared").glob("*/*"))
        contents = [path.read_bytes() for path in paths]
        for path, content in zip(paths, contents[1:] + contents[:1]):
            path.write_bytes(content)
        self.other_machine()
        built, err = self.build_told()
        self.assertEqual(self.words(built), {"made"})

    def test_no_secret_no_sharing(self) -> None:
        del self.environment["KILN_CACHE_SECRET"]
        built, err = self.build_told()
        self.assertIn("no secret", err)
        self.assertFalse((self.top / "shared").exists())

    def test_pipes_in_a_shared_folder_are_not_waited_for(self) -> None:
        self.build()
        for path in (self.top / "shared").glob("*/*"):
            path.unlink()
            os.mkfifo(path)  # to open one for reading waits for a writer
        self.other_machine()
        built, err = self.build_told()
        self.assertIn("it is a pipe or a device, not a file", err)
        self.assertNotIn("no answer within", err)
        self.assertEqual(self.value_in(built["library"]), 1)


@unittest.skipUnless(shutil.which("redis-server"), "no redis-server: apt install redis-server")
class Redis(Cached):
    def setUp(self) -> None:
        super().setUp()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--requirepass", "word",
            "--dir", str(self.top)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.environment |= {
            "KILN_CACHE_REMOTE": f"redis://:word@127.0.0.1:{self.port}/1",
            "KILN_CACHE_SECRET": SECRET,
        }
        limit = time.monotonic() + 120
        while time.monotonic() < limit:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        self.fail("the Redis server does not come up")

    def tearDown(self) -> None:
        self.server.send_signal(signal.SIGCONT)
        self.server.kill()
        self.server.wait()
        super().tearDown()

    def other_machine(self) -> None:
        shutil.rmtree(self.top / "cache", ignore_errors=True)

    def test_second_machine_hits(self) -> None:
        self.build()
        self.other_machine()
        built = self.build()
        self.assertEqual(self.words(built), {"shared hit"})
        self.assertEqual(self.compiles(), 1)

    def test_wrong_password_is_told_and_builds(self) -> None:
        self.environment["KILN_CACHE_REMOTE"] = f"redis://:wrong@127.0.0.1:{self.port}"
        built, err = self.build_told()
        self.assertIn("shared cache is not used", err)
        self.assertEqual(self.value_in(built["library"]), 1)

    def test_killed_in_the_middle(self) -> None:
        self.slow.touch()
        process = self.start()
        self.wait_for_compile()
        self.server.kill()
        self.server.wait()
        self.slow.unlink()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("shared cache is not used", err)
        self.assertEqual(self.value_in(json.loads(out)["library"]), 1)

    def test_stopped_server_costs_a_bounded_wait(self) -> None:
        self.server.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        built, err = self.build_told()
        self.assertIn("no answer within", err)
        self.assertLess(time.monotonic() - begun, 60)
        self.assertEqual(self.value_in(built["library"]), 1)


if __name__ == "__main__":
    one_in.main()
