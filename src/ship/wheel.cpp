// SPDX-License-Identifier: Apache-2.0
// How does a built library become a wheel? (PEP 427, PEP 600, PEP 621, PEP 639, PEP 660)
#include "ship/wheel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "project/home.h"
#include "project/manifest.h"
#include "project/package_name.h"
#include "ship/python_package.h"
#include "ship/sha256.h"

namespace kiln::ship {

namespace {

constexpr const char* kEngineExtra = "cpu";

std::string wheel_text(const std::string& tag) {
  return "Wheel-Version: 1.0\nGenerator: kiln " KILN_VERSION_STRING
         "\nRoot-Is-Purelib: false\nTag: " +
         tag + "\n";
}

bool is_left_out(const std::string& name) {
  return name == "__pycache__" || name.starts_with('.') || name.ends_with(".pyc") ||
         name.ends_with(".so") || name.ends_with("~");
}

// The author's own files: Python, types and data of the folder that has the package's name.
Status add_author_files(const sys::Files& files, const fs::path& folder, const std::string& below,
                        std::vector<PackedFile>& out) {
  for (const std::string& name : files.list(folder)) {
    if (is_left_out(name)) continue;
    std::string path = below;
    path.append("/").append(name);
    if (files.state(folder / name).is_directory) {
      CHECK_OK(add_author_files(files, folder / name, path, out));
      continue;
    }
    bool ours = path.ends_with("/_ops.py") || path.find("/_kiln/") != path.npos;
    if (ours && std::count(path.begin(), path.end(), '/') <= 2)
      return Error{Fault::Usage, fmt::format("cannot put {} into the wheel", path),
                   "kiln writes a file of that name", "give it another name"};
    TRY(std::string content, files.read(folder / name));
    out.push_back({path, std::move(content), false});
  }
  return {};
}

bool has_file(const std::vector<PackedFile>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(),
                     [&](const PackedFile& file) { return file.name == name; });
}

Result<std::vector<PackedFile>> package_files(const Wheel& wheel, const WheelRequest& request,
                                              const std::string& content,
                                              const build::World& world) {
  const std::string& name = wheel.library.name;
  const project::Distribution& about = wheel.distribution;
  fs::path own = request.project / name;
  bool has_own = world.files.state(own).is_directory;
  std::vector<PackedFile> out;
  if (request.editable) {
    out.push_back({name + "/_ops.py", editable_ops_module(request.project.string()), false});
    out.push_back({name + "/__init__.py",
                   editable_init_module(wheel.library, has_own ? own.string() : "",
                                        about.description, about.version),
                   false});
    return out;
  }
  if (has_own) CHECK_OK(add_author_files(world.files, own, name, out));
  if (!has_file(out, name + "/__init__.py"))
    out.push_back({name + "/__init__.py",
                   init_module(wheel.library, about.description, about.version), false});
  out.push_back({name + "/_ops.py", ops_module(wheel.library), false});
  out.push_back({name + "/_ops.pyi", ops_stub(wheel.library), false});
  if (!has_file(out, name + "/py.typed")) out.push_back({name + "/py.typed", "", false});
  out.push_back({fmt::format("{0}/lib{0}.so", name), content, true});
  TRY(project::Home home, project::find_home(world.env));
  TRY(std::vector<PackedFile> parts, copied_parts(world.files, home.root, name + "/_kiln"));
  out.insert(out.end(), parts.begin(), parts.end());
  return out;
}

// The engine for machines without a GPU; to work on a project, all of kiln.
void add_own_requirements(project::Distribution& about, bool editable) {
  std::string engine = "kiln-cuda>=" KILN_VERSION_STRING;
  bool named = std::any_of(about.extras.begin(), about.extras.end(),
                           [](const auto& extra) { return extra.first == kEngineExtra; });
  if (!named) about.extras.push_back({kEngineExtra, {engine}});
  if (editable) about.dependencies.push_back(engine);
}

int64_t time_of_members(const sys::Environment& env) {
  return text::to_int(env.get("SOURCE_DATE_EPOCH").value_or("0")).value_or(0);
}

}  // namespace

Status check_package(const sys::Files& files, const fs::path& project, const std::string& ops) {
  if (std::string why = project::name_refused(ops); !why.empty())
    return Error{Fault::Usage, fmt::format("'{}' cannot be the name of a package", ops), why,
                 "choose another 'name' in kiln.toml: it is what people import"};
  TRY(project::Distribution about, project::read_distribution(files, project, ops));
  return {};
}

std::string metadata_text(const project::Distribution& about) {
  bool newer = !about.license.empty() || !about.license_files.empty();
  std::string out = fmt::format("Metadata-Version: {}\nName: {}\nVersion: {}\n",
                                newer ? "2.4" : "2.1", about.name, about.version);
  auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) out += fmt::format("{}: {}\n", key, value);
  };
  add("Summary", about.description);
  add("Keywords", text::join(about.keywords, ","));
  auto add_people = [&](const std::vector<std::string>& people, std::string_view name,
                        std::string_view mail) {
    std::vector<std::string> names, mails;
    for (const std::string& one : people)
      (one.find('@') == one.npos ? names : mails).push_back(one);
    add(name, text::join(names, ", "));
    add(mail, text::join(mails, ", "));
  };
  add_people(about.authors, "Author", "Author-email");
  add_people(about.maintainers, "Maintainer", "Maintainer-email");
  add("License-Expression", about.license);
  for (const std::string& file : about.license_files) add("License-File", file);
  for (const std::string& classifier : about.classifiers) add("Classifier", classifier);
  add("Requires-Python", about.requires_python);
  for (const auto& [label, url] : about.urls) add("Project-URL", fmt::format("{}, {}", label, url));
  for (const std::string& one : about.dependencies) add("Requires-Dist", one);
  for (const auto& [extra, list] : about.extras) {
    add("Provides-Extra", extra);
    for (const std::string& one : list) {
      size_t marker = one.find(';');
      std::string condition = fmt::format("extra == \"{}\"", extra);
      add("Requires-Dist",
          marker == one.npos
              ? fmt::format("{}; {}", one, condition)
              : fmt::format("{}; ({}) and {}", one.substr(0, marker),
                            text::trim(std::string_view(one).substr(marker + 1)), condition));
    }
  }
  if (!about.readme.empty()) {
    add("Description-Content-Type", about.readme_type);
    out += "\n" + about.readme;
  }
  return out;
}

std::vector<PackedFile> with_record(std::vector<PackedFile> files, const std::string& dist_info) {
  std::sort(files.begin(), files.end(), [&](const PackedFile& a, const PackedFile& b) {
    bool late_a = a.name.starts_with(dist_info), late_b = b.name.starts_with(dist_info);
    return late_a != late_b ? late_b : a.name < b.name;
  });
  std::string record;
  auto field = [](const std::string& name) {  // RECORD is CSV
    return name.find_first_of(",\"") == name.npos
               ? name
               : "\"" + text::replace_all(name, "\"", "\"\"") + "\"";
  };
  for (const PackedFile& file : files)
    record +=
        fmt::format("{},{},{}\n", field(file.name), record_hash(file.content), file.content.size());
  record += dist_info + "/RECORD,,\n";
  files.push_back({dist_info + "/RECORD", std::move(record), false});
  return files;
}

Result<Wheel> write_wheel(const build::Outcome& outcome, const WheelRequest& request,
                          const build::World& world) {
  Wheel wheel;
  TRY(project::Manifest manifest,
      project::read_manifest(world.files, request.project / project::kManifestName));
  TRY(wheel.distribution, project::read_distribution(world.files, request.project, manifest.name));
  CHECK_OK(check_package(world.files, request.project, manifest.name));
  TRY(wheel.library, facts_of_library(outcome.file));
  TRY(wheel.needs, needs_of(outcome.file));
  TRY(std::string content, world.files.read(outcome.file));
  const project::Distribution& about = wheel.distribution;
  if (!about.from_file)
    wheel.notes.push_back(fmt::format("{} has no [project]: version {}, no description",
                                      project::kPyproject, about.version));
  if (wheel.needs.system.tag.starts_with("linux_"))
    wheel.notes.push_back(
        "the library needs newer systems than any manylinux tag allows: PyPI will reject the "
        "wheel");
  for (const std::string& library : wheel.needs.system.outside)
    wheel.notes.push_back(
        fmt::format("the library needs {}, which this wheel does not contain: add the package that "
                    "does to dependencies",
                    library));
  TRY(std::vector<PackedFile> files, package_files(wheel, request, content, world));
  wheel.tag = "py3-none-" + (request.editable ? std::string("any") : wheel.needs.system.tag);
  add_own_requirements(wheel.distribution, request.editable);
  std::string stem = fmt::format("{}-{}", about.file_name(), about.version);
  std::string dist_info = stem + ".dist-info";
  files.push_back({dist_info + "/METADATA", metadata_text(about), false});
  files.push_back({dist_info + "/WHEEL", wheel_text(wheel.tag), false});
  if (!about.entry_points.empty())
    files.push_back({dist_info + "/entry_points.txt", about.entry_points, false});
  for (const std::string& license : about.license_files) {
    TRY(std::string text, world.files.read(request.project / license));
    files.push_back({fmt::format("{}/licenses/{}", dist_info, license), std::move(text), false});
  }
  TRY(std::string zip,
      write_zip(with_record(std::move(files), dist_info), time_of_members(world.env)));
  wheel.bytes = zip.size();
  wheel.file = request.output / fmt::format("{}-{}.whl", stem, wheel.tag);
  CHECK_OK(world.files.write(wheel.file, zip));
  return wheel;
}

}  // namespace kiln::ship
