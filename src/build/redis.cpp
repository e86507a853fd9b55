// SPDX-License-Identifier: Apache-2.0
// How is a Redis server asked?
#include "build/redis.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sys/connection.h"

namespace kiln::build {

namespace {

constexpr std::string_view kPrefix = "kiln:";
// Nothing that is put there is larger; a server that claims so lies.
constexpr int64_t kMostBytes = int64_t{512} << 20;

Error odd(std::string why) { return {Fault::Environment, "cannot understand the Redis server", std::move(why), ""}; }

class RedisRemote final : public Remote {
 public:
  RedisRemote(RedisAddress address, double limit_s) : address_(std::move(address)), limit_s_(limit_s) {}

  Result<std::optional<std::string>> get(const std::string& key) override {
    TRY(RedisReply reply, ask({"GET", std::string(kPrefix) + key}));
    return std::move(reply.value);
  }

  Status put(const std::string& key, std::string_view bytes) override {
    TRY(RedisReply reply, ask({"SET", std::string(kPrefix) + key, bytes}));
    (void)reply;
    return {};
  }

 private:
  Status connect() {
    if (connection_) return {};
    auto opened = sys::Connection::open(address_.host, address_.port, limit_s_);
    if (!opened) return std::move(opened.error());
    connection_ = std::make_unique<sys::Connection>(std::move(*opened));
    if (!address_.password.empty()) {
      TRY(RedisReply reply, exchange({"AUTH", address_.password}));
      (void)reply;
    }
    if (address_.database != 0) {
      TRY(RedisReply reply, exchange({"SELECT", std::to_string(address_.database)}));
      (void)reply;
    }
    return {};
  }

  Result<RedisReply> ask(const std::vector<std::string_view>& words) {
    CHECK_OK(connect());
    auto reply = exchange(words);
    if (!reply) connection_.reset();  // what comes next on it could belong to this question
    return reply;
  }

  Result<RedisReply> exchange(const std::vector<std::string_view>& words) {
    CHECK_OK(connection_->send(redis_command(words)));
    std::string bytes;
    for (;;) {
      TRY(std::string more, connection_->receive());
      bytes += more;
      TRY(std::optional<RedisReply> reply, parse_redis_reply(bytes));
      if (!reply) continue;
      if (reply->is_error) return odd(reply->value.value_or(""));
      return std::move(*reply);
    }
  }

  RedisAddress address_;
  double limit_s_;
  std::unique_ptr<sys::Connection> connection_;
};

}  // namespace

Result<RedisAddress> parse_redis_address(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return Error{Fault::Environment, fmt::format("cannot share the cache at '{}'", text), std::string(why),
                 "KILN_CACHE_REMOTE=redis://[:password@]host[:port][/database]"};
  };
  constexpr std::string_view kScheme = "redis://";
  if (!text.starts_with(kScheme)) return wrong("it does not begin with redis://");
  std::string_view rest = text.substr(kScheme.size());
  RedisAddress address;
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    std::string_view number = rest.substr(slash + 1);
    auto database = text::to_int(number);
    if (!number.empty() && (!database || *database < 0)) return wrong("what follows the slash is no number");
    address.database = static_cast<int>(database.value_or(0));
    rest = rest.substr(0, slash);
  }
  if (size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view user = rest.substr(0, at);
    address.password = user.substr(user.find(':') == std::string_view::npos ? 0 : user.find(':') + 1);
    rest = rest.substr(at + 1);
  }
  size_t colon = rest.starts_with('[') ? rest.find("]:") + 1 : rest.find(':');
  if (colon != std::string_view::npos && colon != 0) {
    auto port = text::to_int(rest.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return wrong("the port is no number from 1 to 65535");
    address.port = static_cast<int>(*port);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return wrong("there is no host in it");
  address.host = rest;
  return address;
}

std::string redis_command(const std::vector<std::string_view>& words) {
  std::string out = fmt::format("*{}\r\n", words.size());
  for (std::string_view word : words) {
    out += fmt::format("${}\r\n", word.size());
    out.append(word).append("\r\n");
  }
  return out;
}

Result<std::optional<RedisReply>> parse_redis_reply(std::string_view bytes) {
  size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > 4096 && bytes[0] == '$') return odd("a reply without an end");
    return std::optional<RedisReply>();
  }
  std::string_view line = bytes.substr(0, end);
  if (line.empty()) return odd("an empty reply");
  std::string_view rest = line.substr(1);
  RedisReply reply;
  reply.bytes = end + 2;
  switch (line[0]) {
    case '-':
      reply.is_error = true;
      [[fallthrough]];
    case '+':
    case ':':
      reply.value = std::string(rest);
      return std::optional<RedisReply>(std::move(reply));
    case '$': {
      auto size = text::to_int(rest);
      if (!size || *size < -1 || *size > kMostBytes) return odd(fmt::format("a value of '{}' bytes", rest));
      if (*size == -1) return std::optional<RedisReply>(std::move(reply));
      size_t count = static_cast<size_t>(*size);
      if (bytes.size() < reply.bytes + count + 2) return std::optional<RedisReply>();
      reply.value = std::string(bytes.substr(reply.bytes, count));
      reply.bytes += count + 2;
      return std::optional<RedisReply>(std::move(reply));
    }
    default:
      return odd(fmt::format("a reply that begins with '{}'", line[0]));
  }
}

std::unique_ptr<Remote> open_redis_at(RedisAddress address, double limit_s) {
  return std::make_unique<RedisRemote>(std::move(address), limit_s);
}

Result<std::unique_ptr<Remote>> open_redis(const RemoteSettings& settings) {
  TRY(RedisAddress address, parse_redis_address(settings.place));
  return open_redis_at(std::move(address), settings.limit_s);
}

}  // namespace kiln::build
