// SPDX-License-Identifier: Apache-2.0
// How does kiln talk to a server without ever waiting long? By a connection whose calls all have a
// deadline.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "sys/deadline.h"

namespace kiln::sys {

class Connection {
 public:
  // The deadline holds for the look-up of the name too.
  static Result<Connection> open(const std::string& host, int port, const Deadline& deadline);
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Connection();

  Status send(std::string_view bytes, const Deadline& deadline);
  // What is there, at least one byte.
  Result<std::string> receive(const Deadline& deadline);

 private:
  explicit Connection(int fd) : fd_(fd) {}
  Status wait(short events, const Deadline& deadline);

  int fd_ = -1;
};

}  // namespace kiln::sys
