// SPDX-License-Identifier: Apache-2.0
#include "watch/asked.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "watch/counters/counters.h"
#include "watch/fanout.h"
#include "watch/fidelity.h"
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
  std::fprintf(stderr, "error: cannot write to %s\n  why: %s\n  fix: free some space there\n",
               path.c_str(), std::strerror(errno));
}

// The file of a trace. A failure to write it is reported once.
class TraceFile {
 public:
  TraceFile(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() { check(std::fclose(file_) == 0); }
  void write(std::string_view text) {
    check(std::fwrite(text.data(), 1, text.size(), file_) == text.size());
  }
  void flush() { check(std::fflush(file_) == 0); }

 private:
  void check(bool good) {
    if (!good && !failed_) say_write_failed(path_);
    failed_ |= !good;
  }

  std::FILE* file_;
  std::string path_;
  bool failed_ = false;
};

std::unique_ptr<engine::Sink> trace_to(const std::string& path, uint64_t limit) {
  std::FILE* file = open_for(path, "the accesses");
  if (!file) return nullptr;
  auto trace = std::make_shared<TraceFile>(file, path);
  // A process may end abruptly: what a launch did is in the file when the launch is over.
  return std::make_unique<AccessTrace>([trace](std::string_view text) { trace->write(text); },
                                       [trace] { trace->flush(); }, limit);
}

std::unique_ptr<engine::Sink> lines_to(const std::string& path) {
  if (std::FILE* file = open_for(path, "the line counts")) {
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

// "132:52428800"; what is missing stays as it is.
Caches caches_from(const std::string& text) {
  Caches caches;
  char* end = nullptr;
  const uint64_t multiprocessors = std::strtoull(text.c_str(), &end, 10);
  if (multiprocessors > 0) caches.multiprocessors = static_cast<uint32_t>(multiprocessors);
  if (*end == ':') caches.l2_bytes = std::strtoull(end + 1, nullptr, 10);
  return caches;
}

}  // namespace

std::unique_ptr<engine::Sink> make_counters(const std::string& path, const std::string& caches) {
  std::FILE* file = open_for(path, "the counters");
  if (!file) return nullptr;
  auto lines = std::make_shared<TraceFile>(file, path);
  const auto write = [lines](const std::string& line) {
    lines->write(line);
    lines->flush();
  };
  return std::make_unique<Counters>(write, caches_from(caches), KILN_VERSION_STRING);
}

engine::Sink* make_watchers(const Asked& asked, std::string* problem) {
  auto all = std::make_unique<Fanout>();
  if (!asked.accesses.empty()) {
    if (auto trace = trace_to(asked.accesses, asked.accesses_limit)) all->add(std::move(trace));
  }
  if (!asked.lines.empty()) {
    if (auto lines = lines_to(asked.lines)) all->add(std::move(lines));
  }
  if (!asked.counters.empty()) {
    if (auto counters = make_counters(asked.counters, asked.caches)) all->add(std::move(counters));
  }
  if (asked.fidelity) all->add(make_fidelity());
  add_sanitizer(asked.sanitize, *all, problem);
  return all->empty() ? nullptr : Fanout::simplest(std::move(all)).release();
}

}  // namespace kiln::watch
