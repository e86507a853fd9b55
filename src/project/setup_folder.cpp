// SPDX-License-Identifier: Apache-2.0
// Where are the programs that `kiln setup` installed?
#include "project/setup_folder.h"

namespace kiln::project {

sys::fs::path setup_folder(const sys::Environment& env) {
  // The XDG specification tells to ignore a relative path.
  if (auto data = env.get("XDG_DATA_HOME"); data && data->starts_with('/'))
    return sys::fs::path(*data) / "kiln";
  if (auto home = env.get("HOME")) return sys::fs::path(*home) / ".local/share/kiln";
  return {};
}

sys::fs::path setup_program(const sys::Files& files, const sys::Environment& env,
                            const char* program) {
  sys::fs::path folder = setup_folder(env);
  if (folder.empty()) return {};
  sys::FileState state = files.state(folder / program);
  return state.is_file() && state.is_executable ? folder / program : sys::fs::path();
}

}  // namespace kiln::project
