// SPDX-License-Identifier: Apache-2.0
// Where are kiln's own headers, archive and templates?
#pragma once

#include "base/result.h"
#include "sys/env.h"
#include "sys/files.h"

namespace kiln::project {

struct Home {
  sys::fs::path root;  // the package: bin, lib, include, templates
  sys::fs::path include() const { return root / "include"; }
  sys::fs::path compat() const { return root / "compat"; }  // headers that stand in for torch's
  sys::fs::path compat_archive() const { return root / "lib" / "libkiln_compat.a"; }
  sys::fs::path runtime_archive() const { return root / "lib" / "libkiln_runtime.a"; }
  sys::fs::path templates() const { return root / "templates"; }
};

// KILN_HOME, else the folder above the one of this executable.
Result<Home> find_home(const sys::Environment& env);

// XDG_CACHE_HOME or ~/.cache, then "kiln". An error where neither HOME nor XDG_CACHE_HOME is set.
Result<sys::fs::path> cache_folder(const sys::Environment& env);

}  // namespace kiln::project
