// SPDX-License-Identifier: Apache-2.0
// How does ninja have one step of a build done?
#include "cli/step.h"

#include "build/run/run_step.h"
#include "sys/printable.h"
#include "sys/terminal.h"

namespace kiln::cli {

int run_build_step(const std::string& step_file, const sys::Environment& env) {
  auto report_error = [](const Error& error) {
    sys::write_err(sys::printable(format(error)) + "\n");
    return static_cast<int>(error.fault);
  };
  sys::Files& files = sys::real_files();
  auto staging = env.get(build::kStagingVariable);
  auto text = files.read(step_file);
  if (!text) return report_error(text.error());
  auto step = build::read_step(*text);
  if (!step) return report_error(step.error());
  if (!staging)
    return report_error({Fault::Usage, "cannot run a single step of a build",
                         "KILN_STAGING is not set", "kiln build"});
  std::error_code no_folder;
  build::StepWorld world{files, sys::real_processes(), env,
                         std::filesystem::current_path(no_folder), *staging};
  build::StepReport report;
  auto code = build::run_step(*step, world, report);
  return code ? *code : report_error(code.error());
}

}  // namespace kiln::cli
