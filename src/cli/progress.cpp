// SPDX-License-Identifier: Apache-2.0
// How does somebody at a terminal see that kiln is busy, and with what?
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "sys/printable.h"

namespace kiln::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);  // nobody wonders before that
constexpr auto kTick = std::chrono::milliseconds(500);
constexpr std::string_view kErase = "\r\x1b[K";

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count <= 0) return;  // a line that is lost does no harm
    text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

Progress::Progress(int fd, int columns)
    : fd_(fd), columns_(static_cast<size_t>(std::max(columns - 1, 20))) {}

Progress::~Progress() { end(); }

void Progress::show(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  what_.clear();
  line.empty() ? erase() : draw(line);
}

void Progress::doing(std::string what) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  erase();
  what_ = std::move(what);
  since_ = Clock::now();
  if (ticker_.joinable()) return;
  // Signals are for the thread that waits for children: its poll has to end.
  sigset_t all, former;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  ticker_ = std::thread([this] { tick(); });
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    erase();
    ended_ = true;
    what_.clear();
    changed_.notify_all();
  }
  if (ticker_.joinable()) ticker_.join();
}

void Progress::draw(const std::string& line) {
  write_all(fd_, std::string(kErase) + sys::printable(line).substr(0, columns_));
  drawn_ = true;
}

void Progress::erase() {
  if (std::exchange(drawn_, false)) write_all(fd_, kErase);
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait_for(lock, kTick);
    const auto passed = Clock::now() - since_;
    if (ended_ || what_.empty() || passed < kPatience) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
    draw(fmt::format("{}, {} s", what_, seconds));
  }
}

}  // namespace kiln::cli
