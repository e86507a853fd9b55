// SPDX-License-Identifier: Apache-2.0
// How does kiln run several programs side by side, and talk with one of them line by line?
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/env.h"
#include "sys/files.h"

namespace kiln::sys {

struct ChildSpec {
  std::vector<std::string> arguments;  // the first is the program's path
  fs::path directory;                  // empty: this process's
  std::optional<Environment> env;      // empty: this process's
  int niceness = 0;                    // more: it waits for those with less
  bool talks = false;  // say() reaches its stdin, each line of its stdout is an event
};

struct ChildEvent {
  int child = 0;
  bool ended = false;
  std::string line;           // of one that talks, while it runs
  int exit_code = 0;          // 128 + signal for one that a signal ended
  int signal = 0;             // that ended it
  std::string out, last_err;  // what it wrote, of stderr the last 8 KB
};

// All that are left are killed when it goes. One thread, and none of Processes::run meanwhile.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();

  // A number for the child, from 1 on. The child gets SIGTERM when this process dies in any way.
  Result<int> start(const ChildSpec& spec);
  // False: it does not listen any more; its end is an event.
  bool say(int child, std::string_view line);
  void kill(int child, int signal);
  // What happened, or nothing after that time; a signal that was remembered (InterruptScope) ends
  // the wait.
  std::vector<ChildEvent> wait(double seconds);
  size_t running() const { return children_.size(); }

 private:
  struct Child {
    pid_t pid = 0;
    bool talks = false;
    int in = -1, out = -1, err = -1;
    std::string text, errors;
  };
  void read_all(int number, Child& child, std::vector<ChildEvent>& events);
  bool reap(int number, Child& child, std::vector<ChildEvent>& events);

  std::map<int, Child> children_;
  int last_ = 0;
};

}  // namespace kiln::sys
