// SPDX-License-Identifier: Apache-2.0
// Which Python is in use, and which torch does it have? Torch is found and read, never imported:
// that takes seconds.
#include "base/json.h"
#include "base/text.h"
#include "doctor/gather.h"

namespace kiln::doctor {

namespace {

constexpr const char* kQuestion = R"PY(
import importlib.util as u, json, os, sys, sysconfig
def found(name):
    try:
        spec = u.find_spec(name)
    except Exception:
        spec = None
    places = spec and spec.submodule_search_locations
    return list(places)[0] if places else ""
include = sysconfig.get_path("include")
conda = os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "platform": sysconfig.get_platform().replace("-", "_"),
    "include": include,
    "header": os.path.exists(os.path.join(include, "Python.h")),
    "packages": [p for p in sys.path if p and os.path.isdir(p) and p.endswith("packages")],
    "prefix": sys.prefix,
    "environment": sys.prefix != sys.base_prefix or conda,
    "pip": bool(found("pip")),
    "torch": found("torch"),
}))
)PY";

std::string quoted_in(std::string_view line) {
  size_t begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
  return begin != line.npos && begin < end ? std::string(line.substr(begin + 1, end - begin - 1))
                                           : "";
}

}  // namespace

void read_torch_version(std::string_view text, Torch& torch) {
  for (std::string_view line : text::lines(text)) {
    if (line.starts_with("__version__")) torch.version = quoted_in(line);
    if (line.starts_with("cuda:") || line.starts_with("cuda ")) torch.cuda = quoted_in(line);
  }
}

void gather_python(const Outside& outside, Facts& facts) {
  Python& python = facts.python;
  sys::fs::path found;
  std::string named = outside.env.get("KILN_PYTHON").value_or("");
  for (const std::string& name : {named, std::string("python3"), std::string("python")})
    if (found.empty() && !name.empty())
      found = sys::find_program(outside.files, name, search_path(outside.env));
  if (found.empty()) return;
  python.program.path = found.string();
  Answer answer = ask(outside, {found.string(), "-c", kQuestion});
  python.program.trouble = answer.trouble;
  // A site's own start-up code may print before.
  size_t begin = answer.text.find('{');
  auto json = parse_json(
      begin == std::string::npos ? "" : std::string_view(answer.text).substr(begin), "python");
  if (!json || !json->is_object()) {
    if (python.program.trouble.empty()) python.program.trouble = "it does not behave like Python";
    return;
  }
  python.program.version = json->value("version", "");
  python.platform_tag = json->value("platform", "");
  python.include = json->value("include", "");
  python.has_header = json->value("header", false);
  python.prefix = json->value("prefix", "");
  python.is_environment = json->value("environment", false);
  python.has_pip = json->value("pip", false);
  for (const Json& one : json->value("packages", Json::array()))
    if (one.is_string()) python.packages.push_back(one);
  facts.torch.folder = json->value("torch", "");
  if (!facts.torch.found()) return;
  auto version = outside.files.read(sys::fs::path(facts.torch.folder) / "version.py");
  if (version)
    read_torch_version(*version, facts.torch);
  else
    facts.torch.folder.clear();  // a folder that happens to be named torch
}

}  // namespace kiln::doctor
