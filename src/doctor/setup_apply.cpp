// SPDX-License-Identifier: Apache-2.0
// How is a plan carried out and undone? Each action is in the manifest before it begins: one that
// was interrupted is undone like one that ended.
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "doctor/setup.h"
#include "sys/guarded_files.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

constexpr int kVersion = 1;

struct Manifest {
  path file;
  Json entries = Json::array();

  static Result<Manifest> read(const Outside& outside, const path& folder) {
    Manifest manifest{folder / kSetupManifest, Json::array()};
    if (!outside.files.state(manifest.file).exists) return manifest;
    TRY(std::string text, outside.files.read(manifest.file));
    auto json = parse_json(text, manifest.file.string());
    bool sound = json && json->is_object() && json->value("kiln_setup", 0) == kVersion &&
                 json->contains("did") && (*json)["did"].is_array();
    if (sound)
      for (const Json& entry : (*json)["did"])
        sound &= entry.is_object() && entry.contains("kind") && entry["kind"].is_string() &&
                 entry.contains("path") && entry["path"].is_string();
    if (!sound)
      return Error{Fault::Environment, fmt::format("cannot read {}", manifest.file.string()),
                   "kiln setup did not write it in this form",
                   fmt::format("remove {} by hand", folder.string())};
    manifest.entries = (*json)["did"];
    return manifest;
  }

  Status write(const Outside& outside) const {
    return outside.files.write(file, dump({{"kiln_setup", kVersion}, {"did", entries}}, 2) + "\n");
  }

  // An entry of the same kind and path is replaced.
  Status add(const Outside& outside, Json entry) {
    Json kept = Json::array();
    for (Json& one : entries)
      if (one["kind"] != entry["kind"] || one["path"] != entry["path"])
        kept.push_back(std::move(one));
    kept.push_back(std::move(entry));
    entries = std::move(kept);
    return write(outside);
  }
};

// The line that says what went wrong: pip ends with notices about itself.
std::string pip_error(std::string_view out) {
  std::string last, error;
  for (std::string_view line : text::lines(out)) {
    std::string_view trimmed = text::trim(line);
    if (trimmed.empty() || trimmed.starts_with("[notice]")) continue;
    last = std::string(trimmed);
    if (trimmed.starts_with("ERROR")) error = last;
  }
  return error.empty() ? last : error;
}

Status run_pip(const Outside& outside, const SetupOptions& options, const std::string& what,
               const std::string& python, std::vector<std::string> words) {
  sys::ProcessSpec spec;
  spec.arguments = {python, "-m", "pip"};
  spec.arguments.insert(spec.arguments.end(), words.begin(), words.end());
  spec.env = outside.env;
  TRY(sys::ProcessResult result, outside.processes.run(spec));
  if (result.exit_code == 0) return {};
  bool network =
      result.out.find("NewConnectionError") != std::string::npos ||
      result.out.find("Temporary failure in name resolution") != std::string::npos ||
      result.out.find("ConnectTimeout") != std::string::npos ||
      result.out.find("ProxyError") != std::string::npos ||
      // All that pip says by default where it had no answer at all.
      (options.find_links.empty() && result.out.find("(from versions: none)") != std::string::npos);
  std::string fix = "run kiln setup again once that is fixed; what was done so far is kept";
  if (network && options.find_links.empty())
    fix =
        "with network: kiln setup again; without: kiln setup --find-links FOLDER, with the wheels "
        "in it";
  return Error{
      Fault::Environment, fmt::format("cannot {}", what),
      network ? "PyPI cannot be reached, or has nothing for this machine: " + pip_error(result.out)
              : pip_error(result.out),
      fix};
}

std::vector<std::string> install_words(const SetupOptions& options, const Action& action) {
  std::vector<std::string> words = {"install", "--disable-pip-version-check", "--no-input",
                                    "--progress-bar", "off"};
  if (!action.index.empty()) words.insert(words.end(), {"--index-url", action.index});
  if (!options.find_links.empty())
    words.insert(words.end(), {"--no-index", "--find-links", options.find_links});
  return words;
}

Status apply_pip(const Action& action, const SetupOptions& options, const Outside& outside) {
  // A folder of another name until all is in it: one that was interrupted is never taken for a
  // whole one.
  path partial = action.path;
  partial += ".partial";
  CHECK_OK(outside.files.remove(partial));
  std::vector<std::string> words = install_words(options, action);
  words.insert(words.end(), {"--target", partial.string()});
  words.insert(words.end(), action.packages.begin(), action.packages.end());
  Status done = run_pip(outside, options, action.what, action.python, std::move(words));
  if (!done) {
    (void)outside.files.remove(partial);
    return done;
  }
  CHECK_OK(outside.files.remove(action.path));
  std::error_code error;
  sys::fs::rename(partial, action.path, error);
  if (error) return sys::disk_error("cannot rename", partial, error.value());
  sys::FileState state = outside.files.state(action.result);
  if (state.is_file() && state.is_executable) return {};
  return Error{Fault::Environment, fmt::format("cannot {}", action.what),
               fmt::format("pip succeeded, but {} is not a program", action.result.string()),
               "install it with your system's package manager"};
}

// Without a limit: pip takes its time on a slow disk, and half a list would be a wrong one.
Result<std::string> ask_pip(const Outside& outside, const std::string& python,
                            std::vector<std::string> words) {
  sys::ProcessSpec spec;
  spec.arguments = {python, "-m", "pip", "--disable-pip-version-check"};
  spec.arguments.insert(spec.arguments.end(), words.begin(), words.end());
  spec.env = outside.env;
  TRY(sys::ProcessResult result, outside.processes.run(spec));
  if (result.exit_code == 0) return std::move(result.out);
  return Error{Fault::Environment, fmt::format("pip {} failed", words[0]), pip_error(result.out),
               text::join(spec.arguments, " ")};
}

Result<std::set<std::string>> installed_packages(const Outside& outside,
                                                 const std::string& python) {
  std::set<std::string> names;
  TRY(std::string list, ask_pip(outside, python, {"list", "--format=freeze"}));
  for (std::string_view line : text::lines(list))
    if (size_t at = line.find("=="); at != line.npos) names.emplace(line.substr(0, at));
  return names;
}

Status apply_torch(const Action& action, const SetupOptions& options, const Outside& outside,
                   Manifest& manifest) {
  std::string python = action.python;
  bool own = action.path == options.folder / "venv";
  if (own) {
    CHECK_OK(manifest.add(outside, {{"kind", "folder"}, {"path", action.path.string()}}));
    sys::ProcessSpec spec;
    spec.arguments = {python, "-m", "venv", action.path.string()};
    spec.env = outside.env;
    TRY(sys::ProcessResult made, outside.processes.run(spec));
    if (made.exit_code != 0)
      return Error{
          Fault::Environment, fmt::format("cannot create the environment {}", action.path.string()),
          pip_error(made.out), "apt install python3-venv, or activate an environment of your own"};
    python = (action.path / "bin/python").string();
  }
  TRY(std::set<std::string> before, installed_packages(outside, python));
  if (!own)
    CHECK_OK(manifest.add(
        outside,
        {{"kind", "packages"}, {"path", python}, {"names", std::vector<std::string>{"torch"}}}));
  std::vector<std::string> words = install_words(options, action);
  words.insert(words.end(), action.packages.begin(), action.packages.end());
  CHECK_OK(run_pip(outside, options, action.what, python, std::move(words)));
  if (own) return {};
  std::vector<std::string> added;
  TRY(std::set<std::string> after, installed_packages(outside, python));
  for (const std::string& name : after)
    if (!before.contains(name)) added.push_back(name);
  return manifest.add(outside, {{"kind", "packages"}, {"path", python}, {"names", added}});
}

Status apply_line(const Action& action, const Outside& outside, Manifest& manifest) {
  CHECK_OK(manifest.add(
      outside, {{"kind", "line"}, {"path", action.path.string()}, {"text", action.content}}));
  TRY(std::string text, outside.files.read(action.path));
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return sys::rewrite(outside.files, action.path, text + action.content);
}

Status apply_one(const Action& action, const SetupOptions& options, const Outside& outside,
                 Manifest& manifest) {
  switch (action.kind) {
    case ActionKind::Pip:
      CHECK_OK(manifest.add(outside, {{"kind", "folder"}, {"path", action.path.string()}}));
      return apply_pip(action, options, outside);
    case ActionKind::Torch:
      return apply_torch(action, options, outside, manifest);
    case ActionKind::Folder:
      // One that was there before, or lies elsewhere, is the user's.
      if (!outside.files.state(action.path).exists && action.path.parent_path() == options.folder)
        CHECK_OK(manifest.add(outside, {{"kind", "folder"}, {"path", action.path.string()}}));
      return outside.files.make_private_directory(action.path);
    case ActionKind::File:
      CHECK_OK(manifest.add(
          outside,
          {{"kind", "file"}, {"path", action.path.string()}, {"hash", hash_hex(action.content)}}));
      return outside.files.write(action.path, action.content);
    case ActionKind::Line:
      return apply_line(action, outside, manifest);
    case ActionKind::RemoveFile:
      return outside.files.remove(action.path);
  }
  return {};
}

std::string undo_line(const Json& entry, const Outside& outside, bool dry_run, Status& status) {
  std::string where = entry["path"];
  auto text = outside.files.read(where);
  std::string line = entry.value("text", "");
  if (!text || line.empty() || text->find(line) == text->npos) return "";
  if (!dry_run) status = sys::rewrite(outside.files, where, text::replace_all(*text, line, ""));
  return fmt::format("remove a line from {}", where);
}

std::string undo_packages(const Json& entry, const Outside& outside, bool dry_run, Status& status) {
  std::vector<std::string> words = {"uninstall", "-y"}, names;
  for (const Json& name : entry.value("names", Json::array()))
    if (name.is_string() && !name.get<std::string>().starts_with("-")) names.push_back(name);
  if (names.empty()) return "";
  words.insert(words.end(), names.begin(), names.end());
  std::string python = entry["path"];
  // An environment that is gone took its packages along.
  if (!outside.files.state(python).exists) return "";
  if (!dry_run)
    if (auto done = ask_pip(outside, python, std::move(words)); !done)
      status = std::move(done.error());
  return fmt::format("uninstall {} from {}", text::join(names, " "), python);
}

// What was done, or would be; empty where it is gone already.
std::string undo(const Json& entry, const path& folder, const Outside& outside, bool dry_run,
                 Status& status) {
  std::string kind = entry["kind"];
  path where(entry["path"].get<std::string>());
  if (kind == "line") return undo_line(entry, outside, dry_run, status);
  if (kind == "packages") return undo_packages(entry, outside, dry_run, status);
  if (kind == "folder") {
    // A manifest that was tampered with must not lead to the removal of anything else.
    if (where.lexically_normal().parent_path() != folder.lexically_normal())
      return fmt::format("leave {}: it is not below {}", where.string(), folder.string());
    path partial = where;
    partial += ".partial";
    if (!dry_run) (void)outside.files.remove(partial);
    if (!outside.files.state(where).exists) return "";
    if (!dry_run) status = outside.files.remove(where);
    return fmt::format("remove {}", where.string());
  }
  auto content = outside.files.read(where);
  if (!content) return "";
  if (hash_hex(*content) != entry.value("hash", ""))
    return fmt::format("leave {}: it was changed later", where.string());
  if (!dry_run) status = outside.files.remove(where);
  return fmt::format("remove {}", where.string());
}

}  // namespace

Status apply_setup(const SetupPlan& plan, const SetupOptions& options, const Outside& outside,
                   const std::function<void(const std::string&)>& tell) {
  if (plan.actions.empty()) return {};
  bool keeps = std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return action.kind != ActionKind::RemoveFile;
  });
  Manifest manifest{options.folder / kSetupManifest, Json::array()};
  if (keeps) {
    Status made = outside.files.make_directories(options.folder);
    if (!made) {
      made.error().fix = "kiln setup --prefix FOLDER, with a folder that you can write to";
      return made;
    }
    TRY(manifest, Manifest::read(outside, options.folder));
  }
  for (const Action& action : plan.actions) {
    if (tell) tell(action.what);
    Status done = apply_one(action, options, outside, manifest);
    if (done || (action.optional && done.error().fault == Fault::Environment)) {
      if (!done && tell)
        tell(fmt::format("continued without it: {}; {}", done.error().why, done.error().fix));
      continue;
    }
    return done;
  }
  return {};
}

Result<std::vector<std::string>> remove_setup(const path& folder, const Outside& outside,
                                              bool dry_run) {
  std::vector<std::string> lines;
  TRY(Manifest manifest, Manifest::read(outside, folder));
  for (auto entry = manifest.entries.rbegin(); entry != manifest.entries.rend(); ++entry) {
    Status status;
    std::string line = undo(*entry, folder, outside, dry_run, status);
    if (!status) return std::move(status.error());
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (dry_run) return lines;
  CHECK_OK(outside.files.remove(manifest.file));
  if (outside.files.state(folder).is_directory && outside.files.list(folder).empty())
    CHECK_OK(outside.files.remove(folder));
  return lines;
}

}  // namespace kiln::doctor
