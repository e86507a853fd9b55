// SPDX-License-Identifier: Apache-2.0
#include "watch/asked.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "watch/fanout.h"
#include "watch/line_counts.h"
#include "watch/trace.h"

namespace kiln::watch {
namespace {

std::FILE* open_for(const std::string& path, const char* what) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (!file) {
    std::fprintf(stderr,
                 "error: cannot write %s to %s\n  why: %s\n  fix: name a file in a folder that you "
                 "can write to\n",
                 what, path.c_str(), std::strerror(errno));
  }
  return file;
}

void say_write_failed(const std::string& path) {
  std::fprintf(stderr, "error: cannot write to %s\n  why: %s\n  fix: free some room there\n",
               path.c_str(), std::strerror(errno));
}

std::unique_ptr<engine::Sink> trace_to(const std::string& path, uint64_t limit) {
  std::FILE* file = open_for(path, "the accesses");
  if (!file) return nullptr;
  auto write = [file, path, failed = false](std::string_view text) mutable {
    const bool launch_ended = text.find("\"ended\":true") != text.npos;
    const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                      (!launch_ended || std::fflush(file) == 0);
    if (!good && !failed) say_write_failed(path);
    failed |= !good;
  };
  return std::make_unique<AccessTrace>(write, limit);
}

std::unique_ptr<engine::Sink> lines_to(const std::string& path) {
  if (std::FILE* file = open_for(path, "the counts of lines")) {
    std::fclose(file);
  } else {
    return nullptr;
  }
  return std::make_unique<LineCounts>([path](const LineCounts::Table& table) {
    // The newest counts take the place of those before.
    std::FILE* file = std::fopen(path.c_str(), "wbe");
    const std::string text = to_json(table);
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if ((file && std::fclose(file) != 0) || !written) say_write_failed(path);
  });
}

}  // namespace

engine::Sink* make_watchers(const Asked& asked) {
  auto all = std::make_unique<Fanout>();
  if (!asked.accesses.empty()) {
    if (auto trace = trace_to(asked.accesses, asked.accesses_limit)) all->add(std::move(trace));
  }
  if (!asked.lines.empty()) {
    if (auto lines = lines_to(asked.lines)) all->add(std::move(lines));
  }
  return all->empty() ? nullptr : all.release();
}

}  // namespace kiln::watch
