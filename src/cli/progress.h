// SPDX-License-Identifier: Apache-2.0
// How does somebody at a terminal see that kiln is busy, and with what? By one line that goes away
// again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kiln::cli {

// The file descriptor of a terminal that another process looks at, for commands it starts with
// pipes: kiln.load shows the progress of its build this way.
inline constexpr const char* kProgressVariable = "KILN_PROGRESS_FD";

class Progress {
 public:
  Progress(int fd, int columns);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // At once; an empty one takes the line away.
  void show(const std::string& line);
  // Once it takes more than a second: "WHAT, 3 s". Until something else is said.
  void doing(std::string what);
  // Something else is about to be printed; the line comes back with the next word or second.
  void clear();
  // For good.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const std::string& line);  // these two under mutex_
  void erase();
  void tick();

  const int fd_;
  const size_t columns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool drawn_ = false, ended_ = false;
  std::string what_;
  Clock::time_point since_;
  std::thread ticker_;
};

}  // namespace kiln::cli
