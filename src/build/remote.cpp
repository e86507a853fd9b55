// SPDX-License-Identifier: Apache-2.0
// Where do several machines share what they built?
#include "build/remote.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/number.h"
#include "base/text.h"
#include "build/redis.h"

namespace kiln::build {

namespace {

constexpr size_t kLeastSecretBytes = 16;

// A folder of a network disk whose server is gone answers never: the call waits in a thread of its own, which is left
// behind when the time is over.
class FolderRemote final : public Remote {
 public:
  FolderRemote(sys::Files& files, sys::fs::path folder, double limit_s)
      : files_(files), folder_(std::move(folder)), limit_s_(limit_s) {}

  Result<std::optional<std::string>> get(const std::string& key) override {
    using Answer = Result<std::optional<std::string>>;
    return bounded<Answer>([&files = files_, file = file_of(key)]() -> Answer {
      if (!files.state(file).exists) return std::optional<std::string>();
      auto content = files.read(file);
      if (!content) return std::move(content.error());
      return std::optional<std::string>(std::move(*content));
    });
  }

  Status put(const std::string& key, std::string_view bytes) override {
    return bounded<Status>([&files = files_, file = file_of(key), content = std::string(bytes)] {
      return files.write(file, content, sys::Durable::No);
    });
  }

 private:
  sys::fs::path file_of(const std::string& key) const { return folder_ / key.substr(0, 2) / key; }

  template <class Answer, class Work>
  Answer bounded(Work work) {
    auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> answer = promise->get_future();
    std::thread([promise, work = std::move(work)] { promise->set_value(work()); }).detach();
    if (answer.wait_for(std::chrono::duration<double>(limit_s_)) != std::future_status::ready)
      return Error{Fault::Environment, fmt::format("cannot use {}", folder_.string()),
                   fmt::format("no answer within {:.1f} s", limit_s_), "KILN_CACHE_TIMEOUT allows more"};
    return answer.get();
  }

  sys::Files& files_;
  sys::fs::path folder_;
  double limit_s_;
};

}  // namespace

Result<std::optional<RemoteSettings>> remote_settings(const sys::Files& files, const sys::Environment& env) {
  auto place = env.get("KILN_CACHE_REMOTE");
  if (!place) return std::optional<RemoteSettings>();
  RemoteSettings settings{*place, env.get("KILN_CACHE_SECRET").value_or(""), 0.5};
  if (auto file = env.get("KILN_CACHE_SECRET_FILE"); file && settings.secret.empty()) {
    TRY(std::string content, files.read(*file));
    settings.secret = text::trim(content);
  }
  if (settings.secret.size() < kLeastSecretBytes)
    return Error{Fault::Environment, fmt::format("cannot share the cache at {}", *place),
                 settings.secret.empty() ? "there is no secret to tell own entries from others'"
                                         : "the secret has fewer than 16 characters",
                 "set KILN_CACHE_SECRET or KILN_CACHE_SECRET_FILE to the team's: openssl rand -hex 32"};
  if (auto limit = env.get("KILN_CACHE_TIMEOUT")) {
    settings.limit_s = to_number(*limit).value_or(0);
    if (!(settings.limit_s > 0) || settings.limit_s > 60)
      return Error{Fault::Environment, "cannot use KILN_CACHE_TIMEOUT",
                   fmt::format("it is '{}', not a number of seconds above 0 and up to 60", *limit), "unset it"};
  }
  return std::optional<RemoteSettings>(std::move(settings));
}

Result<std::unique_ptr<Remote>> open_remote(sys::Files& files, const RemoteSettings& settings) {
  if (settings.place.starts_with("redis://")) return open_redis(settings);
  if (!settings.place.starts_with('/'))
    return Error{Fault::Environment, fmt::format("cannot share the cache at '{}'", settings.place),
                 "it is neither redis://host:port nor an absolute path", "correct KILN_CACHE_REMOTE"};
  return std::unique_ptr<Remote>(std::make_unique<FolderRemote>(files, settings.place, settings.limit_s));
}

}  // namespace kiln::build
