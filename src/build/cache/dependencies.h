// SPDX-License-Identifier: Apache-2.0
// What did a step read, and where did its compiler find nothing? If all of it is as it was, the
// step would make the same again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "build/plan/step.h"
#include "sys/files.h"

namespace kiln::build {

// Among the absent: something was read that nobody names. It is there, so that the record never
// holds.
inline constexpr std::string_view kUnknownRead = "/";
inline constexpr std::string_view kUnknownReadText = "what asm() reads is not known";

struct Dependencies {
  // Under canonical names.
  std::map<std::string, std::string> files;  // name -> hash of the content
  // Paths that a header or library found later on would have had to lie at: one that appears there
  // shadows it. Also what __has_include asked for.
  std::vector<std::string> absent;
};

Json to_json(const Dependencies& dependencies);
std::optional<Dependencies> read_dependencies(const Json& json);

// Hashes of files, each read once.
class ContentHashes {
 public:
  explicit ContentHashes(const sys::Files& files) : files_(files) {}
  // Empty for a file that cannot be read.
  const std::string& of(const std::string& path);

 private:
  const sys::Files& files_;
  std::map<std::string, std::string> known_;
};

// The names in a text's #include lines and __has_include questions.
struct IncludeName {
  std::string name;
  bool quoted = false;
  bool operator==(const IncludeName&) const = default;
};
std::vector<IncludeName> include_names(std::string_view text);

// Absolute, as the depfiles of compiler and assembler have them.
struct ReadFiles {
  std::vector<std::string> compiled, assembled;
  bool unknown = false;  // a depfile is missing
};
// `directory`: in which the step's commands ran.
Dependencies collect_dependencies(const sys::Files& files, ContentHashes& hashes, const Step& step,
                                  const ReadFiles& read, const sys::fs::path& directory);

// What is not as it was: "the file x.h changed", "y.h appeared"; nothing when all is.
std::optional<std::string> first_difference(const sys::Files& files, ContentHashes& hashes,
                                            const Step& step, const Dependencies& dependencies);

}  // namespace kiln::build
