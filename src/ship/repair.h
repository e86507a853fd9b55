// SPDX-License-Identifier: Apache-2.0
// How does a wheel that is linked with torch get a manylinux tag? auditwheel copies in what is
// missing, and leaves out what torch and its CUDA packages bring.
#pragma once

#include <string>
#include <vector>

#include "ship/audit.h"

namespace kiln::ship {

struct Repaired {
  fs::path file;
  std::vector<std::string> excluded;  // libraries left to torch and CUDA's packages
  std::vector<Finding> findings;      // of the audit of the new wheel
};

Result<Repaired> repair_wheel(const fs::path& wheel, const fs::path& output, bool may_install,
                              const build::World& world);

}  // namespace kiln::ship
