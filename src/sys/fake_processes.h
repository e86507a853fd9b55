// SPDX-License-Identifier: Apache-2.0
// How is code that starts programs tested without them? With answers written down before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "sys/process.h"

namespace kiln::sys {

class FakeProcesses final : public Processes {
 public:
  // Answers by the whole command line, words joined by blanks.
  std::map<std::string, ProcessResult> answers;
  std::vector<std::string> started;

  Result<ProcessResult> run(const ProcessSpec& spec) override {
    std::string line = text::join(spec.arguments, " ");
    started.push_back(line);
    auto found = answers.find(line);
    if (found == answers.end())
      return Error{Fault::Environment, "cannot start " + line, "there is no such program", ""};
    return found->second;
  }
};

}  // namespace kiln::sys
