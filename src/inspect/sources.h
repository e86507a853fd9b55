// SPDX-License-Identifier: Apache-2.0
// Which source files may be shown next to the code? A binary names them, and it may be anybody's:
// it could name a key or a password, and a page is made to be sent to others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sys/files.h"

namespace kiln::inspect {

struct SourceScope {
  std::vector<sys::fs::path> projects;  // of these, what has the name of a source
  std::vector<sys::fs::path> named;     // of these, everything: the user named them
};

// Files are read once, when they are first asked for: regular ones of a bounded size, which are in
// the scope when every link is resolved. Nothing under /dev, /proc or /sys is looked at.
class Sources {
 public:
  Sources(const sys::Files& files, SourceScope scope);

  struct Text {
    std::vector<std::string> lines;
    bool shown = false;
    std::string why;  // not shown: "it is outside the project"
  };
  // `name` as a line table has it: absolute, relative to a folder of the scope, or below the
  // /proc/self/cwd that kiln compiles with.
  const Text& of(const std::string& name);
  // For a person: what was left out though it may be there, and how to include it; empty when
  // nothing was.
  std::string note() const;

 private:
  Text read(const std::string& name) const;
  Text read_candidate(const sys::fs::path& file) const;

  const sys::Files& files_;
  SourceScope scope_;  // links resolved
  std::map<std::string, Text> known_;
  std::vector<std::string> left_out_;
};

}  // namespace kiln::inspect
