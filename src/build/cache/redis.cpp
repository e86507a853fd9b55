// SPDX-License-Identifier: Apache-2.0
// How is a Redis server asked?
#include "build/cache/redis.h"

#include <fmt/format.h>

#include "base/text.h"
#include "build/cache/entry.h"
#include "sys/connection.h"
#include "sys/printable.h"

namespace kiln::build {

namespace {

constexpr std::string_view kPrefix = "kiln:";
// Longer than every error that a server gives.
constexpr size_t kLongestLine = 4096;
constexpr size_t kShownOfError = 200;

// What a server says may hold anything, and ends on a terminal or in a log.
Error odd(std::string_view why) {
  return {Fault::Environment, "unexpected reply from the Redis server",
          sys::printable(why.substr(0, kShownOfError)), ""};
}

class RedisRemote final : public Remote {
 public:
  RedisRemote(RedisAddress address, double limit_s)
      : address_(std::move(address)), limit_s_(limit_s) {}

  Result<std::optional<RemoteEntry>> get(const std::string& key) override {
    TRY(RedisReply reply, ask({"GET", std::string(kPrefix) + key}));
    if (!reply.value) return std::optional<RemoteEntry>();
    return std::optional(RemoteEntry{std::move(*reply.value), ""});
  }

  Status put(const std::string& key, std::string_view bytes) override {
    TRY(RedisReply reply, ask({"SET", std::string(kPrefix) + key, bytes}));
    (void)reply;
    return {};
  }

 private:
  Status connect(const sys::Deadline& deadline) {
    if (connection_) return {};
    auto opened = sys::Connection::open(address_.host, address_.port, deadline);
    if (!opened) return std::move(opened.error());
    connection_ = std::make_unique<sys::Connection>(std::move(*opened));
    if (!address_.password.empty()) {
      TRY(RedisReply reply, exchange({"AUTH", address_.password}, deadline));
      (void)reply;
    }
    if (address_.database != 0) {
      TRY(RedisReply reply, exchange({"SELECT", std::to_string(address_.database)}, deadline));
      (void)reply;
    }
    return {};
  }

  // One deadline for all of it: the name, the connection, the password, every byte there and back.
  Result<RedisReply> ask(const std::vector<std::string_view>& words) {
    const sys::Deadline deadline(limit_s_);
    if (auto connected = connect(deadline); !connected) {
      connection_.reset();
      return std::move(connected.error());
    }
    auto reply = exchange(words, deadline);
    if (!reply) connection_.reset();  // what comes next on it could belong to this question
    return reply;
  }

  Result<RedisReply> exchange(const std::vector<std::string_view>& words,
                              const sys::Deadline& deadline) {
    CHECK_OK(connection_->send(redis_command(words), deadline));
    RedisReplyReader reader;
    for (;;) {
      TRY(std::string more, connection_->receive(deadline));
      TRY(bool whole, reader.add(more));
      if (!whole) continue;
      RedisReply reply = reader.take();
      if (reply.is_error) return odd(reply.value.value_or(""));
      return reply;
    }
  }

  RedisAddress address_;
  double limit_s_;
  std::unique_ptr<sys::Connection> connection_;
};

}  // namespace

Result<RedisAddress> parse_redis_address(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return Error{Fault::Environment,
                 fmt::format("cannot share the cache at '{}'", shown_place(text)), std::string(why),
                 "KILN_CACHE_REMOTE=redis://[:password@]host[:port][/database]"};
  };
  constexpr std::string_view kScheme = "redis://";
  if (!text.starts_with(kScheme)) return wrong("it does not start with redis://");
  std::string_view rest = text.substr(kScheme.size());
  RedisAddress address;
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    std::string_view number = rest.substr(slash + 1);
    auto database = text::to_int(number);
    if (!number.empty() && (!database || *database < 0))
      return wrong("what follows the slash is not a number");
    address.database = static_cast<int>(database.value_or(0));
    rest = rest.substr(0, slash);
  }
  if (size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view user = rest.substr(0, at);
    address.password =
        user.substr(user.find(':') == std::string_view::npos ? 0 : user.find(':') + 1);
    rest = rest.substr(at + 1);
  }
  size_t colon = rest.starts_with('[') ? rest.find("]:") + 1 : rest.find(':');
  if (colon != std::string_view::npos && colon != 0) {
    auto port = text::to_int(rest.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535)
      return wrong("the port is not a number from 1 to 65535");
    address.port = static_cast<int>(*port);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return wrong("it has no host");
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

Status RedisReplyReader::read_line() {
  const std::string_view line = std::string_view(bytes_).substr(0, line_ - 2);
  if (line.empty()) return odd("an empty reply");
  const std::string_view rest = line.substr(1);
  reply_.is_error = line[0] == '-';
  switch (line[0]) {
    case '-':
    case '+':
    case ':':
      reply_.value = std::string(rest);
      return {};
    case '$': {
      auto size = text::to_int(rest);
      if (!size || *size < -1 || *size > static_cast<int64_t>(kMaxEntryBytes + kSignatureBytes))
        return odd(fmt::format("a value of '{}' bytes", rest));
      if (*size >= 0) value_bytes_ = static_cast<size_t>(*size);
      return {};
    }
    default:
      return odd(fmt::format("a reply that starts with '{}'", line[0]));
  }
}

Result<bool> RedisReplyReader::add(std::string_view bytes) {
  bytes_.append(bytes);
  if (line_ == 0) {
    const size_t end = bytes_.find("\r\n", searched_);
    if (std::min(end, bytes_.size()) > kLongestLine) return odd("a reply without an end");
    searched_ = bytes_.empty() ? 0 : bytes_.size() - 1;  // '\r' may be the last one
    if (end == std::string::npos) return false;
    line_ = end + 2;
    CHECK_OK(read_line());
  }
  const size_t whole = line_ + (value_bytes_ ? *value_bytes_ + 2 : 0);
  if (bytes_.size() < whole) return false;
  if (bytes_.size() > whole) return odd("data after the reply");
  if (value_bytes_ && !bytes_.ends_with("\r\n")) return odd("a value without an end");
  if (value_bytes_) reply_.value = bytes_.substr(line_, *value_bytes_);
  return true;
}

Result<std::optional<RedisReply>> parse_redis_reply(std::string_view bytes) {
  RedisReplyReader reader;
  TRY(bool whole, reader.add(bytes));
  return whole ? std::optional(reader.take()) : std::nullopt;
}

std::unique_ptr<Remote> open_redis_at(RedisAddress address, double limit_s) {
  return std::make_unique<RedisRemote>(std::move(address), limit_s);
}

Result<std::unique_ptr<Remote>> open_redis(const RemoteSettings& settings) {
  TRY(RedisAddress address, parse_redis_address(settings.place));
  return open_redis_at(std::move(address), settings.limit_s);
}

}  // namespace kiln::build
