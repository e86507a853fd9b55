// SPDX-License-Identifier: Apache-2.0
// Where are results of steps kept beyond one build folder?
//
//   <folder>/entries/ab/abcdef...   one file an entry, renamed into place whole
//   <folder>/counts.json            under <folder>/lock
#include "build/cache/cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "project/home.h"
#include "sys/access.h"
#include "sys/guarded_files.h"
#include "sys/lock.h"

namespace kiln::build {

namespace {

using sys::fs::path;

constexpr uint64_t kDefaultLimitBytes = uint64_t{5} << 30;
// A damaged file must not make a sum overflow.
constexpr int64_t kMostOfACount = int64_t{1} << 60;

Result<CachePlace> named_place(const sys::Environment& env) {
  CachePlace place;
  auto named = env.get("KILN_CACHE_DIR");
  if (named && *named == "off") return place;
  if (named) {
    place.folder = *named;
    if (!place.folder.is_absolute())
      return Error{Fault::Environment, "cannot use KILN_CACHE_DIR",
                   fmt::format("'{}' is not an absolute path", *named),
                   "give an absolute path, or off"};
  } else {
    TRY(path cache, project::cache_folder(env));
    place.folder = cache / "store";
  }
  place.limit_bytes = kDefaultLimitBytes;
  if (auto limit = env.get("KILN_CACHE_SIZE")) {
    auto bytes = parse_bytes(*limit);
    if (!bytes)
      return Error{Fault::Environment, "cannot use KILN_CACHE_SIZE",
                   fmt::format("it is '{}', not a size with a unit such as 5G or 500M", *limit),
                   "unset it, or correct it"};
    place.limit_bytes = *bytes;
  }
  return place;
}

void refuse_what_others_write(CachePlace& place) {
  auto exposed = sys::exposure_of(place.folder);
  if (!exposed) return;
  place.refused = exposed->why;
  place.fix = exposed->fix + "; or set KILN_CACHE_DIR to a folder that you own";
}

// Of the local cache: as much as the entry says it has, and of this user alone. A state that was
// looked at before.
Result<std::string> read_own_entry(const sys::Files& files, const path& file, uint64_t size_bytes) {
  TRY(const std::string beginning, sys::read_beginning(files, file, kEntryBeginningBytes));
  TRY(const uint64_t declared, declared_bytes(beginning));
  if (declared != size_bytes)
    return Error{Fault::Environment, "a cache entry is damaged",
                 fmt::format("it has {} bytes, its header says {}", size_bytes, declared),
                 "kiln cache clear"};
  return sys::read_limited(files, file, {.max_bytes = declared, .own_only = true});
}

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  uint64_t unit = 1;
  text = text::trim(text);
  if (text != "0" && text.find_first_of("BKMGT") == text.npos) return std::nullopt;
  if (text.ends_with('B')) text.remove_suffix(1);
  for (auto [letter, shift] : {std::pair{'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}})
    if (text.ends_with(letter)) {
      unit = uint64_t{1} << shift;
      text.remove_suffix(1);
      break;
    }
  auto value = text::to_int(text);
  int64_t bytes = 0;  // sizes are added and compared as signed numbers
  if (!value || *value < 0 || __builtin_mul_overflow(*value, static_cast<int64_t>(unit), &bytes))
    return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

path entry_path(const path& folder, const std::string& key) {
  return folder / "entries" / key.substr(0, 2) / key;
}

Result<CachePlace> cache_place(const sys::Environment& env) {
  TRY(CachePlace place, named_place(env));
  if (!place.folder.empty()) refuse_what_others_write(place);
  return place;
}

Result<CachePlace> make_cache_place(sys::Files& files, const sys::Environment& env) {
  TRY(CachePlace place, named_place(env));
  if (place.folder.empty()) return place;
  if (auto made = files.make_private_directory(place.folder); !made) {
    place.refused = made.error().why;
    place.fix = made.error().fix;
    return place;
  }
  refuse_what_others_write(place);
  return place;
}

Cache Cache::open(sys::Files& files, const sys::Environment& env, path down_mark) {
  Cache cache(files);
  cache.down_mark_ = std::move(down_mark);
  auto place = make_cache_place(files, env);
  if (!place)
    cache.notes_.push_back(
        fmt::format("the cache is not used: {}: {}", place.error().what, place.error().why));
  else if (!place->refused.empty())
    cache.notes_.push_back(fmt::format("the cache {} is not used: {}; {}", place->folder.string(),
                                       place->refused, place->fix));
  else
    cache.folder_ = place->folder;
  if (place && place->folder.empty()) return cache;  // off: not shared either
  auto settings = remote_settings(files, env);
  if (!settings) {
    cache.remote_failed(settings.error());
  } else if (*settings && !files.state(cache.down_mark_).exists) {
    cache.settings_ = **settings;
    auto remote = open_remote(files, cache.settings_);
    if (remote)
      cache.remote_ = std::move(*remote);
    else
      cache.remote_failed(remote.error());
  }
  return cache;
}

// Said by the first step that meets it.
void Cache::remote_failed(const Error& error) {
  remote_.reset();
  if (files_->state(down_mark_).exists) return;
  (void)files_->write(down_mark_, "", sys::Durable::No);
  notes_.push_back(fmt::format("the shared cache is not used: {}: {}", error.what, error.why));
}

// Entries of this user may be in a folder that was made when others could write to it.
bool Cache::is_own(const path& file) {
  if (folder_.empty()) return false;
  auto exposed = sys::exposure_of(file.parent_path(), folder_);
  if (!exposed) return true;
  notes_.push_back(fmt::format("the cache {} is not used: {}; {}", folder_.string(), exposed->why,
                               exposed->fix));
  folder_.clear();
  return false;
}

std::optional<Entry> Cache::get_local(const std::string& key) {
  if (folder_.empty()) return std::nullopt;
  const path file = entry_path(folder_, key);
  const sys::FileState state = files_->state(file);
  if (!state.exists || !is_own(file)) return std::nullopt;
  auto bytes = read_own_entry(*files_, file, state.size_bytes);
  auto entry = bytes ? read_entry(*bytes, key) : Result<Entry>(bytes.error());
  if (entry) {
    files_->touch(file);
    return std::move(*entry);
  }
  if (!files_->state(file).exists) return std::nullopt;  // cleared meanwhile
  ++damaged_;
  notes_.push_back(fmt::format("a cache entry was damaged and is being rebuilt: {} ({})",
                               file.string(), entry.error().why));
  (void)files_->remove(file);
  return std::nullopt;
}

std::optional<Entry> Cache::get(const std::string& key, Origin& origin) {
  origin = Origin::None;
  if (auto entry = get_local(key)) {
    origin = Origin::Local;
    return entry;
  }
  if (auto entry = get_remote(key)) {
    origin = Origin::Remote;
    return entry;
  }
  return std::nullopt;
}

std::optional<Entry> Cache::get_remote(const std::string& key) {
  if (!remote_) return std::nullopt;
  auto answer = remote_->get(key);
  if (!answer) {
    remote_failed(answer.error());
    return std::nullopt;
  }
  if (!*answer) return std::nullopt;
  const RemoteEntry& found = **answer;
  auto bytes = found.damage.empty()
                   ? verified(found.bytes, key, settings_.secret)
                   : Result<std::string>(Error{Fault::Environment, "", found.damage, ""});
  auto entry = bytes ? read_entry(*bytes, key) : Result<Entry>(bytes.error());
  if (!entry) {
    ++damaged_;
    notes_.push_back(fmt::format("a shared cache entry is not used: {} (key {})", entry.error().why,
                                 key.substr(0, 12)));
    return std::nullopt;
  }
  put_local(key, *bytes);
  return std::move(*entry);
}

void Cache::put(const Entry& entry) {
  if (!usable()) return;
  std::string bytes = write_entry(entry);
  if (bytes.size() > kMaxEntryBytes) {
    notes_.push_back(
        fmt::format("the cache cannot store {}: it has {} bytes", entry.what, bytes.size()));
    return;
  }
  put_local(entry.key, bytes);
  if (!remote_) return;
  if (auto put = remote_->put(entry.key, sign(bytes, entry.key, settings_.secret)); !put)
    remote_failed(put.error());
}

void Cache::put_local(const std::string& key, const std::string& bytes) {
  const path file = folder_.empty() ? path() : entry_path(folder_, key);
  if (file.empty() || !is_own(file)) return;
  auto written = sys::write_protected(*files_, file, bytes, sys::Durable::No);
  if (written) return;
  notes_.push_back(fmt::format("the cache cannot be written: {}: {}", written.error().what,
                               written.error().why));
  folder_.clear();
}

CacheCounts read_counts(const sys::Files& files, const path& folder) {
  CacheCounts counts;
  auto text =
      sys::read_limited(files, folder / "counts.json", {.max_bytes = 4096, .own_only = true});
  auto json = text ? parse_json(*text, "counts") : Result<Json>(Json::object());
  if (!json || !json->is_object()) return counts;
  auto number = [&](const char* name) {
    auto found = json->find(name);
    const int64_t value =
        found != json->end() && found->is_number_integer() ? found->get<int64_t>() : 0;
    return value < 0 || value > kMostOfACount ? 0 : value;
  };
  return {number("local_hits"), number("remote_hits"), number("misses"),
          number("damaged"),    number("evicted"),     number("bytes")};
}

Status add_counts(sys::Files& files, const CachePlace& place, const CacheCounts& more) {
  TRY(auto lock, sys::FileLock::acquire(place.folder / "lock", {}, sys::FileLock::Users::Owner));
  CacheCounts now = read_counts(files, place.folder);
  now.local_hits += more.local_hits;
  now.remote_hits += more.remote_hits;
  now.misses += more.misses;
  now.damaged += more.damaged;
  now.bytes += more.bytes;
  if (now.bytes > static_cast<int64_t>(place.limit_bytes)) {
    // To nine tenths: else every further entry would look through all of them again.
    int64_t removed = 0;
    TRY(CacheListing left, prune(files, place.folder, place.limit_bytes / 10 * 9, &removed));
    now.bytes = static_cast<int64_t>(left.bytes);
    now.evicted += removed;
  }
  return sys::write_protected(files, place.folder / "counts.json",
                              dump({{"local_hits", now.local_hits},
                                    {"remote_hits", now.remote_hits},
                                    {"misses", now.misses},
                                    {"damaged", now.damaged},
                                    {"evicted", now.evicted},
                                    {"bytes", now.bytes}}),
                              sys::Durable::No);
}

Result<CacheListing> prune(sys::Files& files, const path& folder, uint64_t limit_bytes,
                           int64_t* removed, bool dry_run) {
  struct Old {
    int64_t used_ns;
    uint64_t bytes;
    path file;
  };
  std::vector<Old> all;
  CacheListing listing;
  for (const std::string& group : files.list(folder / "entries"))
    for (const std::string& name : files.list(folder / "entries" / group)) {
      path file = folder / "entries" / group / name;
      sys::FileState state = files.state(file);
      all.push_back({state.mtime_ns, state.size_bytes, file});
      listing.bytes += state.size_bytes;
    }
  std::sort(all.begin(), all.end(),
            [](const Old& a, const Old& b) { return a.used_ns < b.used_ns; });
  listing.entries = all.size();
  for (const Old& old : all) {
    if (listing.bytes <= limit_bytes) break;
    if (!dry_run) CHECK_OK(files.remove(old.file));
    listing.bytes -= old.bytes;
    --listing.entries;
    if (removed) ++*removed;
  }
  return listing;
}

}  // namespace kiln::build
