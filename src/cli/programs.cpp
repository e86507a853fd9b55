// SPDX-License-Identifier: Apache-2.0
// In which environment does kiln start what it built?
#include "cli/programs.h"

#include "project/home.h"
#include "sys/files.h"

namespace kiln::cli {

Result<sys::Environment> program_environment(sys::Environment env) {
  TRY(project::Home home, project::find_home(env));
  sys::fs::path engine = home.root / "lib" / "libkiln_engine.so";
  if (!env.get("KILN_ENGINE") && sys::real_files().state(engine).is_file())
    env.set("KILN_ENGINE", engine.string());
  return env;
}

}  // namespace kiln::cli
