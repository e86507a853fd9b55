// SPDX-License-Identifier: Apache-2.0
// Which files does a new project begin with?
#include "project/scaffold.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::project {

namespace {

constexpr std::string_view kPlaceholder = "NAME";
constexpr std::string_view kHiddenPrefix = "dot-";

std::string without_licence(std::string_view content) {
  std::string out;
  for (std::string_view line : text::lines(content))
    if (line.find("SPDX-License-Identifier") == std::string_view::npos) (out += line) += '\n';
  return out;
}

Status collect(const sys::Files& files, const sys::fs::path& folder, const sys::fs::path& below,
               std::string_view name, std::vector<ScaffoldFile>& out) {
  for (const std::string& entry : files.list(folder / below)) {
    // pip compiles the Python files of a wheel, those of the templates too.
    if (entry == "__pycache__") continue;
    if (files.state(folder / below / entry).is_directory) {
      CHECK_OK(collect(files, folder, below / entry, name, out));
      continue;
    }
    TRY(std::string content, files.read(folder / below / entry));
    sys::fs::path goal;
    for (const sys::fs::path& part : below / entry) {
      std::string word = text::replace_all(part.string(), kPlaceholder, name);
      if (word.starts_with(kHiddenPrefix)) word = "." + word.substr(kHiddenPrefix.size());
      goal /= word;
    }
    out.push_back({goal, text::replace_all(without_licence(content), kPlaceholder, name)});
  }
  return {};
}

}  // namespace

Result<std::vector<ScaffoldFile>> read_scaffold(const sys::Files& files,
                                                const sys::fs::path& templates,
                                                std::string_view name) {
  std::vector<ScaffoldFile> out;
  CHECK_OK(collect(files, templates, "", name, out));
  if (out.empty())
    return Error{Fault::Environment, "this installation of kiln is incomplete",
                 fmt::format("{} contains no templates", templates.string()),
                 "install it again, or set KILN_HOME to its package folder"};
  return out;
}

Status write_scaffold(sys::Files& files, const sys::fs::path& folder,
                      const std::vector<ScaffoldFile>& scaffold, bool force) {
  for (const ScaffoldFile& file : scaffold)
    if (!force && files.state(folder / file.path).exists)
      return Error{Fault::Usage, fmt::format("cannot create {}", (folder / file.path).string()),
                   "it already exists", "choose another name, or --force to overwrite it"};
  for (const ScaffoldFile& file : scaffold) CHECK_OK(files.write(folder / file.path, file.content));
  return {};
}

}  // namespace kiln::project
