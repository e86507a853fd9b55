#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is everything in a key that can change a result? Each case changes one thing and looks into the
library.

    test_keys.py KILN [--every N] [unittest's arguments]

One cache for all builds of a case; nvcc and g++ are the real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import one_in  # noqa: E402

KILN = Path(sys.argv[1]).resolve()
TINY = Path(__file__).resolve().parent / "tiny"
EXPORT = 'extern "C" __attribute__((visibility("default")))'
TEXT = f"{EXPORT} const char* text() {{ return TEXT; }}\n"
# A word that needs no quotes, which every tool's option files read in another way.
WORD = "#define Q(x) #x\n#define QQ(x) Q(x)\n" + TEXT.replace("TEXT", "QQ(WORD)")
# A file between two labels, and what is between them.
INCBIN = f"""
asm(".section .rodata\\n.global data_begin\\n.global data_end\\n"
    "data_begin: .incbin \\"data.bin\\"\\ndata_end: .byte 0\\n.text");
extern "C" const char data_begin[], data_end[];
{EXPORT} const char* text() {{ return data_begin; }}
"""


class Keys(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="kiln-keys-")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        dropped = ("KILN_", "NVCC_", "TORCH_", "LC_")
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(dropped) and k not in ("CXX", "LANG")
        }
        self.env["XDG_CACHE_HOME"] = str(self.top / "cache")

    def put(self, name: str, text: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_kiln(self, *arguments: str, **env: str) -> subprocess.CompletedProcess:
        line = [str(KILN), "build", *arguments, "--arch", "8.0"]
        return subprocess.run(
            line, cwd=self.top, env=self.env | env, capture_output=True, text=True
        )

    def build(self, *arguments: str, **env: str) -> dict:
        done = self.run_kiln(*arguments, "--json", **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def cuda(self, source: Path | str, *arguments: str, **env: str) -> dict:
        """With a small cuda_runtime.h, four times as fast."""
        tiny = ("--cuda-flag=-Xcompiler=-D__COMMON_FUNCTIONS_H__", f"--cuda-flag=-I{TINY}")
        return self.build(str(source), *tiny, *arguments, **env)

    def text_of(self, built: dict) -> str:
        code = (
            f"import ctypes; f = ctypes.CDLL({built['library']!r}).text; f.restype = "
            f"ctypes.c_char_p; print(f().decode(), end='')"
        )
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
        ).stdout


class Words(Keys):
    def test_a_define_that_holds_the_checkouts_path(self) -> None:
        for ending in (".cpp", ".cu"):
            found = []
            for name in ("one", "two"):
                source = self.put(f"{name}/a{ending}", TEXT)
                build = self.cuda if ending == ".cu" else self.build
                found.append(self.text_of(build(str(source), "-D", f'TEXT="{source.parent}/data"')))
            self.assertEqual(found, [f"{self.top}/one/data", f"{self.top}/two/data"])

    def test_a_flag_that_holds_the_checkouts_path(self) -> None:
        found = []
        for name in ("one", "two"):
            source = self.put(f"{name}/a.cu", TEXT)
            found.append(self.text_of(self.cuda(source, f'--cuda-flag=-DTEXT="{source.parent}"')))
        self.assertEqual(found, [f"{self.top}/one", f"{self.top}/two"])

    def test_words_are_not_joined(self) -> None:
        source = self.put("a.cpp", WORD.replace("WORD", "A"))
        both = self.text_of(self.build(str(source), "-D", "A=1", "-D", "B=2"))
        one = self.text_of(self.build(str(source), "-D", "A=1 -DB=2"))
        self.assertEqual((both, one), ("1", "1 -DB=2"))

    def test_a_run_path_below_the_project_is_the_users_own(self) -> None:
        for name in ("one", "two"):
            source = self.put(f"{name}/a.cpp", TEXT)
            built = self.build(
                str(source), "-D", 'TEXT=""', f"--ldflag=-Wl,-rpath,{source.parent}/lib"
            )
            self.assertIn(f"{source.parent}/lib", dynamic(built))

    def test_a_moved_checkout_hits(self) -> None:
        source = self.put("one/a.cu", '#include "h.h"\n' + TEXT)
        self.put("one/inc/h.h", "\n")
        self.cuda(source, "-D", 'TEXT="x"', "-I", "one/inc")
        (self.top / "one").rename(self.top / "two")
        built = self.cuda(self.top / "two/a.cu", "-D", 'TEXT="x"', "-I", "two/inc")
        made = [step["what"] for step in built["steps"] if step["cache"] == "made"]
        self.assertEqual(
            [what for what in made if not what.startswith("pack")], [], "the pack has real paths"
        )

    def test_bytes_that_are_not_utf8_are_refused(self) -> None:
        source = self.put("a.cpp", TEXT)
        line = [os.fsencode(KILN), b"build", os.fsencode(source), b'-DTEXT="\xff"']
        done = subprocess.run(line, cwd=self.top, env=self.env, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"UTF-8", done.stderr)


class OptionFiles(Keys):
    def changes(self, source: str, *arguments: str, name: str = "opts.txt", **env: str) -> None:
        build = self.cuda if source.endswith(".cu") else self.build
        found = []
        for value in ("old", "new", "old"):
            self.put(name, f"-DWORD={value}\n")
            found.append(self.text_of(build(source, *arguments, **env)))
        self.assertEqual(found, ["old", "new", "old"])

    def test_of_nvcc(self) -> None:
        self.put("a.cu", WORD)
        self.changes("a.cu", "--cuda-flag=--options-file", "--cuda-flag=opts.txt")
        self.changes("a.cu", "--cuda-flag=-optf=opts.txt")
        self.changes("a.cu", NVCC_APPEND_FLAGS=f"--options-file {self.top}/opts.txt")

    def test_nested_in_one_of_nvcc(self) -> None:
        self.put("a.cu", WORD)
        self.put("outer.txt", "--options-file opts.txt\n")
        self.changes("a.cu", "--cuda-flag=--options-file=outer.txt")

    def test_of_the_host_compiler_behind_nvcc(self) -> None:
        self.put("a.cu", WORD)
        self.changes("a.cu", f"--cuda-flag=-Xcompiler=@{self.top}/opts.txt")

    def test_of_the_host_compiler_nested_too(self) -> None:
        self.put("a.cpp", WORD)
        self.changes("a.cpp", f"--cflag=@{self.top}/opts.txt")
        self.put("outer.txt", f"@{self.top}/opts.txt\n")
        self.changes("a.cpp", f"--cflag=@{self.top}/outer.txt")

    def test_of_the_linker(self) -> None:
        self.put("a.cpp", TEXT)
        for flag in (f"-Wl,@{self.top}/ld.txt", f"@{self.top}/ld.txt"):
            for value in ("/old", "/new"):
                self.put(
                    "ld.txt",
                    f"-rpath {value}\n" if flag.startswith("-Wl") else f"-Wl,-rpath,{value}\n",
                )
                self.assertIn(
                    f"[{value}]", dynamic(self.build("a.cpp", "-D", 'TEXT=""', f"--ldflag={flag}"))
                )


class FilesBesideDepfiles(Keys):
    def test_incbin(self) -> None:
        for name in ("a.cu", "b.cpp"):
            self.put(name, INCBIN)
            build = self.cuda if name.endswith(".cu") else self.build
            found = []
            for value in ("old", "new"):
                self.put("inc/data.bin", value)
                found.append(self.text_of(build(name, "-I", "inc")))
            self.assertEqual(found, ["old", "new"])
            self.put("first/data.bin", "first")  # found before inc/data.bin
            shadowed = self.text_of(build(name, "-I", "first", "-I", "inc"))
            (self.top / "first/data.bin").unlink()
            self.assertEqual(
                (shadowed, self.text_of(build(name, "-I", "first", "-I", "inc"))), ("first", "new")
            )
            self.put("first/data.bin", "again")
            self.assertEqual(self.text_of(build(name, "-I", "first", "-I", "inc")), "again")

    def test_incbin_in_a_header(self) -> None:
        self.put("a.cpp", '#include "data.h"\n')
        self.put("inc/data.h", INCBIN)
        found = []
        for value in ("old", "new"):
            self.put("inc/data.bin", value)
            found.append(self.text_of(self.build("a.cpp", "-I", "inc")))
        self.assertEqual(found, ["old", "new"])

    def test_forced_include(self) -> None:
        for name in ("a.cu", "b.cpp"):
            self.put(name, TEXT)
            build, kind = (
                (self.cuda, "cuda-flag") if name.endswith(".cu") else (self.build, "cflag")
            )
            found = []
            for value in ("old", "new"):
                self.put("inc/pre.h", f'#define TEXT "{value}"\n')
                found.append(
                    self.text_of(
                        build(name, f"--{kind}=-include", f"--{kind}={self.top}/inc/pre.h")
                    )
                )
            self.assertEqual(found, ["old", "new"])

    def test_precompiled_header_that_appears_and_changes(self) -> None:
        self.put("a.cpp", '#include "pre.h"\n' + TEXT)
        self.put("inc/pre.h", '#define TEXT "plain"\n')
        found = [self.text_of(self.build("a.cpp", "-I", "inc"))]
        flags = [
            "-std=c++20",
            "-O3",
            "-fPIC",
            "-fvisibility=hidden",
            "-fno-gnu-unique",
            "-DKILN_NAMESPACE=a",
        ]
        for value in ("first", "second"):
            self.put("other/pre.h", f'#define TEXT "{value}"\n')
            line = ["g++", *flags, "-x", "c++-header", str(self.top / "other/pre.h")]
            subprocess.run([*line, "-o", str(self.top / "inc/pre.h.gch")], check=True)
            found.append(self.text_of(self.build("a.cpp", "-I", "inc")))
        self.assertEqual(found, ["plain", "first", "second"])

    def test_files_of_the_linker_that_its_depfile_lacks(self) -> None:
        self.put("a.cpp", TEXT + TEXT.replace("text()", "more()"))
        flag = f"--ldflag=-Wl,--retain-symbols-file={self.top}/keep.txt"
        found = []
        for names in ("text\n", "text\nmore\n"):
            self.put("keep.txt", names)
            built = self.build("a.cpp", "-D", 'TEXT=""', "--cflag=-g", flag)
            listed = subprocess.run(["nm", built["library"]], capture_output=True, text=True).stdout
            found.append(" more" in listed)
        self.assertEqual(found, [False, True])

    def test_a_version_script(self) -> None:
        self.put("a.cpp", TEXT)
        for version in ("OLD", "NEW"):
            self.put("v.map", f"{version} {{ global: text; }};\n")
            built = self.build(
                "a.cpp", "-D", 'TEXT=""', f"--ldflag=-Wl,--version-script={self.top}/v.map"
            )
            self.assertIn(f"@@{version}", symbols(built))

    def test_a_library_that_appears_earlier_in_the_list(self) -> None:
        self.put("a.cpp", f"const char* name(); {EXPORT} const char* text() {{ return name(); }}\n")
        for folder in ("second", "first"):
            source = self.put(f"{folder}/l.cpp", f'const char* name() {{ return "{folder}"; }}\n')
            (self.top / folder / "libnamed.a").unlink(missing_ok=True)
            subprocess.run(
                ["g++", "-fPIC", "-c", str(source), "-o", str(source.with_suffix(".o"))], check=True
            )
            archive = source.parent / "libnamed.a"
            subprocess.run(["ar", "rc", str(archive), str(source.with_suffix(".o"))], check=True)
            flags = (
                f"--ldflag=-L{self.top}/first",
                f"--ldflag=-L{self.top}/second",
                "--ldflag=-lnamed",
            )
            self.assertEqual(self.text_of(self.build("a.cpp", *flags)), folder)

    def test_a_library_that_appears_in_library_path(self) -> None:
        self.put("a.cpp", TEXT)
        folder = self.top / "libs"
        folder.mkdir()
        self.build("a.cpp", "-D", 'TEXT="x"', LIBRARY_PATH=str(folder))
        self.put("libs/libpthread.so", "INPUT(libpthread.a)\nEXTERN(appeared)\n")
        shutil.copy(next(Path("/usr/lib").glob("*/libpthread.a")), folder / "libpthread.a")
        built = self.build("a.cpp", "-D", 'TEXT="x"', LIBRARY_PATH=str(folder))
        self.assertTrue(built["rebuilt"])


class Environment(Keys):
    def test_ld_run_path(self) -> None:
        self.put("a.cpp", TEXT)
        for value in ("/old", "/new"):
            self.assertIn(
                f"[{value}]", dynamic(self.build("a.cpp", "-D", 'TEXT=""', LD_RUN_PATH=value))
            )
        self.assertNotIn("RUNPATH", dynamic(self.build("a.cpp", "-D", 'TEXT=""', LD_RUN_PATH="")))

    def test_flags_of_nvcc_profile(self) -> None:
        self.put("a.cu", '#include "h.h"\n' + TEXT)
        found = []
        for value in ("old", "new"):
            self.put(f"{value}/h.h", f'#define TEXT "{value}"\n')
            found.append(self.text_of(self.cuda("a.cu", INCLUDES=f"-I{self.top}/{value}")))
        self.assertEqual(found, ["old", "new"])

    def test_a_values_newline_is_no_second_variable(self) -> None:
        self.put("a.cpp", TEXT)
        self.build("a.cpp", "-D", 'TEXT="x"', LD_RUN_PATH="/a\nCPATH=/b")
        built = self.build("a.cpp", "-D", 'TEXT="x"', LD_RUN_PATH="/a", CPATH="/b")
        self.assertTrue(built["rebuilt"])

    def test_messages_are_read_in_any_language(self) -> None:
        self.put("a.cpp", "int x = undeclared;\n")
        plain, other = (
            self.run_kiln("a.cpp"),
            self.run_kiln("a.cpp", LC_ALL="de_DE.UTF-8", LANGUAGE="de", LANG="de_DE.UTF-8"),
        )
        self.assertEqual((plain.returncode, plain.stderr), (other.returncode, other.stderr))

    def test_a_compiler_script_that_follows_path(self) -> None:
        self.put("a.cpp", TEXT)
        script = self.put("bin/cxx", '#!/bin/sh\nexec inner "$@"\n')
        script.chmod(0o755)
        found = []
        for value in ("old", "new"):
            inner = self.put(f"{value}/inner", f'#!/bin/sh\nexec g++ \'-DTEXT="{value}"\' "$@"\n')
            inner.chmod(0o755)
            path = f"{self.top}/{value}:{self.env['PATH']}"
            found.append(self.text_of(self.build("a.cpp", CXX=str(script), PATH=path)))
        self.assertEqual(found, ["old", "new"])


class NotCached(Keys):
    def test_a_flag_that_writes_beside_the_result(self) -> None:
        self.put("a.cpp", TEXT)
        flag = f"--ldflag=-Wl,-Map={self.top}/a.map"
        for _ in range(2):
            (self.top / "a.map").unlink(missing_ok=True)
            done = self.run_kiln("a.cpp", "-D", 'TEXT="x"', flag, "--explain")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(
                "not cached: -Map: writes files next to the result", done.stdout + done.stderr
            )
            self.assertTrue((self.top / "a.map").exists(), "made by every build")

    def test_a_flag_that_is_opaque_behind_another(self) -> None:
        self.put("a.cpp", TEXT)
        self.put("opts.txt", "-fstack-usage")
        done = self.run_kiln(
            "a.cpp", "-D", 'TEXT="x"', f"--cflag=@{self.top}/opts.txt", "--explain"
        )
        self.assertIn("not cached: -fstack-usage", done.stdout + done.stderr)


class Relocatable(Keys):
    def test_is_refused_in_every_form(self) -> None:
        self.put("a.cu", TEXT)
        self.put("opts.txt", "-rdc=true\n")
        self.put("p/kiln.toml", 'name = "p"\nsources = ["a.cu"]\ncuda_flags = ["-rdc=true"]\n')
        self.put("p/a.cu", TEXT)
        forms = (["-rdc=true"], ["-rdc", "true"], ["--relocatable-device-code=true"], ["-dc"],
                 ["--device-c"], ["-dlto"], ["-code=lto_80"],
                 ["--options-file=opts.txt"])  # fmt: skip
        runs = [(["a.cu", *(f"--cuda-flag={flag}" for flag in form)], {}) for form in forms]
        runs += [(["a.cu"], {"NVCC_APPEND_FLAGS": "-rdc=true"}), (["p"], {})]
        for arguments, env in runs:
            with self.subTest(arguments=arguments, env=env):
                done = self.run_kiln(*arguments, **env)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("relocatable device code", done.stderr)
                self.assertIn("fix", done.stderr)
        self.cuda("a.cu", "--cuda-flag=-rdc=false", "-D", 'TEXT="x"')


def dynamic(built: dict) -> str:
    return subprocess.run(
        ["readelf", "-d", built["library"]], capture_output=True, text=True, check=True
    ).stdout


def symbols(built: dict) -> str:
    return subprocess.run(
        ["nm", "-D", built["library"]], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    if not shutil.which("nvcc"):
        sys.exit("no nvcc on PATH")

    one_in.main()
