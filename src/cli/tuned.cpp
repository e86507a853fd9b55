// SPDX-License-Identifier: Apache-2.0
// Which configuration does `kiln build --tuned` bake in?
#include "cli/tuned.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "build/plan/plan.h"
#include "tune/result.h"

namespace kiln::cli {

namespace {

std::string name_of(const std::string& define) { return define.substr(0, define.find('=')); }

std::filesystem::path tuned_file(const build::Plan& plan) {
  if (!plan.project_dir.empty()) return plan.project_dir / "tuned.json";
  const std::filesystem::path& source = plan.sources.front().file;
  return source.parent_path() / (source.stem().string() + ".tuned.json");
}

}  // namespace

Status take_tuned(build::Request& request, const std::string& part, const Context& context) {
  build::Request asked = request;
  asked.directory = context.directory;
  const build::World world{sys::real_files(), sys::real_processes(), context.env, {}, {}, {}};
  TRY(const build::Plan plan, build::make_plan(asked, world));
  const std::filesystem::path file = tuned_file(plan);
  if (!world.files.state(file).is_file())
    return Error{Fault::Usage, "there is no tuned configuration",
                 fmt::format("{} does not exist", file.string()),
                 "run kiln tune on a machine with the GPU; it writes the file"};
  TRY(const std::string text, world.files.read(file));
  TRY(const tune::Choices choices, tune::parse_choices(text, file.string()));
  std::vector<std::string> computes;
  for (const project::Arch& arch : plan.arch.sass)
    computes.push_back(fmt::format("{}.{}", arch.major, arch.minor));
  TRY(const std::vector<std::string> chosen,
      tune::choose(choices, computes, part, file.filename().string()));
  std::vector<std::string> taken;
  for (const std::string& define : chosen) {
    const bool given = std::ranges::any_of(
        request.defines, [&](const std::string& own) { return name_of(own) == name_of(define); });
    if (!given) taken.push_back(define);
  }
  request.defines.insert(request.defines.end(), taken.begin(), taken.end());
  context.note("tuned: " + text::join(taken, " "));
  return {};
}

}  // namespace kiln::cli
