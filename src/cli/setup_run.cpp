// SPDX-License-Identifier: Apache-2.0
// How do `kiln setup` and `kiln doctor --fix` say what they will do, and then do it?
#include "cli/setup_run.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::cli {

Result<int> run_setup(const doctor::Facts& facts, const doctor::SetupOptions& options, bool dry_run,
                      const Context& context) {
  doctor::Outside outside{sys::real_files(), sys::real_processes(), context.env};
  TRY(doctor::SetupPlan plan, doctor::plan_setup(facts, options, outside));
  std::string next = fmt::format("source {}", text::shell_quote(plan.env_file.string()));
  if (!context.json) {
    for (const std::string& line : plan.found) context.print(fmt::format("found: {}\n", line));
    for (const doctor::Action& action : plan.actions)
      context.print(fmt::format("{}: {}\n", dry_run ? "would" : "will", action.what));
  }
  bool nothing = plan.actions.empty();
  if (!dry_run) {
    auto tell = [&](const std::string& what) { context.note("kiln setup: " + what); };
    CHECK_OK(doctor::apply_setup(plan, options, outside, tell));
  }
  if (context.json) {
    Json actions = Json::array();
    for (const doctor::Action& action : plan.actions) actions.push_back(action.what);
    context.print_json({{"folder", options.folder.string()},
                        {"dry_run", dry_run},
                        {"found", plan.found},
                        {"actions", actions},
                        {"next", next}});
    return 0;
  }
  if (nothing) context.print("nothing to do\n");
  if (!dry_run && outside.files.state(plan.env_file).is_file())
    context.print(fmt::format("next: {}\n", next));
  return 0;
}

}  // namespace kiln::cli
