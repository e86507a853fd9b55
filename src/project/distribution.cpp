// SPDX-License-Identifier: Apache-2.0
// What does a project's pyproject.toml say of the package that others install?
#include "project/distribution.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "project/package_name.h"

namespace kiln::project {

namespace {

Error wrong(const sys::fs::path& path, const toml::node* node, std::string why,
            std::string fix = "") {
  std::string place = path.string();
  if (node && node->source().begin)
    place = fmt::format("{}:{}:{}", place, node->source().begin.line, node->source().begin.column);
  return Error{Fault::Usage, fmt::format("cannot use {}", place), std::move(why), std::move(fix)};
}

struct Reader {
  const sys::Files& files;
  sys::fs::path folder, path;
  const toml::table& project;
  Distribution& out;

  Result<std::string> text(const char* key, std::string otherwise = "") const {
    const toml::node* node = project.get(key);
    if (!node) return otherwise;
    auto value = node->value_exact<std::string>();
    if (!value) return wrong(path, node, fmt::format("project.{} is not a string", key));
    // A line break would begin a field of its own in METADATA.
    if (value->find_first_of("\r\n") != value->npos)
      return wrong(path, node, fmt::format("project.{} has a line break", key),
                   "write it on one line");
    return *value;
  }

  Result<std::vector<std::string>> strings(const toml::node* node, const std::string& key) const {
    std::vector<std::string> found;
    if (!node) return found;
    const toml::array* array = node->as_array();
    if (!array) return wrong(path, node, fmt::format("project.{} is not an array of strings", key));
    for (const toml::node& item : *array) {
      auto value = item.value_exact<std::string>();
      if (!value || value->find_first_of("\r\n") != value->npos)
        return wrong(path, &item,
                     fmt::format("an item of project.{} is not a string of one line", key));
      found.push_back(*value);
    }
    return found;
  }

  Status read_people(const char* key, std::vector<std::string>& to) const {
    const toml::node* node = project.get(key);
    if (!node) return {};
    const toml::array* array = node->as_array();
    if (!array) return wrong(path, node, fmt::format("project.{} is not an array of tables", key));
    for (const toml::node& item : *array) {
      const toml::table* person = item.as_table();
      if (!person)
        return wrong(path, &item, fmt::format("an item of project.{} is not a table", key));
      std::string name = (*person)["name"].value_or(std::string());
      std::string mail = (*person)["email"].value_or(std::string());
      if ((name + mail).find_first_of("\r\n<>") != std::string::npos)
        return wrong(path, &item,
                     fmt::format("a name in project.{} has a line break or a bracket", key));
      to.push_back(mail.empty() ? name : name.empty() ? mail : fmt::format("{} <{}>", name, mail));
    }
    return {};
  }

  Status read_readme() const {
    const toml::node* node = project.get("readme");
    std::string file;
    if (!node) return {};
    if (const toml::table* table = node->as_table()) {
      file = (*table)["file"].value_or(std::string());
      out.readme = (*table)["text"].value_or(std::string());
      out.readme_type = (*table)["content-type"].value_or(std::string());
    } else {
      file = node->value_or(std::string());
    }
    if (!file.empty()) {
      auto content = files.read(folder / file);
      if (!content)
        return wrong(path, node, fmt::format("there is no {}", file), "correct project.readme");
      out.readme = *content;
    }
    if (out.readme_type.empty())
      out.readme_type = file.ends_with(".md")    ? "text/markdown"
                        : file.ends_with(".rst") ? "text/x-rst"
                                                 : "text/plain";
    return {};
  }

  // PEP 639's expression, or the older table with a file.
  Status read_license() const {
    const toml::node* node = project.get("license");
    if (node && node->is_string()) {
      TRY(out.license, text("license"));
    } else if (const toml::table* table = node ? node->as_table() : nullptr) {
      if (auto file = (*table)["file"].value<std::string>()) out.license_files.push_back(*file);
    }
    TRY(std::vector<std::string> named, strings(project.get("license-files"), "license-files"));
    out.license_files.insert(out.license_files.end(), named.begin(), named.end());
    if (out.license_files.empty())
      for (const std::string& name : files.list(folder))
        if (name.starts_with("LICENSE") || name.starts_with("LICENCE") ||
            name.starts_with("COPYING") || name.starts_with("NOTICE"))
          out.license_files.push_back(name);
    for (const std::string& file : out.license_files)
      if (!files.state(folder / file).is_file() || file.starts_with('/') ||
          file.find("..") != file.npos)
        return wrong(path, node, fmt::format("the project has no license file '{}'", file));
    return {};
  }

  Status read_extras() const {
    const toml::node* node = project.get("optional-dependencies");
    if (!node) return {};
    const toml::table* table = node->as_table();
    if (!table) return wrong(path, node, "project.optional-dependencies is not a table");
    for (const auto& [name, list] : *table) {
      TRY(auto wanted, strings(&list, "optional-dependencies"));
      out.extras.emplace_back(std::string(name.str()), std::move(wanted));
    }
    return {};
  }

  Status read_urls() const {
    const toml::node* node = project.get("urls");
    if (!node) return {};
    const toml::table* table = node->as_table();
    if (!table) return wrong(path, node, "project.urls is not a table");
    for (const auto& [name, url] : *table)
      out.urls.emplace_back(std::string(name.str()), url.value_or(std::string()));
    return {};
  }

  Status add_points(const std::string& group, const toml::node* node) const {
    if (!node) return {};
    const toml::table* table = node->as_table();
    if (!table)
      return wrong(path, node, fmt::format("the entry points '{}' are not a table", group));
    out.entry_points += fmt::format("{}[{}]\n", out.entry_points.empty() ? "" : "\n", group);
    for (const auto& [name, target] : *table)
      out.entry_points += fmt::format("{} = {}\n", name.str(), target.value_or(std::string()));
    return {};
  }

  Status read() const {
    TRY(out.name, text("name", out.name));
    TRY(out.version, text("version", out.version));
    TRY(out.description, text("description"));
    TRY(out.requires_python, text("requires-python", out.requires_python));
    TRY(out.keywords, strings(project.get("keywords"), "keywords"));
    TRY(out.classifiers, strings(project.get("classifiers"), "classifiers"));
    if (project.get("dependencies")) {
      TRY(out.dependencies, strings(project.get("dependencies"), "dependencies"));
    }
    CHECK_OK(read_people("authors", out.authors));
    CHECK_OK(read_people("maintainers", out.maintainers));
    CHECK_OK(read_readme());
    CHECK_OK(read_license());
    CHECK_OK(read_extras());
    CHECK_OK(read_urls());
    CHECK_OK(add_points("console_scripts", project.get("scripts")));
    CHECK_OK(add_points("gui_scripts", project.get("gui-scripts")));
    if (const toml::node* groups = project.get("entry-points"); groups && groups->is_table())
      for (const auto& [group, points] : *groups->as_table())
        CHECK_OK(add_points(std::string(group.str()), &points));
    return {};
  }
};

Status check(const Distribution& out, const sys::fs::path& path) {
  if (std::string why = name_refused(out.name); !why.empty())
    return Error{Fault::Usage, fmt::format("PyPI would reject the name '{}'", out.name), why,
                 fmt::format("choose another 'name' under [project] in {}", path.string())};
  if (!is_version(out.version))
    return Error{Fault::Usage, fmt::format("invalid version '{}'", out.version),
                 "PEP 440: 1.0, 1.0.2, 2.0rc1, 1.0.post1",
                 fmt::format("correct 'version' in {}", path.string())};
  return {};
}

}  // namespace

std::string Distribution::file_name() const { return package_file_name(name); }

Result<Distribution> read_distribution(const sys::Files& files, const sys::fs::path& folder,
                                       const std::string& ops) {
  Distribution out;
  out.name = ops;
  out.version = "0.1.0";
  out.dependencies = {"torch>=2.7"};
  sys::fs::path path = folder / kPyproject;
  toml::table table;
  if (files.state(path).is_file()) {
    TRY(std::string content, files.read(path));
    try {
      table = toml::parse(content);
    } catch (const toml::parse_error& e) {
      return Error{
          Fault::Usage,
          fmt::format("{}:{}:{}", path.string(), e.source().begin.line, e.source().begin.column),
          std::string(e.description()), "correct the file"};
    }
  }
  if (const toml::table* project = table["project"].as_table()) {
    out.from_file = true;
    Reader reader{files, folder, path, *project, out};
    if (const toml::node* dynamic = project->get("dynamic");
        dynamic && dynamic->is_array() && !dynamic->as_array()->empty())
      return wrong(path, dynamic, "project.dynamic asks for what kiln does not compute",
                   "write version and the rest under [project]");
    CHECK_OK(reader.read());
  }
  CHECK_OK(check(out, path));
  return out;
}

}  // namespace kiln::project
