// SPDX-License-Identifier: Apache-2.0
// Does a wheel work where nothing of kiln is? It is installed with one torch, imported, and its
// smoke test is run.
#pragma once

#include <string>
#include <vector>

#include "ship/audit.h"

namespace kiln::ship {

struct TrialRequest {
  fs::path wheel;
  std::string package;  // to import
  fs::path smoke;       // a script to run after that; empty: none
  std::string
      where;  // "torch==2.7.1", or a Python, or a folder of an environment, that has a torch
  bool may_install = true;  // else only an environment of an earlier trial will do
};

// One finding: what ran on what, or what went wrong.
Finding try_wheel(const TrialRequest& request, const build::World& world);

}  // namespace kiln::ship
