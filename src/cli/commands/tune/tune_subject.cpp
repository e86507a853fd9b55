// SPDX-License-Identifier: Apache-2.0
// Which earlier results still hold?
#include "cli/commands/tune/tune_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "project/manifest.h"
#include "project/own_cache.h"
#include "project/toolchain.h"
#include "sys/files.h"
#include "tune/local_workers.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 12;

bool is_source(const fs::path& path) {
  static const std::set<std::string> kEndings = {".cu",  ".cuh", ".h",  ".hpp", ".hh",  ".inl",
                                                 ".inc", ".cpp", ".cc", ".cxx", ".def", ".ptx"};
  return kEndings.contains(path.extension().string());
}

std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, failed),
       end;
       !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;
    if (at->is_directory(unknown) && (name == "build" || name.starts_with('.')))
      at.disable_recursion_pending();
    else if (is_source(at->path()) && at->is_regular_file(unknown))
      found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found;
}

void add_with_includes(const fs::path& file, std::set<fs::path>& seen) {
  if (!seen.insert(file).second) return;
  const auto text = sys::real_files().read(file);
  if (!text) return;
  for (std::string_view line : text::lines(*text)) {
    line = text::trim(line);
    if (!line.starts_with('#')) continue;
    line = text::trim(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = text::trim(line.substr(7));
    const size_t close = line.find('"', 1);
    if (!line.starts_with('"') || close == std::string_view::npos) continue;
    const fs::path included = (file.parent_path() / line.substr(1, close - 1)).lexically_normal();
    if (sys::real_files().state(included).is_file()) add_with_includes(included, seen);
  }
}

}  // namespace

Status take_declared(std::string& target, std::string& name, const Context& context) {
  if (!name.empty()) return {};
  const sys::Files& files = sys::real_files();
  const fs::path folder = context.directory / target;
  const bool is_folder = files.state(folder).is_directory;
  const fs::path manifest_path = (is_folder ? folder : context.directory) / project::kManifestName;
  if (files.state(folder).is_file() || !files.state(manifest_path).is_file()) return {};
  TRY(const project::Manifest manifest, project::read_manifest(files, manifest_path));
  std::vector<std::string> names;
  for (const auto& one : manifest.tune.items()) names.push_back(one.key());
  if (!is_folder) {  // a name, and not a path
    if (std::ranges::find(names, target) != names.end()) name = std::exchange(target, ".");
    return {};
  }
  if (target.empty()) target = ".";
  if (names.size() == 1) {
    name = names.front();
    return {};
  }
  if (names.empty())
    return Error{Fault::Usage, fmt::format("nothing to tune in {}", target),
                 fmt::format("{} has no table [tune.NAME]", project::kManifestName),
                 "kiln docs tune shows one; or kiln tune FILE.cu OP ARGS --vary BLOCK=64,128"};
  return Error{Fault::Usage, "kiln tune needs the name of what to tune",
               fmt::format("{} has {}", project::kManifestName, text::join(names, ", ")),
               fmt::format("kiln tune {} {}", target, names.front())};
}

Result<TunePlace> tune_place(const std::string& target, const Context& context) {
  TunePlace place;
  const sys::Files& files = sys::real_files();
  fs::path path = (context.directory / target).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == project::kManifestName) path = path.parent_path();
  const sys::FileState state = files.state(path);
  if (!state.exists)
    return Error{Fault::Usage, fmt::format("cannot tune '{}'", target),
                 "there is no such file or folder",
                 "kiln tune FILE.cu OP ARGS, or a project with [tune.NAME] in its kiln.toml"};
  TRY(place.target, files.real_path(path));
  place.is_project = state.is_directory;
  if (place.is_project) {
    if (!files.state(place.target / project::kManifestName).is_file())
      return Error{Fault::Usage, fmt::format("'{}' is not a project", target),
                   fmt::format("it has no {}", project::kManifestName),
                   "name a .cu file, or kiln new NAME"};
    place.folder = place.target / "build" / "kiln" / "tune";
    place.tuned = place.target / "tuned.json";
    return place;
  }
  if (place.target.extension() != ".cu")
    return Error{Fault::Usage, fmt::format("cannot tune '{}'", target),
                 "variants are built from a .cu or a project",
                 "kiln tune FILE.cu OP ARGS --vary BLOCK=64,128"};
  TRY(const fs::path cache, project::own_cache_folder(sys::real_files(), context.env));
  const std::string stem = place.target.stem().string();
  place.folder = cache / "tune" /
                 fmt::format("{}-{}", stem, hash_hex(place.target.string()).substr(0, kHashDigits));
  place.tuned = place.target.parent_path() / (stem + ".tuned.json");
  return place;
}

std::vector<fs::path> all_sources(const TunePlace& place) {
  std::set<fs::path> files;
  if (place.is_project)
    for (const fs::path& path : sources_below(place.target)) add_with_includes(path, files);
  else
    add_with_includes(place.target, files);
  return {files.begin(), files.end()};
}

std::string hash_of_all_sources(const TunePlace& place) {
  std::vector<fs::path> files = all_sources(place);
  if (place.is_project) files.push_back(place.target / project::kManifestName);
  std::ranges::sort(files);
  Hasher hasher;
  for (const fs::path& path : files) {
    const auto text = sys::real_files().read(path);
    std::string content = text ? *text : "";
    // Another space, or other benchmarks, leave the code as it was.
    if (path.filename() == project::kManifestName) {
      auto manifest = project::parse_manifest(content, path.string());
      if (!manifest) continue;
      content = text::join(manifest->sources, "\n") + "\n" + text::join(manifest->defines, "\n") +
                "\n" + text::join(manifest->cuda_flags, "\n") + "\n" +
                text::join(manifest->include, "\n") + (manifest->fast_math ? "\nfast" : "");
    }
    hasher.add_field(path.lexically_relative(place.target.parent_path()).string())
        .add_field(content);
  }
  return hasher.hex();
}

Result<Json> tune_subject(const TunePlan& plan, const TunePlace& place,
                          const build::Request& request, const Json& device, uint64_t seed,
                          const Context& context) {
  TRY(const project::Compiler nvcc, project::find_nvcc(sys::real_files(), context.env));
  // What the builds of the variants are asked for, but for what has a place of its own below.
  build::Request flags = request;
  flags.targets.clear();
  flags.defines.clear();
  flags.arch.clear();
  flags.build_dir.clear();
  return Json{{"op", plan.op},
              {"arguments", plan.arguments},
              {"check", plan.check},
              {"seed", seed},
              {"reference", plan.against.empty() ? plan.expect : plan.against},
              {"sources", hash_of_all_sources(place)},
              {"defines", request.defines},
              {"flags", tune::build_words(flags)},
              {"arch", request.arch},
              {"gpu", device.value("kind", "") == "engine" ? "none" : device.value("name", "")},
              {"nvcc", hash_hex(nvcc.identity).substr(0, kHashDigits)},
              {"kiln", KILN_VERSION_STRING}};
}

std::string subject_name(const TunePlan& plan, const Json& subject) {
  return fmt::format("{}-{}", text::to_identifier(plan.name),
                     hash_hex(dump(subject)).substr(0, kHashDigits));
}

}  // namespace kiln::cli
