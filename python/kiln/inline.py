# SPDX-License-Identifier: Apache-2.0
"""How does a string of CUDA become a module of ops? It is written to a file with what it lacks, and
loaded as one."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from ._flags import StrPath, build_flags, identifier, refuse
from .errors import BuildError, KilnError
from .extension import has_module, load_extension
from .modules import attach

Text = Union[str, Sequence[str]]

HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]kiln/op\.h[>"]', re.MULTILINE)
_LITERAL = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def load_inline(
    name: str,
    cpp_sources: Text,
    cuda_sources: Optional[Text] = None,
    functions: Union[str, Sequence[str], Mapping[str, str], None] = None,
    extra_cflags: Optional[Sequence[str]] = None,
    extra_cuda_cflags: Optional[Sequence[str]] = None,
    extra_ldflags: Optional[Sequence[str]] = None,
    extra_include_paths: Any = None,
    build_directory: Optional[StrPath] = None,
    verbose: bool = False,
    with_cuda: Optional[bool] = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    *,
    arch: Union[str, Sequence[str], None] = None,
    defines: Optional[Mapping[str, Any]] = None,
    sycl_sources: Any = None,
    extra_sycl_cflags: Any = None,
    with_sycl: Optional[bool] = None,
    for_torch: Optional[bool] = None,
) -> Any:
    """torch.utils.cpp_extension.load_inline, for sources written with torch's names, and for those
    with kiln/op.h, which is included where they do not. A source that names torch::, at:: or a
    header of torch's is of the first kind; for_torch=True says so without such a name.

    functions: names, or {name: text for help()}. Each that the source does not register with
    KILN_OP itself is registered, with the parameter names of its declaration.
    """
    from .command import build

    refuse("with_sycl", with_sycl or sycl_sources or extra_sycl_cflags, "kiln is for CUDA")
    # with_pytorch_error_handling: errors cross with torch's types and texts either way. use_pch:
    # there is no header that would take long. keep_intermediates: always.
    identifier(name)
    if functions is not None and not isinstance(functions, (str, Mapping, Sequence)):
        raise ValueError(
            f"Expected 'functions' to be a list or dict, but was {type(functions)}"
        )  # torch's words
    if with_cuda is False and _pieces(cuda_sources):
        raise KilnError(
            "kiln.load_inline does not take with_cuda=False here",
            "cuda_sources are for nvcc",
            "leave out one of them",
        )
    if for_torch is None:
        for_torch = is_for_torch(cpp_sources, cuda_sources)
    if for_torch:
        wrap = "torch::wrap_pybind_function" if with_pytorch_error_handling else ""
        texts = compose_for_torch(
            cpp_sources, cuda_sources, functions, bool(no_implicit_headers), wrap
        )
        paths = [
            write_source(text, name, _inline_folder(build_directory), ending)
            for ending, text in texts.items()
        ]
    else:
        source = compose(cpp_sources, cuda_sources, functions, name)
        paths = [write_source(source, name, _inline_folder(build_directory))]
    flags = build_flags(
        extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, None, arch, defines
    )
    if build_directory is not None:
        flags += ["--build-dir", os.fspath(build_directory)]
    origin = Path("load_inline") / name

    libraries: list[str] = []

    def again() -> types.ModuleType:
        built = build([*map(str, paths), "--name", name, *flags], verbose=verbose)
        if built.get("headers"):
            libraries.append(built["library"])
            wants_module = is_python_module and has_module(built)
            return load_extension(
                Path(built["library"]), built["name"], wants_module, built["headers"]
            )
        return attach(Path(built["library"]), origin, again, built.get("name", name))

    module = again()
    if is_python_module:
        return module
    return libraries[-1] if libraries else None  # torch returns the path of what it loaded


_TORCH = re.compile(
    r"\b(?:torch|at|c10)::|#[ \t]*include[ "
    r"\t]*[<\"](?:torch|ATen|c10|pybind11)/|\bPYBIND11_MODULE\b"
)


def is_for_op_h(cpp_sources: Text, cuda_sources: Optional[Text]) -> bool:
    text = "\n".join([*_pieces(cpp_sources), *_pieces(cuda_sources)])
    return HEADER.search(text) is not None


def is_for_torch(cpp_sources: Text, cuda_sources: Optional[Text]) -> bool:
    text = "\n".join([*_pieces(cpp_sources), *_pieces(cuda_sources)])
    return not is_for_op_h(cpp_sources, cuda_sources) and _TORCH.search(text) is not None


def compose_for_torch(
    cpp_sources: Text,
    cuda_sources: Optional[Text],
    functions: Union[str, Sequence[str], Mapping[str, str], None],
    no_implicit_headers: bool,
    wrap: str = "",
) -> dict[str, str]:
    """The files that torch's load_inline would write, by their endings: C++ with the bindings, and
    CUDA."""
    head = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    if isinstance(functions, str):
        functions = [functions]
    named = functions if isinstance(functions, Mapping) else {one: one for one in functions or ()}
    lines = [*head, *_pieces(cpp_sources)]
    if functions is not None:
        lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for function, doc in named.items():
            quoted = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'  m.def("{function}", {wrap}({function}), "{quoted}");')
        lines.append("}")
    texts = {"cpp": "\n".join(lines) + "\n"}
    cuda = _pieces(cuda_sources)
    if cuda:
        cuda_head = (
            []
            if no_implicit_headers
            else ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]
        )
        texts["cu"] = "\n".join([*cuda_head, *cuda]) + "\n"
    return texts


def compose(
    cpp_sources: Text,
    cuda_sources: Optional[Text],
    functions: Union[str, Sequence[str], Mapping[str, str], None],
    name: str,
) -> str:
    """One translation unit: the C++ (often declarations alone), the CUDA, and the registrations
    that are missing."""
    pieces = [(f"{name}.cpp_sources", piece) for piece in _pieces(cpp_sources)]
    pieces += [(f"{name}.cuda_sources", piece) for piece in _pieces(cuda_sources)]
    # The compiler's line numbers are those of the caller's strings.
    source = "\n".join(f'#line 1 "{origin}"\n{piece}' for origin, piece in pieces)
    if not HEADER.search(source):
        source = f"#include <kiln/op.h>\n{source}"
    registrations = []
    for function, doc in _functions(functions).items():
        if re.search(rf"\bKILN_OP\s*\(\s*{re.escape(function)}\s*[,)]", source):
            continue
        registrations.append(_registration(source, function, doc, name))
    return "\n".join([source, *registrations, ""])


def _registration(source: str, function: str, doc: str, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(::\w+)*", function):
        raise BuildError(
            f"load_inline('{name}'): '{function}' is not the name of a function", fault=2
        )
    spec = parameters_of(source, function)
    if spec is None:
        raise BuildError(
            f"load_inline('{name}') cannot register {function}",
            "the sources declare no function of that name",
            "functions=[...] names functions of cpp_sources or cuda_sources",
            fault=2,
        )
    quoted = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'KILN_OP({function}, "{spec}")' + (f'.doc("{quoted}")' if doc else "") + ";"


def parameters_of(source: str, function: str) -> Optional[str]:
    """The names (and literal defaults) of a function's parameters, as KILN_OP takes them; None: it
    is not declared."""
    code = _without_comments(source)
    for match in re.finditer(rf"(?<![\w.>]){re.escape(function.split('::')[-1])}\s*\(", code):
        end = _closing(code, match.end() - 1)
        # A declaration has a type before the name and ';' or '{' after it; a call has neither.
        before = code[: match.start()].rstrip()
        if end is None or not re.match(r"\s*(?:noexcept\s*)?[;{]", code[end + 1 :]):
            continue
        if not re.search(r"[\w>&*]$", before) or re.search(
            r"\b(?:return|else|case|throw|new|delete)$", before
        ):
            continue
        names = [
            _parameter(text, index) for index, text in enumerate(_split(code[match.end() : end]))
        ]
        return ", ".join(names)
    return None


def _parameter(text: str, index: int) -> str:
    declared, _, default = text.partition("=")
    match = re.search(r"[\w>&*\s]\s*\b([A-Za-z_]\w*)\s*(?:\[\s*\])?$", declared.strip())
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"<.*>", "", declared))
    words = [
        word
        for word in words
        if word not in ("const", "volatile", "kiln", "std", "unsigned", "signed")
    ]
    # `int64_t` alone is a type: the parameter has no name.
    name = match.group(1) if match and len(words) > 1 else f"arg{index}"
    value = default.strip()
    value = {"true": "True", "false": "False"}.get(value, value)
    value = value.rstrip("fFlLuU") if re.match(r"-?[\d.]", value) else value
    if value and (value in ("True", "False") or _LITERAL.fullmatch(value)):
        return f"{name}={value}"
    return name


def _split(text: str) -> list[str]:
    """At commas outside of <>, (), [] and {}."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in (part.strip() for part in parts) if part and part != "void"]


def _closing(text: str, opening: int) -> Optional[int]:
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index
    return None


def _without_comments(source: str) -> str:
    return re.sub(
        r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")',
        lambda match: match.group(1) or " ",
        source,
        flags=re.DOTALL,
    )


def _functions(functions: Union[str, Sequence[str], Mapping[str, str], None]) -> dict[str, str]:
    if functions is None:
        return {}
    if isinstance(functions, str):
        return {functions: ""}
    if isinstance(functions, Mapping):
        return dict(functions)
    return dict.fromkeys(functions, "")


def _pieces(sources: Optional[Text]) -> list[str]:
    if sources is None:
        return []
    return [
        piece for piece in ([sources] if isinstance(sources, str) else sources) if piece.strip()
    ]


def _inline_folder(build_directory: Optional[StrPath]) -> Path:
    return Path(build_directory) if build_directory is not None else cache_folder("inline")


def cache_folder(kind: str) -> Path:
    """Where sources that were never files are kept: ~/.cache/kiln/KIND."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kiln" / kind
    # Whoever else could write there would choose what is built.
    try:
        base.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _cannot_write(base, error) from None
    return base


def write_source(source: str, name: str, base: Path, ending: str = "cu") -> Path:
    """The folder is named after the contents: two processes with one name and two sources do not
    meet."""
    path = base / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:16]}" / f"{name}.{ending}"
    try:
        if path.is_file() and path.read_text(encoding="utf-8") == source:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, delete=False, encoding="utf-8"
        ) as file:
            file.write(source)
        Path(file.name).replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    return path


def _cannot_write(path: Path, error: OSError) -> BuildError:
    return BuildError(
        f"cannot write {path}", str(error), "set XDG_CACHE_HOME or build_directory", fault=3
    )
