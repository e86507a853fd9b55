// SPDX-License-Identifier: Apache-2.0
// `kiln new`: how does a kernel begin?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "project/home.h"
#include "project/package_name.h"
#include "project/scaffold.h"

namespace kiln::cli {
namespace new_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name;
  bool minimal = false;
  bool force = false;
};

Result<int> run(const Options& options, Context& context) {
  fs::path goal = fs::path(options.name).lexically_normal();
  if (goal.filename().empty()) goal = goal.parent_path();
  std::string name = goal.filename().string();
  if (options.minimal && name.ends_with(".cu")) name = goal.stem().string();
  if (!text::is_identifier(name)) {
    bool one_file = name.ends_with(".cu");
    std::string fitting = text::to_identifier(one_file ? goal.stem().string() : name);
    return Error{
        Fault::Usage, fmt::format("'{}' is not a valid op library name", name),
        "it becomes torch.ops.<name> and a C++ name: letters, digits and _, but not a keyword",
        fmt::format("kiln new {}{}", one_file ? "--minimal " : "",
                    (goal.parent_path() / fitting).string())};
  }
  if (std::string why = project::name_taken(name); !why.empty())
    return Error{Fault::Usage, fmt::format("'{}' is already the name of a module", name),
                 fmt::format("import {} would find two modules: {}", name, why),
                 fmt::format("kiln new {}{}", options.minimal ? "--minimal " : "",
                             (goal.parent_path() / ("my_" + name)).string())};
  TRY(project::Home home, project::find_home(context.env));
  sys::Files& files = sys::real_files();
  fs::path folder = context.directory / (options.minimal ? goal.parent_path() : goal);
  TRY(auto scaffold,
      project::read_scaffold(files, home.templates() / (options.minimal ? "minimal" : "project"),
                             name));
  if (Status written = project::write_scaffold(files, folder, scaffold, options.force); !written) {
    // The disk's usual advice is for builds.
    if (written.error().fault == Fault::Environment)
      written.error().fix = "run it in a folder that you can write to";
    return std::move(written.error());
  }

  Json written = Json::array();
  std::string list;
  for (const project::ScaffoldFile& file : scaffold) {
    fs::path path = (folder / file.path).lexically_normal();
    written.push_back(path.string());
    list += path.lexically_proximate(context.directory).string() + "\n";
  }
  if (context.json) {
    context.print_json(
        {{"name", name}, {"folder", folder.lexically_normal().string()}, {"files", written}});
    return 0;
  }
  context.print(list);
  std::string shown = options.minimal ? name + ".cu" : goal.string();
  context.note(options.minimal ? fmt::format("next: kiln build {}", shown)
                               : fmt::format("next: cd {} && kiln build && kiln test", shown));
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("NAME", options->name, "Name of the ops, and of the new folder")
      ->required()
      ->type_name("");
  app.add_flag("--minimal", options->minimal, "One NAME.cu with one op, nothing else");
  app.add_flag("--force", options->force, "Overwrite existing files");
  app.footer(
      "Without --minimal: kiln.toml, the op (NAME.cu), a debug program without torch (main.cu), "
      "tests, a benchmark.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace new_cli

const Command new_command = {"new", "Start a kernel: one .cu, or a project with tests",
                             new_cli::setup};

}  // namespace kiln::cli
