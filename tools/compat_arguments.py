# SPDX-License-Identifier: Apache-2.0
"""Arguments for functions that nobody here has seen: by the types of a signature, and by the names
that its parameters have in the C++ sources."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

_SIGNATURE = re.compile(r"^(?:\d+\. )?(\w+)\((.*)\) -> ", re.MULTILINE)
_DEFINED = re.compile(r"\bdef\(\s*\"(\w+)\"\s*,\s*&?\s*([\w:]+)")
_INCLUDED = re.compile(r"#\s*include\s*[\"<]([^\">]+)[\">]")
_SHAPES = {
    "matrix": (32, 64),
    "square": (64, 64),
    "vector": (256,),
    "heads": (2, 4, 64, 64),
    "points": (2, 64, 3),
    "batch": (2, 32, 64),
    "cloud": (64, 3),
    "image": (2, 4, 16, 16),
    "layer": (32, 64),
    "norm": (32, 64),
    "cell": (8, 16),
    "boxes": (64,),
    "nearest": (2, 64, 3),
    "picture": (3, 16, 24),
    "one": (1,),
}
# What goes with an input of that shape: weights of a layer, factors of a norm, the gates of a
# recurrent cell (its weights take input and state, and give three gates), one value per box or
# point.
_WEIGHT = re.compile(r"(?i)^(w\w?|weights?\w*|b|mat2|other|kernel|rhs|y)$")
_FACTOR = re.compile(r"(?i)bias|gamma|beta|scale|weight|mean|var|alpha|^[gw]$")
_GRADIENT = re.compile(r"^(grad|d|dL?_d|g)_(?=\w)|^grad(?=[a-zA-Z])|_?grad$")
_STATES = 3  # gates of a cell
_PER_ITEM = re.compile(
    r"(?i)dist|temp|idx|ind(ex|ices)|score|label|class|conf|mask|prob|batch|area"
)
_GROUPS = re.compile(r"(?i)group|ball|neigh|knn")
_FLOATS = ("float32", "float16", "bfloat16")
_WHOLE = ("int32", "int64")
# A function of one shape and dtype at a time; parameters whose name says so are integers.
RECIPES = [
    f"{shape} {number} {whole}"
    for number, whole, shape in product(_FLOATS, _WHOLE, _SHAPES)
    if number != "bfloat16" or whole == "int32"
] + [f"{shape} {whole} {whole}" for whole in _WHOLE for shape in ("vector", "matrix")] + [
    f"{shape} float32 int64 cpu" for shape in ("matrix", "points")
] + [
    f"{shape} {number} int32"
    for number in ("int8", "uint8")
    for shape in ("matrix", "square", "layer", "image", "picture")
] + [
    f"{shape} float64 int64" for shape in ("vector", "matrix", "square", "points", "cell")
]  # fmt: skip
_INDICES = re.compile(
    r"(?i)(^|_)(idx|inds?|ind(ex|ices)|ids?|labels?|targets?|batch|rows?|cols?|table|assign\w*|"
    r"tokens?|slots?|mapping|edges?|faces?|tri|perm|order|counts?|coords?|lens?|lengths?)"
    r"(_|\d|$)"
)
_STARTS = re.compile(r"(?i)offset|ptr|cu_?seq|starts?(_|$)|splits|cumsum|prefix")
_MASK = re.compile(r"(?i)mask|valid")
_ONE = re.compile(r"(?i)stride|dilat|group|^axis$|^dim$|pad|causal|shift|step|start|level|device")
_FEW = re.compile(
    r"(?i)^(k|top_?k|n_?sample|num_heads|heads?|nheads|block_?size|kernel\w*|radius)$"
)
_PLACE = re.compile(r"(?i)^(dim|axis|device\w*|stream|start\w*|offset|shift)$")


def named(sources: list[Path], folders: list[Path]) -> dict[str, list[str]]:
    """The names of the parameters of each bound function, as its C++ definition has them, or its
    declaration in a header that a source includes."""
    text = "\n".join(path.read_text(errors="replace") for path in sources)
    for beside in {path.parent for path in sources} | set(folders):
        for one in sorted(set(_INCLUDED.findall(text))):
            if (beside / one).is_file():
                text += "\n" + (beside / one).read_text(errors="replace")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    found: dict[str, list[str]] = {}
    for bound, target in _DEFINED.findall(text):
        function = re.escape(target.split("::")[-1])
        for match in re.finditer(
            rf"\b{function}\s*\(([^(){{}};]*(?:\([^()]*\)[^(){{}};]*)*)\)", text
        ):
            parts = [part.split("=")[0].strip() for part in split(match[1])]
            last = [re.search(r"[\w>&*\]]\s+[&*]*(\w+)$|[&*](\w+)$", part) for part in parts]
            if parts and all(last):
                found[bound] = [one[1] or one[2] for one in last]
                break
    return found


def split(text: str) -> list[str]:
    """At the commas that are in no bracket."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "[(<{") - (letter in "])>}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parameters(doc: str) -> list[tuple[str, str]] | None:
    """Name and type of each parameter, by the first signature of a docstring."""
    match = _SIGNATURE.search(doc or "")
    if not match:
        return None
    found = []
    for part in split(match[2].replace("->", "to")):
        if part in ("*", "/"):
            continue
        name, _, kind = part.partition(":")
        found.append((name.strip(), plain(kind.split(" = ")[0])))
    return found


def plain(kind: str) -> str:
    """A type of pybind11's or of a schema in one spelling."""
    kind = re.sub(
        r"typing\.Supports(Int|Float|Index)", lambda m: "float" if m[1] == "Float" else "int", kind
    )
    kind = kind.replace("collections.abc.Sequence", "list").replace("typing.", "").lower().strip()
    return re.sub(r"\b(torch\.|at::|torch::)tensor", "tensor", kind).split(" | int")[0]


def whole_number(name: str, shape: tuple[int, ...]) -> int:
    if _PLACE.search(name):
        return 0
    if _ONE.search(name):
        return 1
    if _FEW.search(name):
        return min(4, shape[-1])
    if re.fullmatch(r"(?i)b|bs|bsz|batch\w*", name):
        return shape[0]
    rows = re.fullmatch(r"(?i)n|m|npoints?|rows?|height|h|seq\w*|t|s|length|num_\w+", name)
    return shape[-2] if rows and len(shape) > 1 else shape[-1]


def sized(name: str, kind: str) -> tuple[int, ...]:
    """Sizes that agree: of a tensor with that name beside an input of that kind. A gradient has the
    shape of what it is the gradient of."""
    shape, name = _SHAPES[kind], _GRADIENT.sub("", name)
    if kind == "layer" and _WEIGHT.search(name):
        return (shape[-1], shape[-1])
    if kind in ("layer", "norm") and _FACTOR.search(name):
        return shape[-1:]
    if kind == "cell":
        rows, inner = shape
        gates = _STATES * inner
        if re.search(r"(?i)^gates?_?weights?$|^gates$", name):
            return (rows, gates)
        if re.search(r"(?i)^w|weight", name):
            return (gates, 2 * inner)
        return (
            (1, gates)
            if re.search(r"(?i)bias", name)
            else (rows, 2 * inner if name == "X" else inner)
        )
    if kind == "boxes":
        return shape if _PER_ITEM.search(name) else (*shape, 4)
    if kind == "nearest" and _PER_ITEM.search(name):
        return (*shape[:2], 4) if _GROUPS.search(name) else shape[:2]
    return shape


def tensor(name: str, recipe: list[str], generator) -> object:  # noqa: ANN001
    import torch

    shape, number, whole = sized(name, recipe[0]), recipe[1], recipe[2]
    if _STARTS.search(name):
        made = torch.arange(shape[0], dtype=getattr(torch, whole))
    elif number == whole or _INDICES.search(name):
        made = torch.randint(0, 3, shape, generator=generator).to(getattr(torch, whole))
    elif _MASK.search(name):
        made = torch.ones(shape, dtype=torch.bool)
    elif number in ("int8", "uint8"):
        made = torch.randint(0, 100, shape, generator=generator).to(getattr(torch, number))
    else:
        made = torch.rand(shape, generator=generator).to(getattr(torch, number))
    return made.cuda() if "cpu" not in recipe and torch.cuda.is_available() else made


def argument(name: str, kind: str, recipe: str, generator) -> object:  # noqa: ANN001
    """A value of a type. KeyError: no such value is generated."""
    words = recipe.split()
    if kind in ("tensor", "tensor | none", "optional[tensor]"):
        return tensor(name, words, generator)
    if kind in ("list[tensor]", "tensor[]"):
        return [tensor(name, words, generator) for _ in range(2)]
    kind = re.sub(r"optional\[(.*)\]$", r"\1", kind).split(" | ")[0]
    shape = _SHAPES[words[0]]
    if kind == "int":
        return whole_number(name, shape)
    simple = {"float": 0.5, "bool": False, "str": "sum", "list[int]": [1, 1], "int[]": [1, 1],
              "list[float]": [0.5, 0.5]}  # fmt: skip
    return simple[kind]
