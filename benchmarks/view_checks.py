# SPDX-License-Identifier: Apache-2.0
"""What do the index checks of kiln::View cost on a GPU? Machine code and time of the same kernels
in three forms.

    python benchmarks/view_checks.py --code docs/results    view-checks.md: bytes and registers;
                                                            needs nvcc alone
    python benchmarks/view_checks.py --time docs/results    view-checks-time.md: needs a GPU; about
                                                            a minute

The forms: as kiln/view.h has it (code that nothing reads); the comments of earlier versions, which
no built library kept (tests/views/comment_form); no check at all (-DKILN_NO_CHECKS). Times are
those of kiln.bench: the three are called in the same rounds, in random order, with a cold L2.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any, Callable

from cubins import Code, compiled
from sampling import machine

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ("80", "90", "90a")
COMMENT_FORM = ROOT / "tests" / "views" / "comment_form"
FORMS = {"check": [], "comment": [f"-I{COMMENT_FORM}"], "none": ["-DKILN_NO_CHECKS"]}
USES_VIEW = re.compile(r"\bView<|\.(view|flat)<")
BAR = 0.01  # of the comment form's time


def own_kernels() -> dict[Path, bool]:
    """The sources of kernels/, and whether they or a header beside them have a View."""

    def has_view(path: Path) -> bool:
        return any(USES_VIEW.search(one.read_text()) for one in (path, *path.parent.glob("*.h")))

    return {path: has_view(path) for path in sorted((ROOT / "kernels").rglob("*.cu"))}


def view_sources() -> list[Path]:
    """Sources of kernels with Views: those of kernels/ that have any, a scaffold's, and
    benchmarks/views.cu."""
    own = [path for path, has_view in own_kernels().items() if has_view]
    return [*own, ROOT / "templates" / "project" / "NAME.cu", ROOT / "benchmarks" / "views.cu"]


def code_of(source: Path, arch: str, nvcc: str = "nvcc") -> dict[str, dict[str, Code]]:
    """By form and kernel."""
    include = f"-I{ROOT / 'runtime' / 'include'}"
    return {form: compiled(nvcc, source, arch, [*flags, include]) for form, flags in FORMS.items()}


def plain_name(kernel: str) -> str:
    """The kernel's name without its parameters."""
    length = re.match(r"_Z(\d+)", kernel)
    if not length:
        return kernel
    name = kernel[length.end() : length.end() + int(length[1])]
    argument = re.match(r"I([fd])E", kernel[length.end() + int(length[1]) :])
    return f"{name}<{ {'f': 'float', 'd': 'double'}[argument[1]] }>" if argument else name


def code_rows(source: Path) -> list[str]:
    by_arch = {arch: code_of(source, arch) for arch in ARCHS}
    rows = []
    for kernel in sorted(by_arch[ARCHS[0]]["check"], key=plain_name):
        for arch, forms in by_arch.items():
            code, comment, none = (forms[form][kernel] for form in FORMS)
            alike = (
                "yes"
                if code.sass == comment.sass
                else "no; as without checks"
                if code.sass == none.sass
                else "NO"
            )
            same = ", same code" if code.sass == none.sass else ""
            rows.append(
                f"| {plain_name(kernel)} | {arch} | {len(code.sass):,} | {len(none.sass):,}{same} "
                f"| {code.registers} | {none.registers} | {alike} |"
            )
    return rows


CODE_HEAD = """\
# Machine code with and without index checks

Written by `python benchmarks/view_checks.py --code docs/results`; {date}, nvcc {nvcc}.

The checks of `kiln::View` are code that nothing reads, so ptxas drops them; but they pin their
operands, and that may change what the compiler makes of the rest. The columns: SASS bytes and
registers with checks and with `-DKILN_NO_CHECKS`, and whether the bytes equal those of the comments
that earlier versions used (tests/views/comment_form).

These sources of kernels/ have no View, and so no check: {others}.

| kernel | sm | SASS bytes | unchecked | registers | unchecked | code of the comment form |
|---|---|---|---|---|---|---|
"""


def code_page() -> str:
    others = [
        str(p.relative_to(ROOT / "kernels"))
        for p, has_view in own_kernels().items()
        if not has_view
    ]
    rows = [row for source in view_sources() for row in code_rows(source)]
    return CODE_HEAD.format(**machine(), others=", ".join(others)) + "\n".join(rows) + "\n"


def stencil(x: Any) -> Any:
    import torch

    out = torch.zeros_like(x)
    inner, low, high = slice(1, -1), slice(None, -2), slice(2, None)
    sides = (
        x[low, inner, inner] + x[high, inner, inner] + x[inner, low, inner] + x[inner, high, inner]
    )
    out[inner, inner, inner] = (
        6 * x[inner, inner, inner] - sides - x[inner, inner, low] - x[inner, inner, high]
    )
    return out


def cases(device: str, scale: int = 1) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """By op of views.cu: what torch computes for it, and arguments large enough for tens of
    microseconds on an H200, or `scale` times smaller."""
    import torch

    def new(first: int, *rest: int) -> torch.Tensor:
        return torch.randn((first // scale, *rest), device=device)

    def numbers(below: int, count: int) -> torch.Tensor:
        return torch.randint(0, below, (count // scale,), device=device)

    def layer_norm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[1:], gain, bias)

    def histogram(x: torch.Tensor, bins: int) -> torch.Tensor:
        return torch.bincount(x, minlength=bins).to(torch.int32)

    columns = torch.randn(2, 2048, device=device)
    return {
        "view_add": (torch.add, (new(1 << 24), new(1 << 24))),
        "view_square": (lambda x: x * x, (new(1 << 24),)),
        "view_scale": (torch.mul, (new(4096, 4096), 1.5)),
        "view_row_sum": (lambda x: x.sum(1), (new(8192, 1024),)),
        "view_layer_norm": (layer_norm, (new(8192, 2048), columns[0], columns[1])),
        "view_transpose": (lambda x: x.t().contiguous(), (new(4096, 4096),)),
        "view_matmul": (torch.mm, (new(1024, 1024), torch.randn(1024, 1024, device=device))),
        "view_stencil": (stencil, (new(256, 256, 256),)),
        "view_gather": (
            lambda table, rows: table[rows],
            (new(1 << 16, 256), numbers((1 << 16) // scale, 1 << 16)),
        ),
        "view_histogram": (histogram, (numbers(4096, 1 << 24), 4096)),
    }


def load_forms() -> dict[str, Any]:
    """The module of each form. A folder of its own for each: the same source, built three ways."""
    import kiln

    source = ROOT / "benchmarks" / "views.cu"
    return {
        "check": kiln.load("views_check", [str(source)]),
        "comment": kiln.load(
            "views_comment", [str(source)], extra_include_paths=[str(COMMENT_FORM)]
        ),
        "none": kiln.load("views_none", [str(source)], defines={"KILN_NO_CHECKS": 1}),
    }


TIME_HEAD = """\
# Time with and without index checks

Written by `python benchmarks/view_checks.py --time docs/results`; {date}, {GPU}, nvcc {nvcc}.

Median times of kiln.bench in us, the three forms in the same rounds; ratios of the checked form
with their 95 % intervals. The bar: at most {bar:.0%} longer than the comment form.

| op of benchmarks/views.cu | checks, us | comments, us | none, us | to the comments | to none | |
|---|---|---|---|---|---|---|
"""


def time_page(seconds: float, device: str = "cuda", scale: int = 1) -> tuple[str, bool]:
    import kiln

    modules = load_forms()
    rows, good = [], True
    for op, (reference, arguments) in cases(device, scale).items():

        def of(form: str, op: str = op) -> Callable[..., Any]:
            return getattr(modules[form], op)

        found = kiln.bench(
            of("check"),
            *arguments,
            against={"comment": of("comment"), "none": of("none")},
            reference=reference,
            name="check",
            rtol=1e-3,
            atol=1e-3,
            options={"max_time_s": seconds, "precision_percent": 0.2, "side": False, "roof": False},
        ).json
        comment, none = (row["ratio"] for row in found["comparisons"])
        kept = comment["value"] <= 1 + BAR
        good &= kept
        microseconds = [one["cold"]["median_ns"] / 1e3 for one in found["contenders"]]
        rows.append(
            f"| {op} | {microseconds[0]:.2f} | {microseconds[1]:.2f} | {microseconds[2]:.2f} "
            f"| {comment['value']:.4f} ({comment['low']:.4f} to {comment['high']:.4f}) "
            f"| {none['value']:.4f} ({none['low']:.4f} to {none['high']:.4f}) | "
            f"{'PASS' if kept else 'FAIL'} |"
        )
        print(rows[-1], flush=True)
    return TIME_HEAD.format(**machine(), bar=BAR) + "\n".join(rows) + "\n", good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", type=Path, metavar="FOLDER", help="write view-checks.md there")
    parser.add_argument(
        "--time", type=Path, metavar="FOLDER", help="write view-checks-time.md there"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of measuring, per op (3)")
    given = parser.parse_args()
    if not given.code and not given.time:
        parser.error("nothing to do: --code FOLDER, --time FOLDER or both")
    good = True
    if given.code:
        page = code_page()
        given.code.mkdir(parents=True, exist_ok=True)
        (given.code / "view-checks.md").write_text(page)
        good &= "| NO |" not in page
    if given.time:
        page, kept = time_page(given.seconds)
        given.time.mkdir(parents=True, exist_ok=True)
        (given.time / "view-checks-time.md").write_text(page)
        print(page)
        good &= kept
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
