#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who else can put something into a build, or keep it from its end?

Other users, shared places, servers, limits of the system.

    test_trust.py KILN [--every N] [unittest's arguments]

nvcc is the script of tests/golden/survival.py. What needs root, a second user or a namespace is
skipped by name elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import one_in  # noqa: E402
from survival import KILN, Build  # noqa: E402

SECRET = "a secret of the whole team"
NOBODY = 65534


def is_root() -> bool:
    return os.geteuid() == 0


class Cached(Build):
    def setUp(self) -> None:
        super().setUp()
        # Others may look into it, as into most folders: else nothing below could be reached at all.
        self.top.chmod(0o755)
        self.store = self.top / "store"
        self.store.mkdir(mode=0o755)
        self.environment["KILN_CACHE_DIR"] = str(self.store)

    def entries(self) -> list[Path]:
        return [path for path in self.store.glob("entries/*/*") if path.is_file()]

    def forget_build(self) -> None:
        shutil.rmtree(self.top / "cache/kiln/lone", ignore_errors=True)

    def told(self, umask: int = 0o022, script: str = "") -> tuple[dict, str]:
        """What `kiln build` says under an umask, or with a command before its own."""
        words = [str(KILN), "build", str(self.source), "--json"]
        line = ["sh", "-c", f'umask {umask:03o}; {script} exec "$@"', "sh", *words]
        done = subprocess.run(
            line,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            errors="replace",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def words(self, built: dict) -> set[str]:
        return {step["cache"] for step in built["steps"]}

    def as_nobody(self, *line: str) -> subprocess.CompletedProcess[str]:
        if not is_root() or not shutil.which("setpriv"):
            self.skipTest("a second user needs root and setpriv")
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *line]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)


class OtherUsers(Cached):
    def assert_nobody_else_writes(self, *tops: Path) -> None:
        for top in tops:
            for path in (top, *top.rglob("*")):
                mode = path.lstat().st_mode
                if not stat.S_ISLNK(mode):
                    self.assertEqual(mode & 0o022, 0, f"{path}: {stat.filemode(mode)}")

    def test_what_the_cache_makes_is_safe_whatever_the_umask(self) -> None:
        for umask in (0o000, 0o002):
            shutil.rmtree(self.store / "entries", ignore_errors=True)
            self.forget_build()
            built, _ = self.told(umask)
            self.assertEqual(self.value_in(built["library"]), 1)
            self.assert_nobody_else_writes(self.store)
            self.assertTrue(self.entries())
            self.assertEqual(stat.S_IMODE((self.store / "lock").stat().st_mode), 0o600)
            # Libraries of lone files lie there too, and are loaded from there.
            self.assertEqual(stat.S_IMODE((self.top / "cache/kiln").stat().st_mode), 0o700)

    def test_a_cache_folder_that_is_made_is_for_its_user_alone(self) -> None:
        self.environment["KILN_CACHE_DIR"] = str(self.top / "a/b/store")
        self.told(0o000)
        self.assertEqual(stat.S_IMODE((self.top / "a/b/store").stat().st_mode), 0o700)
        self.assert_nobody_else_writes(self.top / "a")

    def test_entries_that_others_could_write_to_are_not_used(self) -> None:
        self.told()
        for path in (self.store / "entries", self.entries()[0].parent):
            for mode in (0o777, 0o775):
                path.chmod(mode)
                self.forget_build()
                built, err = self.told()
                self.assertIn(f"other users can write to {path}", err)
                self.assertIn(f"chmod -R go-w '{path}'", err)
                self.assertEqual(err.count("is not used"), 1, err)
                self.assertIn("made", self.words(built))
                self.assertEqual(self.value_in(built["library"]), 1)
            path.chmod(0o755)
        self.forget_build()
        self.assertEqual(self.words(self.told()[0]), {"hit"})

    def test_a_single_entry_that_others_could_write_to_is_made_anew(self) -> None:
        self.told()
        for entry in self.entries():
            entry.chmod(0o666)
        self.forget_build()
        built, err = self.told()
        self.assertIn("another user owns it or can write to it", err)
        self.assertEqual(self.value_in(built["library"]), 1)
        self.assert_nobody_else_writes(self.store)

    def test_a_second_user_cannot_plant_anything(self) -> None:
        self.told(0o000)
        key = self.entries()[0]
        places = [
            key,
            key.parent / "x",
            self.store / "entries/x",
            self.store / "lock",
            self.top / "cache/kiln/x",
        ]
        for line in [["touch", str(place)] for place in places] + [["rm", "-f", str(key)]]:
            done = self.as_nobody(*line)
            self.assertNotEqual(done.returncode, 0, line)
            self.assertIn("Permission denied", done.stderr)
        # A lock that somebody else could take would hold every build.
        self.assertNotEqual(
            self.as_nobody("flock", "-n", str(self.store / "lock"), "true").returncode, 0
        )

    def test_what_a_second_user_has_planted_is_not_used(self) -> None:
        self.told()
        good = {entry: entry.read_bytes() for entry in self.entries()}
        (self.store / "entries").chmod(0o777)
        for entry, content in good.items():
            self.as_nobody("true")
            shutil.rmtree(entry.parent, ignore_errors=True)
            script = f"mkdir -p {entry.parent} && cat > {entry}"
            nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            subprocess.run([*nobody, "sh", "-c", script], input=content, check=True)
        (self.store / "entries").chmod(0o755)  # closed too late
        self.forget_build()
        built, err = self.told()
        self.assertIn(f"user {NOBODY} owns", err)
        self.assertEqual(self.words(built), {"made"})

    def test_the_folder_of_another_user_is_not_used(self) -> None:
        if not is_root():
            self.skipTest("only root can give a folder to another user")
        os.chown(self.store, NOBODY, NOBODY)
        built, err = self.told()
        self.assertIn(f"user {NOBODY} owns {self.store}", err)
        self.assertEqual(self.words(built), {"made"})
        self.assertEqual(self.entries(), [])

    def test_a_secret_that_others_could_choose_is_not_used(self) -> None:
        secret = self.write("secret", SECRET)
        self.environment |= {
            "KILN_CACHE_REMOTE": str(self.top / "team"),
            "KILN_CACHE_SECRET_FILE": str(secret),
        }
        secret.chmod(0o666)
        _, err = self.told()
        self.assertIn("the shared cache is not used", err)
        self.assertIn(str(secret), err)
        secret.chmod(0o640)
        self.forget_build()
        self.assertNotIn("not used", self.told()[1])

    def test_a_folder_of_builds_that_others_may_write_to_is_an_error_with_a_fix(self) -> None:
        self.told()
        (self.top / "cache").chmod(0o755)
        (self.top / "cache/kiln").chmod(0o777)
        code, error = self.error()
        self.assertEqual(code, 3)
        self.assertIn(f"other users can write to {self.top / 'cache/kiln'}", error["why"])
        self.assertIn("chmod -R go-w", error["fix"])

    def test_nothing_of_watch_has_a_name_that_others_can_guess(self) -> None:
        temporary = self.top / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        self.environment["TMPDIR"] = str(temporary)
        process = subprocess.Popen(
            [str(KILN), "build", str(self.source), "--watch"],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        ended = threading.Timer(120, lambda: os.killpg(process.pid, signal.SIGKILL))
        ended.start()
        try:
            for line in process.stderr:
                if "watching" in line:
                    break
            names = os.listdir(temporary)
            self.assertEqual(len(names), 1, names)
            self.assertNotIn(str(process.pid), names[0])
            self.assertEqual(stat.S_IMODE((temporary / names[0]).stat().st_mode), 0o700)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=60)
            ended.cancel()
        self.assertEqual(os.listdir(temporary), [])


class SharedPlaces(Cached):
    def setUp(self) -> None:
        super().setUp()
        self.team = self.top / "team"
        self.environment |= {"KILN_CACHE_SECRET": SECRET, "KILN_CACHE_TIMEOUT": "5"}

    def fill_team(self) -> list[Path]:
        self.environment["KILN_CACHE_REMOTE"] = str(self.team)
        self.told()
        self.forget_build()
        shutil.rmtree(self.store / "entries")
        return [path for path in self.team.glob("*/*") if path.is_file()]

    def test_entries_of_a_shared_folder_that_cannot_be_are_damaged_ones(self) -> None:
        def huge(path: Path) -> None:
            os.truncate(path, 200 << 30)

        def pipe(path: Path) -> None:
            path.unlink()
            os.mkfifo(path)

        def endless(path: Path) -> None:
            path.unlink()
            path.symlink_to("/dev/zero")

        for damage in (huge, pipe, endless):
            with self.subTest(damage.__name__):
                shutil.rmtree(self.team, ignore_errors=True)
                shutil.rmtree(self.store / "entries", ignore_errors=True)
                self.forget_build()
                for path in self.fill_team():
                    damage(path)
                built, err = self.told()
                self.assertEqual(self.value_in(built["library"]), 1)
                self.assertEqual(self.words(built), {"made"})
                self.assertIn("a shared cache entry is not used", err)

    def test_a_huge_local_entry_is_a_damaged_one(self) -> None:
        self.told()
        for entry in self.entries():
            os.truncate(entry, 200 << 30)
        self.forget_build()
        built, err = self.told()
        self.assertIn("damaged and is being rebuilt", err)
        self.assertEqual(self.value_in(built["library"]), 1)

    @contextlib.contextmanager
    def server(self, answer) -> Iterator[list[int]]:
        """A Redis server of one's own: answer(connection) for each connection; the list holds what
        each sent."""
        listening = socket.create_server(("127.0.0.1", 0))
        sent: list[int] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    sent.append(0)
                    with contextlib.suppress(OSError):
                        connection.recv(1 << 16)
                        for piece in answer():
                            connection.sendall(piece)
                            sent[-1] += len(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.environment["KILN_CACHE_REMOTE"] = (
            f"redis://:hunter2@127.0.0.1:{listening.getsockname()[1]}"
        )
        try:
            yield sent
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            thread.join(timeout=60)

    def test_a_server_that_sends_a_byte_now_and_then_has_one_time_limit_in_all(self) -> None:
        self.environment["KILN_CACHE_TIMEOUT"] = "0.5"

        def trickle():
            yield b"$1000000\r\n"
            for _ in range(600):  # two minutes, if somebody waited for it
                time.sleep(0.2)
                yield b"x"

        with self.server(trickle) as sent:
            built, err = self.told()
        self.assertEqual(self.value_in(built["library"]), 1)
        self.assertIn("no answer within 0.5 s", err)
        self.assertLess(sent[0], 300)

    def test_a_line_without_an_end_is_given_up_early(self) -> None:
        def flood():
            for _ in range(10_000):
                yield b"-" * 100_000

        with self.server(flood) as sent:
            built, err = self.told()
        self.assertEqual(self.value_in(built["library"]), 1)
        self.assertIn("a reply without an end", err)
        self.assertLess(sent[0], 100_000_000)

    def test_what_a_server_says_does_not_steer_the_terminal(self) -> None:
        with self.server(lambda: iter([b"-ERR \x1b]0;owned\x07\x1b[2J\xc2\x9b31m\r\n"])):
            built, err = self.told()
        self.assertEqual(self.value_in(built["library"]), 1)
        self.assertIn(r"ERR \x1b]0;owned\x07", err)
        for character in err:
            self.assertTrue(character in "\n\t" or character.isprintable(), repr(character))

    def test_a_password_is_in_no_message(self) -> None:
        self.environment["KILN_CACHE_REMOTE"] = "redis://:hunter2@127.0.0.1:x"
        _, err = self.told()
        self.assertIn("the shared cache is not used", err)
        shown = subprocess.run(
            [str(KILN), "cache"], env=self.environment, capture_output=True, text=True
        )
        self.assertIn("redis://...@127.0.0.1", shown.stdout)
        self.assertNotIn("hunter2", err + shown.stdout + shown.stderr)

    def test_a_name_that_no_server_resolves_does_not_hold_the_build(self) -> None:
        """A name server that drops every question: 127.9.9.9 has none, so the build waits for its
        own limit alone."""
        if not is_root():
            self.skipTest("another /etc/resolv.conf needs root")
        silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            silent.bind(("127.9.9.9", 53))
        except OSError as error:
            self.skipTest(f"cannot play a name server here: {error.strerror}")
        resolv = self.write("resolv.conf", "nameserver 127.9.9.9\noptions timeout:30 attempts:5\n")
        hosts = self.write("nsswitch.conf", "hosts: dns\n")
        self.environment |= {
            "KILN_CACHE_REMOTE": "redis://cache.example.test",
            "KILN_CACHE_TIMEOUT": "0.5",
        }
        script = (
            f"mount --bind {resolv} /etc/resolv.conf && mount --bind {hosts} /etc/nsswitch.conf &&"
        )
        words = [str(KILN), "build", str(self.source), "--json"]
        line = ["unshare", "-m", "sh", "-c", f'{script} exec "$@"', "sh", *words]
        with silent:
            done = subprocess.run(
                line, env=self.environment, capture_output=True, text=True, timeout=120
            )
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(f"cannot mount here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no answer within 0.5 s", done.stderr)
        self.assertEqual(self.value_in(json.loads(done.stdout)["library"]), 1)


class Limits(Cached):
    def test_what_a_process_of_the_same_number_left_is_not_in_the_way(self) -> None:
        """In a PID namespace, as in a container, every run has the same few numbers."""
        inside = ["unshare", "-r", "-p", "-f", "--mount-proc"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("cannot make a PID namespace here")

        def build() -> dict:
            line = [*inside, str(KILN), "build", str(self.source), "--json"]
            done = subprocess.run(
                line, env=self.environment, capture_output=True, text=True, timeout=120
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("cannot write", done.stderr)
            return json.loads(done.stdout)

        self.assertEqual(self.value_in(build()["library"]), 1)
        for folder in (self.top / "cache", self.store):
            for path in [p for p in folder.rglob("*") if p.is_file() or p.is_symlink()]:
                for pid in range(1, 25):
                    for count in range(4):
                        (path.parent / f".{path.name}.{pid}.{count}.tmp").touch()
        self.write("value.h", "#define VALUE 2\n")
        self.assertEqual(self.value_in(build()["library"]), 2)

    def ends_in_order(self, limit: str) -> int:
        """Under the limit: a right library, or an error in kiln's form; never a signal, never half
        of a result."""
        self.forget_build()
        shutil.rmtree(self.store / "entries", ignore_errors=True)
        line = [
            "bash",
            "-c",
            f'{limit} && exec "$@"',
            "bash",
            str(KILN),
            "build",
            str(self.source),
            "--json",
        ]
        done = subprocess.run(
            line, env=self.environment, capture_output=True, text=True, timeout=120
        )
        self.assertIn(done.returncode, (0, 1, 3, 127), f"{limit}: {done.stderr}")
        if done.returncode == 0:
            self.assertEqual(self.value_in(json.loads(done.stdout)["library"]), 1)
        elif done.returncode != 127:
            self.assertIn("error: ", done.stderr, limit)
            self.assertNotIn("kiln reached an unexpected state", done.stderr, limit)
        # What was left behind is not in the way.
        self.assertEqual(self.value_in(self.told()[0]["library"]), 1)
        return done.returncode

    def test_few_files_at_a_time(self) -> None:
        ends = [
            self.ends_in_order(f"ulimit -n {count}")
            for count in (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 32)
        ]
        self.assertEqual(ends[-1], 0)
        self.assertNotEqual(ends[0], 0)

    def test_small_files_alone(self) -> None:
        ends = [
            self.ends_in_order(f"ulimit -f {blocks}") for blocks in (0, 1, 2, 4, 8, 16, 32, 4096)
        ]
        self.assertEqual(ends[-1], 0)
        self.assertNotEqual(ends[0], 0)

    def test_a_small_disk(self) -> None:
        disk = self.top / "disk"
        disk.mkdir()
        self.environment["XDG_CACHE_HOME"] = str(disk)
        for size in ("4k", "16k", "32k", "64k", "128k", "8m"):
            script = (
                f"mount -t tmpfs -o size={size},mode=700 tmpfs {disk} && exec {KILN} build "
                f"{self.source} --json"
            )
            line = ["unshare", "-m", "-r", "sh", "-c", script]
            done = subprocess.run(
                line, env=self.environment, capture_output=True, text=True, timeout=120
            )
            if "unshare" in done.stderr or "mount:" in done.stderr:
                self.skipTest(f"cannot mount a small disk here: {done.stderr.strip()}")
            self.assertIn(done.returncode, (0, 1, 3), f"{size}: {done.stderr}")
            if done.returncode:
                self.assertIn("error: ", done.stderr)
                self.assertNotIn("kiln reached an unexpected state", done.stderr)
            else:
                self.assertTrue(json.loads(done.stdout)["library"].endswith(".so"))
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    one_in.main()
