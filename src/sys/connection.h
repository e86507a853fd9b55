// SPDX-License-Identifier: Apache-2.0
// How does kiln talk to a server without ever waiting long? By a connection that has a deadline for every call.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace kiln::sys {

class Connection {
 public:
  // `limit_s` holds for the connection as a whole and then for each call.
  static Result<Connection> open(const std::string& host, int port, double limit_s);
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)), limit_s_(other.limit_s_) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(fd_, other.fd_);
    limit_s_ = other.limit_s_;
    return *this;
  }
  ~Connection();

  Status send(std::string_view bytes);
  // What is there, at least one byte.
  Result<std::string> receive();

 private:
  Connection(int fd, double limit_s) : fd_(fd), limit_s_(limit_s) {}
  Status wait(short events, double until);

  int fd_ = -1;
  double limit_s_ = 0;
};

}  // namespace kiln::sys
