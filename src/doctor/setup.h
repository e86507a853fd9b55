// SPDX-License-Identifier: Apache-2.0
// How does a machine become ready? A plan of actions made from facts; carried out one by one, each
// written down before it begins, so that all of it can be undone.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/gather.h"

namespace kiln::doctor {

struct SetupOptions {
  sys::fs::path folder;                // where everything goes
  std::string arch;                    // empty: what is set, the GPU here, or 8.0
  int jobs = 0;                        // 0: what fits
  std::string cache;                   // a folder for kiln's cache; empty: where it is
  std::string torch;                   // "cpu", "cuda" or a version; empty: none is needed
  std::string find_links;              // a folder with wheels, for a machine without network
  bool conda = false;                  // snippets for the active conda environment
  bool shells = false;                 // a line in ~/.bashrc and ~/.zshrc
  std::optional<std::set<Cure>> only;  // of `kiln doctor --fix`: no more than these
};

enum class ActionKind { Pip, Torch, Folder, File, Line, RemoveFile };

struct Action {
  ActionKind kind = ActionKind::File;
  std::string what;                   // "install ninja with pip into ..."
  sys::fs::path path;                 // the folder or file that it makes
  std::string content;                // of a file or line
  std::vector<std::string> packages;  // of pip
  std::string python;                 // whose pip
  std::string index;                  // of packages; empty: PyPI
  sys::fs::path result;               // a file that is there when it went well
  bool optional = false;              // where it fails the rest is done all the same
};

struct SetupPlan {
  std::vector<std::string> found;  // "ninja 1.13.0 at /usr/bin/ninja"
  std::vector<Action> actions;     // empty: all is there
  sys::fs::path env_file;
};

Result<SetupPlan> plan_setup(const Facts& facts, const SetupOptions& options,
                             const Outside& outside);

// `tell` hears of each action as it begins.
Status apply_setup(const SetupPlan& plan, const SetupOptions& options, const Outside& outside,
                   const std::function<void(const std::string&)>& tell);

// What `apply_setup` did in this folder is undone, the last first; a file that was changed since
// stays. Gives lines for people. With `dry_run` nothing is touched.
Result<std::vector<std::string>> remove_setup(const sys::fs::path& folder, const Outside& outside,
                                              bool dry_run);

// The env file, for bash and zsh.
struct EnvValues {
  std::vector<std::string> path;  // folders for PATH
  std::string cuda_home, arch, cache;
  int jobs = 0;
  bool ccache_depend = false;
};
std::string env_file_text(const EnvValues& values, const std::string& file);
// What deactivate.d has to unset.
std::string conda_deactivate_text();
// MAX_JOBS that an env file sets; 0: none.
int jobs_in_env_file(std::string_view text);

inline constexpr const char* kSetupManifest = "setup.json";

}  // namespace kiln::doctor
