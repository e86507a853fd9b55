// SPDX-License-Identifier: Apache-2.0
// How is a Redis server asked? In RESP2 (redis.io/docs/reference/protocol-spec): GET and SET are all that is needed.
#pragma once

#include "build/remote.h"

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
  size_t bytes = 0;                  // of the reply on the wire
};
// Nothing when more bytes must come first; an error when this is no RESP.
Result<std::optional<RedisReply>> parse_redis_reply(std::string_view bytes);

// Connects at the first question.
std::unique_ptr<Remote> open_redis_at(RedisAddress address, double limit_s);
Result<std::unique_ptr<Remote>> open_redis(const RemoteSettings& settings);

}  // namespace kiln::build
