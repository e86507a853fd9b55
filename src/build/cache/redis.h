// SPDX-License-Identifier: Apache-2.0
// How is a Redis server asked? In RESP2 (redis.io/docs/reference/protocol-spec): GET and SET are
// all that is needed.
#pragma once

#include "build/cache/remote.h"

namespace kiln::build {

struct RedisAddress {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string password;
  int database = 0;
};

// "redis://[:password@]host[:port][/database]"
Result<RedisAddress> parse_redis_address(std::string_view text);

// "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
std::string redis_command(const std::vector<std::string_view>& words);

struct RedisReply {
  bool is_error = false;
  std::optional<std::string> value;  // nothing: nil
};

// Takes one reply as its bytes come. Nothing is looked at twice, and no more is kept than has come.
class RedisReplyReader {
 public:
  // True when the reply is whole. An error when this is not RESP, when a line or a value is too
  // long, or when something follows the reply, which nobody has asked for.
  Result<bool> add(std::string_view bytes);
  RedisReply take() { return std::move(reply_); }

 private:
  Status read_line();

  std::string bytes_;
  size_t searched_ = 0;  // no end of the first line before this
  size_t line_ = 0;      // bytes of the first line with its end; 0: it is not whole
  std::optional<size_t> value_bytes_;
  RedisReply reply_;
};

// Of all bytes at once; nothing when more must come first.
Result<std::optional<RedisReply>> parse_redis_reply(std::string_view bytes);

// Connects at the first question.
std::unique_ptr<Remote> open_redis_at(RedisAddress address, double limit_s);
Result<std::unique_ptr<Remote>> open_redis(const RemoteSettings& settings);

}  // namespace kiln::build
