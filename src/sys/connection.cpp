// SPDX-License-Identifier: Apache-2.0
// How does kiln talk to a server without ever waiting long?
#include "sys/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace kiln::sys {

namespace {

Error failed(std::string why) {
  return {Fault::Environment, "cannot talk to the server", std::move(why), ""};
}

Error late(const Deadline& deadline) {
  return {Fault::Environment, "cannot talk to the server",
          fmt::format("no answer within {:.1f} s", deadline.limit_s),
          "KILN_CACHE_TIMEOUT sets the limit"};
}

using Addresses = std::shared_ptr<addrinfo>;

Result<Addresses> look_up(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      code != 0)
    return failed(fmt::format("{}: {}", host, ::gai_strerror(code)));
  return Addresses(found, ::freeaddrinfo);
}

// A number needs nobody. A name may wait for servers, for as long as /etc/resolv.conf says.
Result<Addresses> addresses_of(const std::string& host, int port, const Deadline& deadline) {
  if (auto numeric = look_up(host, port, AI_NUMERICHOST)) return numeric;
  return within(
      deadline, [host, port] { return look_up(host, port, 0); }, late(deadline));
}

}  // namespace

Result<Connection> Connection::open(const std::string& host, int port, const Deadline& deadline) {
  TRY(const Addresses found, addresses_of(host, port, deadline));
  std::string why = "no address responds";
  Connection connection(-1);
  for (addrinfo* address = found.get(); address && connection.fd_ < 0; address = address->ai_next) {
    connection.fd_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection.fd_ < 0) continue;
    int error_number =
        ::connect(connection.fd_, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error_number == EINPROGRESS) {
      error_number = 0;
      if (auto ready = connection.wait(POLLOUT, deadline); !ready) error_number = ETIMEDOUT;
      socklen_t size = sizeof error_number;
      if (!error_number) ::getsockopt(connection.fd_, SOL_SOCKET, SO_ERROR, &error_number, &size);
    }
    if (!error_number) break;
    why = std::strerror(error_number);
    ::close(std::exchange(connection.fd_, -1));
  }
  if (connection.fd_ < 0) return failed(fmt::format("{}:{}: {}", host, port, why));
  int on = 1;
  ::setsockopt(connection.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

Status Connection::wait(short events, const Deadline& deadline) {
  for (;;) {
    const double left = deadline.left_s();
    if (left <= 0) return late(deadline);
    pollfd waiting{fd_, events, 0};
    int ready = ::poll(&waiting, 1, static_cast<int>(left * 1e3) + 1);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failed(std::strerror(errno));
  }
}

Status Connection::send(std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    CHECK_OK(wait(POLLOUT, deadline));
    ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return failed(std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<std::string> Connection::receive(const Deadline& deadline) {
  std::string out(1 << 16, '\0');
  for (;;) {
    CHECK_OK(wait(POLLIN, deadline));
    ssize_t count = ::recv(fd_, out.data(), out.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return failed(std::strerror(errno));
    if (count == 0) return failed("the server closed the connection");
    out.resize(static_cast<size_t>(count));
    return out;
  }
}

}  // namespace kiln::sys
