// SPDX-License-Identifier: Apache-2.0
// What did a step read, and where did its compiler find nothing? The one record of it. If all of
// it is as it was, the step would make the same again.
//
//   kiln-reads 1 <number of lines>
//   <size> <mtime_ns> <ctime_ns> <inode> <path>   a file by its state: on this disk, without a read
//   #<hash> <path>                                a file by its content: on any machine
//   - <path>                                      a path where nothing was
//
// obj/<key>.reads has states and decides whether a step is up to date; the union over all steps, in
// the state file, whether a build is. The cache's manifests have contents under canonical names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "build/plan/step.h"
#include "sys/files.h"

namespace kiln::build {

// Among the absent: something was read that nobody names. It is there, so that the record never
// holds.
inline constexpr std::string_view kUnknownRead = "/";

struct ReadFile {
  std::string path;
  sys::FileState state = {};  // of a record by content: nothing
  std::string hash = {};      // of a record by state: empty
};

struct Reads {
  std::vector<ReadFile> files;  // each once
  // Paths that a header or library found later on would have had to be at: one that appears there
  // shadows it. Also what __has_include asked for.
  std::vector<std::string> absent;

  bool are_known() const;  // nothing unknown was read
};

enum class By { State, Content };
std::string write_reads(const Reads& reads, By by);
// Nothing when the text is of another version or damaged.
std::optional<Reads> parse_reads(std::string_view text);

// Sorted by the names that they get: a record is the same text in every checkout.
Reads with_canonical_names(const std::vector<Root>& roots, Reads reads);
Reads with_real_names(const std::vector<Root>& roots, Reads reads);

// {"files": {name: hash}, "absent": [name]}, for people who ask about an entry. The entry has the
// record as text: an object with a name per header takes a search per name to fill.
Json shown(const Reads& reads);

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

// States of files, each looked at once.
class FileStates {
 public:
  explicit FileStates(const sys::Files& files) : files_(files) {}
  const sys::FileState& of(const std::string& path);

 private:
  const sys::Files& files_;
  std::unordered_map<std::string, sys::FileState> known_;
};

// Fills in the states. False when a file is gone, or changed at `begun_ns` or later by the disk's
// clock: then nobody knows which of its contents was read, and the record is worth nothing.
bool look_at_states(const sys::Files& files, int64_t begun_ns, Reads& reads);

enum class Change { Changed, Gone, Appeared, Unknown };
struct Difference {
  std::string path;
  Change change = Change::Changed;
  bool operator==(const Difference&) const = default;
};
// "inc/a.h changed".
std::string sentence(const Difference& difference);

// Size, both times and inode.
bool is_same(const sys::FileState& a, const sys::FileState& b);

// What is not as it was: by the states in the record, or by its contents.
std::optional<Difference> first_change(const sys::Files& files, const Reads& reads);
std::optional<Difference> first_change(FileStates& states, const Reads& reads);
std::optional<Difference> first_difference(const sys::Files& files, ContentHashes& hashes,
                                           const Reads& reads);

}  // namespace kiln::build
