// SPDX-License-Identifier: Apache-2.0
// What does the troubleshooting page say? The table of checks, by area, symptom first.
#include <fmt/format.h>

#include "doctor/report.h"

namespace kiln::doctor {

std::string troubleshooting_page() {
  std::string out =
      "# Troubleshooting\n\n"
      "<!-- Made by `kiln doctor --page`; a test compares. Edit src/doctor/checks.def. -->\n\n"
      "`kiln doctor` looks for all of these; `kiln doctor lib.so` for those of a library or "
      "wheel,\n"
      "`kiln doctor FOLDER` for those of a project. Find the message you see, or run the "
      "command.\n";
  for (Area area : {Area::Tools, Area::Cuda, Area::Torch, Area::Gpu, Area::Memory, Area::Caches,
                    Area::Library, Area::Project, Area::Timed}) {
    out += fmt::format("\n## {}\n", name_of(area));
    for (const Check& check : checks()) {
      if (check.area != area) continue;
      out += fmt::format("\n### {}\n\n    {}\n\n- checks: {}\n- fix: {}\n", check.name,
                         check.symptom, check.looks_at, check.fix);
    }
  }
  return out;
}

}  // namespace kiln::doctor
