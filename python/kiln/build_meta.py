# SPDX-License-Identifier: Apache-2.0
"""How does pip build a kiln project? The hooks of PEP 517 and PEP 660, each a run of `kiln wheel`.

pyproject.toml names this module:  [build-system] requires = ["kiln-cuda"], build-backend =
                                   "kiln.build_meta"
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from gzip import GzipFile
from pathlib import Path
from typing import Any, Optional

from .command import checked_command, run_json

Settings = Optional[Mapping[str, Any]]

# Of a source archive, where no git tells what belongs to it.
_LEFT_OUT = {
    "build",
    "dist",
    "__pycache__",
    ".git",
    ".venv",
    ".pytest_cache",
    ".cache",
    ".mypy_cache",
    ".ruff_cache",
}


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return []


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return []


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return []


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    return _wheel(wheel_directory, config_settings)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    return _wheel(wheel_directory, config_settings, "--editable")


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """A .tar.gz of what git has, or of all but builds; the same files always make the same
    bytes."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / _wheel(folder, config_settings, "--editable")
        stem = "-".join(wheel.name.split("-")[:2])
        with zipfile.ZipFile(wheel) as packed:
            metadata = packed.read(f"{stem}.dist-info/METADATA")
    project = Path.cwd()
    target = Path(sdist_directory) / f"{stem}.tar.gz"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(_source_files(project)):
            _add(
                archive,
                f"{stem}/{name}",
                (project / name).read_bytes(),
                epoch,
                os.access(project / name, os.X_OK),
            )
        _add(archive, f"{stem}/PKG-INFO", metadata, epoch, False)
    with target.open("wb") as file, GzipFile("", "wb", 9, file, mtime=epoch) as packed_file:
        packed_file.write(buffer.getvalue())
    return target.name


def _wheel(directory: str, settings: Settings, *more: str) -> str:
    """The name of the wheel. Settings: --config-settings arch="8.0;9.0"; the options of kiln wheel,
    without dashes."""
    words = [
        str(checked_command()),
        "wheel",
        ".",
        "--output",
        str(Path(directory).resolve()),
        "--no-tools",
        *more,
    ]
    for key, value in (settings or {}).items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [f"--{key.lstrip('-')}={one}" if one else f"--{key.lstrip('-')}"]
    answer = run_json(words, "wheel")
    return Path(answer["wheel"]).name


def _source_files(project: Path) -> list[str]:
    git = shutil.which("git")
    if git is not None:
        told = subprocess.run(
            [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            check=False,
        )
        names = [os.fsdecode(name) for name in told.stdout.split(b"\0") if name]
        if told.returncode == 0 and "kiln.toml" in names:
            return [name for name in names if (project / name).is_file()]
    return [
        str(path.relative_to(project))
        for path in project.rglob("*")
        if path.is_file()
        and not _LEFT_OUT.intersection(path.relative_to(project).parts)
        and path.suffix not in (".pyc", ".so")
    ]


def _add(archive: tarfile.TarFile, name: str, content: bytes, epoch: int, executable: bool) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = len(content), epoch, 0o755 if executable else 0o644
    archive.addfile(member, io.BytesIO(content))
