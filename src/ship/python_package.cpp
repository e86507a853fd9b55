// SPDX-License-Identifier: Apache-2.0
// Which Python files make an op library a package of its own?
#include "ship/python_package.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::ship {

namespace {

// _shipped.py and all that it imports.
constexpr const char* kParts[] = {
    "_fakes/__init__.py",
    "_fakes/evaluation.py",
    "_fakes/layout.py",
    "_fakes/rules.py",
    "_fakes/syntax.py",
    "_no_backward.py",
    "_overloads.py",
    "_saved_arguments.py",
    "_shipped.py",
    "_torch.py",
    "_transforms.py",
    "abi.py",
    "demangle.py",
    "errors.py",
    "op.py",
};

constexpr const char* kWritten =
    "# Written by kiln " KILN_VERSION_STRING "; `kiln wheel` overwrites it.\n";

// A name that Python keeps for itself can be an op's, and not a variable's.
std::vector<std::string> names_of(const LibraryFacts& library) {
  std::vector<std::string> names;
  for (const OpFacts& op : library.ops)
    if (std::find(names.begin(), names.end(), op.name) == names.end()) names.push_back(op.name);
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
  return out;
}

// Inside """: no end of the string, no escape.
std::string in_docstring(std::string_view words) {
  return text::replace_all(text::replace_all(words, "\\", "\\\\"), "\"\"\"", "'''");
}

std::string python_string(std::string_view words) {
  std::string out = "\"";
  for (char c : words) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out + "\"";
}

std::string type_text(const ParameterFacts& p) {
  std::string text;
  switch (p.type) {
    case KILN_TYPE_TENSOR:
      text = "Tensor";
      break;
    case KILN_TYPE_INT:
      text = "int";
      break;
    case KILN_TYPE_FLOAT:
      text = "float";
      break;
    case KILN_TYPE_BOOL:
      text = "bool";
      break;
    case KILN_TYPE_STR:
      text = "str";
      break;
    case KILN_TYPE_DTYPE:
      text = "torch.dtype";
      break;
    case KILN_TYPE_DEVICE:
      text = "Union[str, torch.device]";
      break;
    case KILN_TYPE_TENSOR_LIST:
      text = "Sequence[Tensor]";
      break;
    case KILN_TYPE_INT_LIST:
      text = "Sequence[int]";
      break;
    case KILN_TYPE_FLOAT_LIST:
      text = "Sequence[float]";
      break;
    default:
      text = "Any";
      break;
  }
  return p.optional ? fmt::format("Optional[{}]", text) : text;
}

std::string result_text(const OpFacts& op) {
  std::vector<std::string> types;
  for (const ParameterFacts& result : op.results) {
    std::string one = type_text(result);
    types.push_back(one == "Sequence[Tensor]" ? "list[Tensor]" : one);
  }
  if (types.empty()) return "None";
  return types.size() == 1 ? types[0] : fmt::format("tuple[{}]", text::join(types, ", "));
}

std::string signature(const OpFacts& op) {
  std::vector<std::string> words = {"self"};
  bool star = false;
  for (const ParameterFacts& p : op.parameters) {
    if (p.keyword_only && !std::exchange(star, true)) words.emplace_back("*");
    words.push_back(fmt::format("{}: {}{}", p.name, type_text(p), p.has_default ? " = ..." : ""));
  }
  return fmt::format("def __call__({}) -> {}: ...  # type: ignore[override]",
                     text::join(words, ", "), result_text(op));
}

}  // namespace

std::string ops_module(const LibraryFacts& library) {
  std::string out = fmt::format(
      "{}\"\"\"The ops of torch.ops.{}: loads the library next to this file and registers them "
      "with torch.\"\"\"\n\n"
      "from pathlib import Path\n\n"
      "from ._kiln._shipped import attach\n\n"
      "_ops = attach(Path(__file__).with_name(\"lib{}.so\"))\n",
      kWritten, library.name, library.name);
  for (const std::string& name : names_of(library))
    out += fmt::format("{} = _ops[\"{}\"]\n", name, name);
  return out + fmt::format("\n__all__ = [{}]\n", list_of(names_of(library)));
}

std::string ops_stub(const LibraryFacts& library) {
  std::string out = fmt::format(
      "{}from collections.abc import Sequence\n"
      "from typing import Any, Optional, Union, overload\n\n"
      "import torch\n"
      "from torch import Tensor\n\n"
      "from ._kiln.op import Op\n\n"
      "__all__ = [{}]\n",
      kWritten, list_of(names_of(library)));
  for (const std::string& name : names_of(library)) {
    std::vector<const OpFacts*> overloads;
    for (const OpFacts& op : library.ops)
      if (op.name == name) overloads.push_back(&op);
    out += fmt::format("\nclass _Op_{}(Op):\n", name);
    for (const OpFacts* op : overloads) {
      if (!op->doc.empty())
        out += fmt::format("    # {}\n", text::replace_all(op->doc, "\n", "\n    # "));
      out +=
          fmt::format("{}    {}\n", overloads.size() > 1 ? "    @overload\n" : "", signature(*op));
    }
    out += fmt::format("\n{}: _Op_{}\n", name, name);
  }
  return out;
}

std::string init_module(const LibraryFacts& library, const std::string& description,
                        const std::string& version) {
  return fmt::format(
      "{}\"\"\"{}\"\"\"\n\nfrom ._ops import *\nfrom ._ops import __all__\n\n__version__ = {}\n",
      kWritten,
      in_docstring(description.empty() ? fmt::format("The ops of torch.ops.{}.", library.name)
                                       : description),
      python_string(version));
}

std::string editable_ops_module(const std::string& project) {
  return fmt::format(
      "{}\"\"\"The ops of a project that is being worked on: built when imported, if anything "
      "changed.\"\"\"\n\n"
      "import kiln as _kiln\n\n"
      "_module = _kiln.load({})\n"
      "__all__ = [name for name in dir(_module) if name != \"reload\"]\n"
      "globals().update({{name: getattr(_module, name) for name in __all__}})\n",
      kWritten, python_string(project));
}

std::string editable_init_module(const LibraryFacts& library, const std::string& author_folder,
                                 const std::string& description, const std::string& version) {
  if (author_folder.empty()) return init_module(library, description, version);
  std::string init = author_folder + "/__init__.py";
  return fmt::format(
      "{}# Represents the package in the project: modules come from there, _ops from here.\n"
      "__path__.insert(0, {})\n"
      "__version__ = {}\n"
      "try:\n"
      "    with open({}, encoding=\"utf-8\") as _file:\n"
      "        _text = _file.read()\n"
      "except FileNotFoundError:\n"
      "    _text = \"from ._ops import *\"\n"
      "exec(compile(_text, {}, \"exec\"))\n",
      kWritten, python_string(author_folder), python_string(version), python_string(init),
      python_string(init));
}

Result<std::vector<PackedFile>> copied_parts(const sys::Files& files,
                                             const sys::fs::path& kiln_package,
                                             const std::string& folder) {
  std::vector<PackedFile> out = {{folder + "/__init__.py",
                                  "# SPDX-License-Identifier: Apache-2.0\n"
                                  "\"\"\"Parts of kiln " KILN_VERSION_STRING
                                  " that this package needs: fakes, autograd, loading.\"\"\"\n",
                                  false}};
  for (const char* part : kParts) {
    auto content = files.read(kiln_package / part);
    if (!content)
      return Error{Fault::Environment, "this installation of kiln is incomplete",
                   fmt::format("there is no {}", (kiln_package / part).string()),
                   "install it again, or set KILN_HOME to its package folder"};
    out.push_back({fmt::format("{}/{}", folder, part), std::move(*content), false});
  }
  return out;
}

}  // namespace kiln::ship
