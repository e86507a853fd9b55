// SPDX-License-Identifier: Apache-2.0
// Where do several machines share what they built?
#include "build/cache/remote.h"

#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "build/cache/entry.h"
#include "build/cache/redis.h"
#include "sys/deadline.h"
#include "sys/guarded_files.h"

namespace kiln::build {

namespace {

constexpr size_t kLeastSecretBytes = 16;

// As much as the entry says it has: others may put there whatever they like.
Result<std::string> read_signed_entry(const sys::Files& files, const sys::fs::path& file,
                                      uint64_t size_bytes) {
  TRY(const std::string beginning, sys::read_beginning(files, file, kEntryBeginningBytes));
  TRY(const uint64_t declared, declared_bytes(beginning));
  const uint64_t wanted = declared + kSignatureBytes;
  if (size_bytes != wanted)
    return Error{Fault::Environment, "a shared cache entry is damaged",
                 fmt::format("it has {} bytes, its header says {}", size_bytes, wanted),
                 "remove it"};
  return sys::read_limited(files, file, {.max_bytes = wanted, .own_only = false});
}

// A folder of a network disk whose server is gone answers never.
class FolderRemote final : public Remote {
 public:
  FolderRemote(sys::Files& files, sys::fs::path folder, double limit_s)
      : files_(files), folder_(std::move(folder)), limit_s_(limit_s) {}

  Result<std::optional<RemoteEntry>> get(const std::string& key) override {
    const sys::Deadline deadline(limit_s_);
    return sys::within(
        deadline,
        [&files = files_, file = file_of(key)]() -> Result<std::optional<RemoteEntry>> {
          const sys::FileState state = files.state(file);
          if (!state.exists) return std::optional<RemoteEntry>();
          auto content = read_signed_entry(files, file, state.size_bytes);
          if (!content) return std::optional(RemoteEntry{"", content.error().why});
          return std::optional(RemoteEntry{std::move(*content), ""});
        },
        late(deadline));
  }

  Status put(const std::string& key, std::string_view bytes) override {
    const sys::Deadline deadline(limit_s_);
    return sys::within(
        deadline,
        [&files = files_, file = file_of(key), content = std::string(bytes)] {
          return files.write(file, content, sys::Durable::No);
        },
        late(deadline));
  }

 private:
  sys::fs::path file_of(const std::string& key) const { return folder_ / key.substr(0, 2) / key; }

  Error late(const sys::Deadline& deadline) const {
    return {Fault::Environment, fmt::format("cannot use {}", folder_.string()),
            fmt::format("no answer within {:.1f} s", deadline.limit_s),
            "KILN_CACHE_TIMEOUT sets the limit"};
  }

  sys::Files& files_;
  sys::fs::path folder_;
  double limit_s_;
};

}  // namespace

std::string shown_place(std::string_view place) {
  const size_t scheme = place.find("://"), at = place.rfind('@');
  if (scheme == std::string_view::npos || at == std::string_view::npos || at < scheme)
    return std::string(place);
  return fmt::format("{}...{}", place.substr(0, scheme + 3), place.substr(at));
}

Result<std::optional<RemoteSettings>> remote_settings(const sys::Files& files,
                                                      const sys::Environment& env) {
  auto place = env.get("KILN_CACHE_REMOTE");
  if (!place) return std::optional<RemoteSettings>();
  RemoteSettings settings{*place, env.get("KILN_CACHE_SECRET").value_or(""), 0.5};
  if (auto file = env.get("KILN_CACHE_SECRET_FILE"); file && settings.secret.empty()) {
    // Who can put a secret of his own there can sign what everybody here then runs.
    if (files.state(*file).others_may_write)
      return Error{Fault::Environment, fmt::format("cannot use the secret in {}", *file),
                   "another user owns the file or can write to it",
                   fmt::format("chmod go-w '{}'", *file)};
    TRY(std::string content, files.read(*file));
    settings.secret = text::trim(content);
  }
  if (settings.secret.size() < kLeastSecretBytes)
    return Error{Fault::Environment,
                 fmt::format("cannot share the cache at {}", shown_place(*place)),
                 settings.secret.empty() ? "there is no secret to authenticate entries with"
                                         : "the secret has fewer than 16 characters",
                 "set KILN_CACHE_SECRET or KILN_CACHE_SECRET_FILE to your team's secret: openssl "
                 "rand -hex 32"};
  if (auto limit = env.get("KILN_CACHE_TIMEOUT")) {
    settings.limit_s = to_number(*limit).value_or(0);
    if (!(settings.limit_s > 0) || settings.limit_s > 60)
      return Error{Fault::Environment, "cannot use KILN_CACHE_TIMEOUT",
                   fmt::format("it is '{}', not a number of seconds above 0 and up to 60", *limit),
                   "unset it"};
  }
  return std::optional<RemoteSettings>(std::move(settings));
}

Result<std::unique_ptr<Remote>> open_remote(sys::Files& files, const RemoteSettings& settings) {
  if (settings.place.starts_with("redis://")) return open_redis(settings);
  if (!settings.place.starts_with('/'))
    return Error{Fault::Environment,
                 fmt::format("cannot share the cache at '{}'", shown_place(settings.place)),
                 "it is neither redis://host:port nor an absolute path",
                 "correct KILN_CACHE_REMOTE"};
  return std::unique_ptr<Remote>(
      std::make_unique<FolderRemote>(files, settings.place, settings.limit_s));
}

}  // namespace kiln::build
