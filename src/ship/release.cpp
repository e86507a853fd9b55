// SPDX-License-Identifier: Apache-2.0
// What does a C++ project get of a release?
#include "ship/release.h"

#include <fmt/format.h>

#include "base/text.h"
#include "binary/symbols.h"
#include "project/home.h"
#include "ship/c_header.h"
#include "ship/sha256.h"

namespace kiln::ship {

namespace {

std::string cmake_package(const std::string& name) {
  return fmt::format(
      "# find_package({0}) gives the target {0}::{0}: lib{0}.so and its header {0}.h.\n"
      "if(NOT TARGET {0}::{0})\n"
      "  get_filename_component(_{0}_root \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n"
      "  add_library({0}::{0} SHARED IMPORTED)\n"
      "  set_target_properties({0}::{0} PROPERTIES\n"
      "    IMPORTED_LOCATION \"${{_{0}_root}}/lib/lib{0}.so\"\n"
      "    IMPORTED_SONAME lib{0}.so\n"
      "    INTERFACE_INCLUDE_DIRECTORIES \"${{_{0}_root}}/include\")\n"
      "  unset(_{0}_root)\n"
      "endif()\n",
      name);
}

Json needs_json(const LibraryNeeds& needs) {
  return {{"machine", needs.machine},
          {"glibc", needs.system.glibc},
          {"tag", needs.system.tag},
          {"driver", needs.driver.sass ? Json(needs.driver.sass) : Json(nullptr)},
          {"images", needs.images},
          {"libraries", needs.needed}};
}

std::string description(const Release& release, const build::Outcome& outcome,
                        const std::string& content) {
  Json ops = Json::array(), arch = Json::array();
  for (const OpFacts& op : release.library.ops) ops.push_back(op.schema);
  return dump({{"kiln_release", 1},
               {"name", release.library.name},
               {"kiln", KILN_VERSION_STRING},
               {"library", fmt::format("lib/lib{}.so", release.library.name)},
               {"bytes", content.size()},
               {"sha256", sha256_hex(content)},
               {"defines", outcome.defines},
               {"ops", ops},
               {"needs", needs_json(release.needs)}},
              2) +
         "\n";
}

Status write_changed(sys::Files& files, const fs::path& path, const std::string& content,
                     bool executable) {
  auto former = files.read(path);
  if (former && *former == content) return {};
  return executable ? files.write_executable(path, content) : files.write(path, content);
}

}  // namespace

Result<LibraryNeeds> needs_of(const inspect::Artifact& file) {
  LibraryNeeds out;
  TRY(binary::Elf elf, binary::read_elf(file.bytes));
  TRY(binary::Dynamic dynamic, binary::read_dynamic(elf));
  out.machine = binary::machine_name(elf.machine);
  out.system = inspect::system_floor(dynamic.versions, dynamic.needed, out.machine);
  out.needed.assign(dynamic.needed.begin(), dynamic.needed.end());
  out.rpath = std::string(dynamic.rpath);
  out.runpath = std::string(dynamic.runpath);
  inspect::AnalyseOptions options;
  options.kernels = false;
  TRY(inspect::Analysis analysis, inspect::analyse(file, options));
  out.driver = analysis.floor;
  for (const inspect::Image& image : analysis.images.images)
    if (std::find(out.images.begin(), out.images.end(), image.label()) == out.images.end())
      out.images.push_back(image.label());
  return out;
}

Result<LibraryNeeds> needs_of(const fs::path& library) {
  TRY(auto artifacts, inspect::open_file(library, library.filename().string()));
  if (artifacts.size() != 1)
    return Error{Fault::Work, fmt::format("cannot read {}", library.string()),
                 "it is not a single library", "name the .so itself"};
  return needs_of(artifacts[0]);
}

Result<LibraryFacts> facts_of_library(const fs::path& library) {
  TRY(host::OpLibrary opened, host::OpLibrary::open(library));
  LibraryFacts facts = read_facts(opened);
  if (facts.ops.empty())
    return Error{Fault::Work,
                 fmt::format("{} contains nothing to ship", library.filename().string()),
                 "its sources define no op",
                 "add a line such as KILN_OP(my_op, \"a, b\"); see kiln docs op"};
  return facts;
}

Result<Release> write_release(const build::Outcome& outcome, const fs::path& folder,
                              const build::World& world) {
  Release release;
  release.folder = folder;
  TRY(release.library, facts_of_library(outcome.file));
  TRY(release.needs, needs_of(outcome.file));
  TRY(std::string content, world.files.read(outcome.file));
  release.library_bytes = content.size();
  TRY(project::Home home, project::find_home(world.env));
  TRY(std::string abi, world.files.read(home.include() / "kiln/abi.h"));
  const std::string& name = release.library.name;
  const std::pair<std::string, std::string> files[] = {
      {fmt::format("lib/lib{}.so", name), content},
      {fmt::format("include/{}.h", name), c_header(release.library)},
      {"include/kiln/abi.h", abi},
      {fmt::format("lib/cmake/{0}/{0}Config.cmake", name), cmake_package(name)},
      {"release.json", description(release, outcome, content)}};
  for (const auto& [path, text] : files) {
    CHECK_OK(write_changed(world.files, folder / path, text, path.ends_with(".so")));
    release.files.push_back(path);
  }
  return release;
}

std::string uncommitted(const fs::path& folder, const build::World& world) {
  fs::path git =
      sys::find_program(world.files, "git", world.env.get("PATH").value_or("/usr/bin:/bin"));
  if (git.empty()) return "";
  sys::ProcessSpec spec;
  spec.arguments = {git.string(), "status", "--porcelain", "--untracked-files=normal", "--", "."};
  spec.directory = folder;
  spec.env = world.env;
  spec.limit_s = 10;
  auto result = world.processes.run(spec);
  if (!result || result->exit_code != 0) return "";
  std::vector<std::string> names;
  for (std::string_view line : text::lines(result->out))
    if (line.size() > 3) names.emplace_back(line.substr(3));
  if (names.empty()) return "";
  size_t count = names.size();
  if (count > 3) names.resize(3), names.emplace_back("...");
  return fmt::format("{} {} from the last commit ({})", count,
                     count == 1 ? "file differs" : "files differ", text::join(names, ", "));
}

Json to_json(const Release& release) {
  return {{"folder", release.folder.string()},
          {"name", release.library.name},
          {"files", release.files},
          {"bytes", release.library_bytes},
          {"needs", needs_json(release.needs)}};
}

}  // namespace kiln::ship
