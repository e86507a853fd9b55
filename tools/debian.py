# SPDX-License-Identifier: Apache-2.0
"""How are packages of another Debian or another CPU had, without a change to this machine? apt-get
fetches, dpkg-deb unpacks.

Nothing is installed and root is not needed: apt's lists, cache and state are those of the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

MIRROR = os.environ.get("KILN_DEBIAN_MIRROR", "http://deb.debian.org/debian")
NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # of CPUs, as Debian has them


def fail(what: str, why: str, fix: str) -> None:
    print(f"error: {what}\n  why: {why}\n  fix: {fix}", file=sys.stderr)
    sys.exit(3)


def run_apt(place: Path, cpu: str, *words: str) -> None:
    options = {
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State": place / "state",
        "Dir::State::status": place / "status",
        "Dir::Cache": place / "cache",
        "APT::Architecture": NAMES[cpu],
        "APT::Architectures": NAMES[cpu],
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false",  # the list of an old release is no longer renewed
        "Debug::NoLocking": "true",
    }
    command = [
        "apt-get",
        "-q",
        "-y",
        *(f"-o{name}={value}" for name, value in options.items()),
        *words,
    ]
    done = subprocess.run(command, cwd=place / "fetched", capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        fail(
            f"cannot fetch Debian's packages for {cpu}",
            (lines or ["apt-get said nothing"])[0],
            f"reach {MIRROR}, or set KILN_DEBIAN_MIRROR",
        )


def unpack(folder: Path, cpu: str, packages: dict[str, list[str]], closure: bool = False) -> Path:
    """Makes the folder out of packages by release, if it is not there yet; with closure also of all
    that they need."""
    wanted = f"{cpu} {packages} {closure}\n"
    told = folder / "packages.txt"
    if told.exists() and told.read_text() == wanted:
        return folder
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            fail(
                "cannot fetch Debian's packages",
                f"{program} is not here",
                "do this on Debian or Ubuntu, or in a container of one",
            )
    print(
        f"fetching {', '.join(sum(packages.values(), []))} of Debian {' and '.join(packages)} for "
        f"{cpu} ...",
        file=sys.stderr,
        flush=True,
    )
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    place = partial / ".apt"
    for name in ("state/lists/partial", "cache/archives/partial", "fetched"):
        (place / name).mkdir(parents=True)
    (place / "status").write_text("")
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    signed = f"[signed-by={keys}] " if Path(keys).exists() else ""
    (place / "sources.list").write_text(
        "".join(f"deb {signed}{MIRROR} {release} main\n" for release in packages)
    )
    run_apt(place, cpu, "update")
    names = [f"{name}/{release}" for release, some in packages.items() for name in some]
    run_apt(place, cpu, *(["install", "--download-only"] if closure else ["download"]), *names)
    found = sorted([*place.glob("fetched/*.deb"), *place.glob("cache/archives/*.deb")])
    for package in found:
        subprocess.run(["dpkg-deb", "-x", package, partial], check=True)
    shutil.rmtree(place)
    make_links_relative(partial)
    (partial / "packages.txt").write_text(wanted)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return folder


def make_links_relative(folder: Path) -> None:
    """An absolute link leads out of the folder, to this machine's own file or to none."""
    for link in (path for path in folder.rglob("*") if path.is_symlink()):
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(folder / target[1:], link.parent))
