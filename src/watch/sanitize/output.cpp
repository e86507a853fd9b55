// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "report/findings.h"

namespace kiln::watch {

void read_source_lines(results::Findings& findings) {
  std::map<std::string, std::map<int64_t, std::vector<results::FindingLine*>>> wanted;
  for (results::Finding& finding : findings.findings) {
    for (results::FindingPlace& place : finding.places) {
      for (results::FindingLine& line : place.stack) {
        if (line.text.empty()) wanted[line.file][line.line].push_back(&line);
      }
    }
  }
  for (auto& [file, lines] : wanted) {
    std::ifstream in(file);
    std::string text;
    for (int64_t number = 1; !lines.empty() && std::getline(in, text); ++number) {
      const auto found = lines.find(number);
      if (found == lines.end()) continue;
      const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
      const size_t end = text.find_last_not_of(" \t\r");
      const std::string bare = begin < text.size() ? text.substr(begin, end + 1 - begin) : "";
      for (results::FindingLine* line : found->second) line->text = bare;
      lines.erase(found);
    }
  }
}

void show_paths_of_here(results::Findings& findings) {
  std::error_code gone;
  results::shorten_paths(findings, std::filesystem::current_path(gone).string(), "");
}

namespace {

using Clock = std::chrono::steady_clock;
// A process may end without a word (_exit, a signal): what is found is written at once. Where that
// takes more than this part of the time, and more than this time, it waits.
constexpr int kPartForWrites = 5;
constexpr auto kFreeForWrites = std::chrono::milliseconds(500);

class Output : public engine::Sink {
 public:
  Output(Collector& collector, std::string folder)
      : collector_(collector), folder_(std::move(folder)) {
    if (!folder_.empty()) collector_.on_more([this] { write_news(false); });
  }

  // Blocks: else a launch that is killed takes its findings along.
  uint32_t wanted() const override {
    return engine::kHostEvents | (folder_.empty() ? 0u : uint32_t{engine::kBlockEvents});
  }
  void on(const engine::LaunchEvent& event) override {
    if (!event.ended) own_process();
    if (event.ended) {
      pending_ |= collector_.times() != written_times_;
      write_news(false);
    }
  }
  void on(const engine::BlockEvent&) override {
    if (!folder_.empty()) write_news(false);
  }
  void on(const engine::HostEvent&) override {
    own_process();
    write_news(false);
  }
  // The process ends.
  void end() {
    if (getpid() != process_) return;  // a child that launched nothing: the parent writes
    collector_.end();
    write_news(true);
    if (folder_.empty()) {
      const std::string text = report::findings_summary(collector_.findings());
      std::fprintf(stderr, "%s", text.c_str());
    }
  }

 private:
  // What the parent of a fork found is for the parent to write.
  void own_process() {
    if (getpid() == process_) return;
    process_ = getpid();
    collector_.forget();
    printed_ = 0;
    written_times_ = collector_.times();
    began_ = Clock::now();
    spent_ = {};
  }

  void write_news(bool at_end) {
    const bool news = collector_.take_news();
    if (folder_.empty()) {
      if (news) print();
      return;
    }
    pending_ |= news;
    if (!at_end && !pending_) return;
    const auto now = Clock::now();
    if (!at_end && spent_ > kFreeForWrites && spent_ * kPartForWrites > now - began_) return;
    pending_ = false;
    written_times_ = collector_.times();
    write_file();
    spent_ += Clock::now() - now;
  }

  void print() {
    results::Findings all = collector_.findings();
    results::Findings fresh;
    for (size_t i = printed_; i < all.findings.size(); ++i)
      fresh.findings.push_back(std::move(all.findings[i]));
    printed_ = all.findings.size();
    read_source_lines(fresh);
    show_paths_of_here(fresh);
    for (const results::Finding& finding : fresh.findings) {
      std::fflush(stdout);
      std::fprintf(stderr, "%s\n", report::finding_text(finding).c_str());
    }
  }

  // Replaced in one step: somebody may read it at any time.
  void write_file() {
    namespace fs = std::filesystem;
    results::Findings all = collector_.findings();
    read_source_lines(all);
    const fs::path to = fs::path(folder_) / fmt::format("{}.json", process_);
    const fs::path made = fs::path(folder_) / fmt::format(".{}.json", process_);
    const std::string text = dump(to_json(all), 1) + "\n";
    std::error_code error;
    {
      std::ofstream out(made, std::ios::binary);
      if (!out.write(text.data(), static_cast<std::streamsize>(text.size())))
        error = std::make_error_code(std::errc::io_error);
    }
    if (!error) fs::rename(made, to, error);
    if (error && !failed_) {
      failed_ = true;
      std::fprintf(stderr,
                   "error: cannot write the findings to %s\n  why: %s\n  fix: name a folder that "
                   "exists and has room\n",
                   to.c_str(), error.message().c_str());
    }
  }

  Collector& collector_;
  std::string folder_;
  pid_t process_ = getpid();
  size_t printed_ = 0;
  uint64_t written_times_ = 0;  // Collector::times() of what was written
  bool pending_ = false, failed_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::duration spent_{};
};

Output* at_end = nullptr;

}  // namespace

std::unique_ptr<engine::Sink> make_output(Collector& collector, const std::string& folder) {
  auto output = std::make_unique<Output>(collector, folder);
  // Watchers live as long as the process, and there is one set of them.
  at_end = output.get();
  results::rules();  // made before the handler: it is destroyed after it has run
  std::atexit([] { at_end->end(); });
  return output;
}

}  // namespace kiln::watch
