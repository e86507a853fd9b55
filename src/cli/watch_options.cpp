// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_options.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace kiln::cli {

void add_watch_options(CLI::App& app, WatchOptions& options) {
  app.add_option("--accesses", options.accesses,
                 "Write every memory access, with its source line, to this file")
      ->type_name("FILE.jsonl");
  app.add_option("--accesses-limit", options.accesses_limit,
                 "Write at most N of them (default: 1000000)")
      ->type_name("N");
  app.add_option("--lines", options.lines,
                 "Write how many instructions each source line ran to this file")
      ->type_name("FILE.json");
  app.add_option("--schedule", options.schedule,
                 "Run blocks and warps in another order, the same for each N (default: 0)")
      ->type_name("N");
}

namespace {

// Before anything is built: the engine could only say it with the result.
Status check_writable(const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app)) return {};
  return Error{Fault::Usage, "cannot write to " + path, std::strerror(errno),
               "name a file in a folder that you can write to"};
}

}  // namespace

Status apply_watch_options(const WatchOptions& options, const std::string& device) {
  if (!options.any()) return {};
  if (device == "cuda") {
    return Error{Fault::Usage, "cannot watch a call on the GPU",
                 "--accesses, --lines and --schedule are options of the engine",
                 "leave out --device cuda"};
  }
  CHECK_OK(check_writable(options.accesses));
  CHECK_OK(check_writable(options.lines));
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  set("KILN_DEVICE", "engine");
  if (!options.accesses.empty()) set("KILN_ENGINE_ACCESSES", options.accesses);
  if (options.accesses_limit)
    set("KILN_ENGINE_ACCESSES_LIMIT", std::to_string(*options.accesses_limit));
  if (!options.lines.empty()) set("KILN_ENGINE_LINES", options.lines);
  if (options.schedule) set("KILN_ENGINE_SCHEDULE", std::to_string(*options.schedule));
  return {};
}

}  // namespace kiln::cli
