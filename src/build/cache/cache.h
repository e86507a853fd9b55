// SPDX-License-Identifier: Apache-2.0
// Where are results of steps kept beyond one build folder? In the user's cache folder, by the hash
// of everything that made them; and at a place that machines share, if one is named.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/cache/entry.h"
#include "build/cache/remote.h"
#include "sys/env.h"
#include "sys/files.h"

namespace kiln::build {

// "5G", "500M", "1000B", "0". Not "5": whoever writes that means gigabytes, and five bytes would
// empty the cache.
std::optional<uint64_t> parse_bytes(std::string_view text);

struct CachePlace {
  sys::fs::path folder;  // KILN_CACHE_DIR, else <cache folder>/store
  uint64_t limit_bytes = 0;
  // Why the folder must not be used ("others may write to it"), or empty.
  std::string refused, fix;
};

// Touches nothing; the folder need not be there. KILN_CACHE_DIR=off turns the cache off: an empty
// folder.
Result<CachePlace> cache_place(const sys::Environment& env);
// The same, and makes the folder if it is not there.
Result<CachePlace> make_cache_place(sys::Files& files, const sys::Environment& env);

enum class Origin { None, Local, Remote };

class Cache {
 public:
  // `down_mark` is a file that tells the other steps of a build that the shared place does not
  // answer: one waits for it, not each.
  static Cache open(sys::Files& files, const sys::Environment& env, sys::fs::path down_mark);

  bool usable() const { return !folder_.empty() || remote_ != nullptr; }
  std::optional<Entry> get(const std::string& key, Origin& origin);
  void put(const Entry& entry);
  // What a person should know: a damaged entry, a folder that cannot be written, a server that does
  // not answer.
  const std::vector<std::string>& notes() const { return notes_; }
  int damaged() const { return damaged_; }

 private:
  explicit Cache(sys::Files& files) : files_(&files) {}
  bool is_own(const sys::fs::path& file);
  std::optional<Entry> get_local(const std::string& key);
  std::optional<Entry> get_remote(const std::string& key);
  void put_local(const std::string& key, const std::string& bytes);
  void remote_failed(const Error& error);

  sys::Files* files_;
  sys::fs::path folder_;
  std::unique_ptr<Remote> remote_;
  RemoteSettings settings_;
  sys::fs::path down_mark_;
  std::vector<std::string> notes_;
  int damaged_ = 0;
};

sys::fs::path entry_path(const sys::fs::path& folder, const std::string& key);

// How often what happened; kept in the cache folder.
struct CacheCounts {
  int64_t local_hits = 0, remote_hits = 0, misses = 0, damaged = 0, evicted = 0;
  int64_t bytes = 0;  // as of the last look, and what was added since
};
CacheCounts read_counts(const sys::Files& files, const sys::fs::path& folder);
// Adds to what is there, under a lock, and removes the entries that were used longest ago if the
// folder has grown over its limit.
Status add_counts(sys::Files& files, const CachePlace& place, const CacheCounts& more);

struct CacheListing {
  uint64_t bytes = 0;
  size_t entries = 0;
};
// Down to `limit_bytes`, the longest unused first.
Result<CacheListing> prune(sys::Files& files, const sys::fs::path& folder, uint64_t limit_bytes,
                           int64_t* removed, bool dry_run = false);

}  // namespace kiln::build
