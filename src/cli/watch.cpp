// SPDX-License-Identifier: Apache-2.0
// How does --watch run a command again whenever a file it was built from is saved?
#include "cli/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/text.h"
#include "build/run/state.h"
#include "sys/printable.h"
#include "sys/process.h"
#include "sys/terminal.h"

namespace kiln::cli {

namespace {

using sys::fs::path;

// Short enough that nobody waits, long enough that it costs nothing.
constexpr auto kPause = std::chrono::milliseconds(50);
// Some editors empty a file before they write it: what is being saved is left alone for that time.
constexpr auto kSaved = std::chrono::milliseconds(10);

// Compilers' own headers change when somebody installs something; the next build sees that too.
// Next to a target everything is the user's, wherever that is.
bool is_edited_by_people(const std::string& file, const std::set<std::string>& targets) {
  for (const std::string& target : targets)
    if (file.starts_with(target + "/") || path(file).parent_path() == path(target).parent_path())
      return true;
  return !file.starts_with("/usr/") && !file.starts_with("/opt/") && !file.starts_with("/lib");
}

void add_sources_in(const path& folder, std::set<std::string>& files) {
  for (const std::string& name : sys::real_files().list(folder)) {
    std::string ending = path(name).extension().string();
    if (ending == ".cu" || ending == ".cuh" || ending == ".h" || ending == ".cpp" ||
        ending == ".toml" || ending == ".py")
      files.insert((folder / name).string());
  }
}

// One path a line: a state file of a build, a source, or a folder of sources.
std::set<std::string> watched(const path& list) {
  std::set<std::string> files, targets;
  auto text = sys::real_files().read(list);
  if (!text) return files;
  for (std::string_view line : text::lines(*text)) {
    path named(line);
    if (named.filename() != build::kStateFile) {
      targets.insert(named.string());
      if (sys::real_files().state(named).is_directory) {
        add_sources_in(named, files);
        add_sources_in(named / "tests", files);
      } else {
        files.insert(named.string());
      }
      continue;
    }
    auto content = sys::real_files().read(named);
    auto state = content ? build::parse_state(*content) : std::nullopt;
    if (!state) continue;
    for (const build::ReadFile& file : state->reads.files)
      if (is_edited_by_people(file.path, targets) && file.path != state->result)
        files.insert(file.path);
  }
  return files;
}

std::map<std::string, sys::FileState> look(const std::set<std::string>& files) {
  std::map<std::string, sys::FileState> seen;
  for (const std::string& file : files) seen[file] = sys::real_files().state(file);
  return seen;
}

void wait_until_saved(const std::string& file) {
  for (sys::FileState state = sys::real_files().state(file); !sys::pending_interrupt();) {
    std::this_thread::sleep_for(kSaved);
    const sys::FileState now = sys::real_files().state(file);
    if (now == state) return;
    state = now;
  }
}

// The first that changed, once it is saved; empty when interrupted.
std::string wait_for_change(const std::map<std::string, sys::FileState>& before) {
  while (!sys::pending_interrupt()) {
    for (const auto& [file, state] : before) {
      if (sys::real_files().state(file) == state) continue;
      wait_until_saved(file);
      return sys::pending_interrupt() ? "" : file;
    }
    std::this_thread::sleep_for(kPause);
  }
  return "";
}

}  // namespace

Result<int> watch(const std::vector<std::string>& words, const sys::Environment& env) {
  sys::InterruptScope interrupts;
  TRY(path kiln, sys::own_executable());
  // Of this user alone: whoever else could write to the list would choose what is watched, and
  // where it is written.
  TRY(const path folder, sys::make_temporary_folder("kiln-watch"));
  const std::unique_ptr<const path, void (*)(const path*)> gone(
      &folder, [](const path* used) { (void)sys::real_files().remove(*used); });
  const path list = folder / "list";
  sys::ProcessSpec spec;
  spec.arguments = {kiln.string()};
  auto end_of_options = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != words.end(); ++word)
    if (*word != "--watch" || word > end_of_options) spec.arguments.push_back(*word);
  sys::Environment child_env = env;
  child_env.set(kWatchVariable, list.string());
  spec.env = std::move(child_env);
  spec.capture = false;
  std::set<std::string> files;
  for (;;) {
    CHECK_OK(sys::real_files().remove(list));
    auto before = look(files);
    auto result = sys::real_processes().run(spec);
    std::set<std::string> now = watched(list);
    // A build that failed names its targets alone: what the last good one read stays watched.
    files.insert(now.begin(), now.end());
    if (!result && result.error().fault != Fault::Interrupted) return std::move(result.error());
    if (sys::pending_interrupt()) break;
    if (files.empty())
      return Error{Fault::Usage, "there is nothing to watch", "the command built nothing",
                   "leave out --watch"};
    // What was saved while the command ran counts too.
    auto seen = look(files);
    for (const auto& [file, state] : before) seen[file] = state;
    sys::write_err(fmt::format("watching {} files (Ctrl-C to stop)\n", files.size()));
    std::string changed = wait_for_change(seen);
    if (changed.empty()) break;
    sys::write_err(sys::printable(changed) + " changed\n");
  }
  return sys::interrupted_error();
}

void tell_watcher(const sys::Environment& env, const build::Request& request,
                  const path& build_dir) {
  auto list = env.get(kWatchVariable);
  if (!list) return;
  auto former = sys::real_files().read(*list);
  std::string text = former ? *former : "";
  for (const std::string& target : request.targets)
    text += ((request.directory / target).lexically_normal()).string() + "\n";
  if (request.targets.empty()) text += request.directory.string() + "\n";
  if (!build_dir.empty()) text += (build_dir / build::kStateFile).string() + "\n";
  (void)sys::real_files().write(*list, text, sys::Durable::No);
}

}  // namespace kiln::cli
