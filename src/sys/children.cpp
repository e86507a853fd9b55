// SPDX-License-Identifier: Apache-2.0
// How does kiln run several programs side by side?
#include "sys/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sys/argv.h"
#include "sys/clock.h"
#include "sys/process.h"

namespace kiln::sys {

namespace {

// A program that outlives its parent may keep a pipe open: the end of the child itself is looked
// for this often.
constexpr double kTick_s = 0.05;
constexpr size_t kKeptOfErrors = 8192;

struct Ends {
  int read = -1, write = -1;
  bool open() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) return false;
    read = both[0];
    write = both[1];
    return true;
  }
  void close_both() {
    for (int* end : {&read, &write}) {
      if (*end >= 0) ::close(*end);
      *end = -1;
    }
  }
};

void close_one(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_child(const ChildSpec& spec, char* const* arguments, char* const* env,
                               pid_t parent, const Ends& in, const Ends& out, const Ends& err,
                               const Ends& failure) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  // Ctrl-C of a terminal goes to the parent alone, which ends its children in order.
  ::setpgid(0, 0);
  if (spec.niceness) ::setpriority(PRIO_PROCESS, 0, spec.niceness);
  const int null = spec.talks ? -1 : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(spec.talks ? in.read : null, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  if (spec.directory.empty() || ::chdir(spec.directory.c_str()) == 0)
    ::execve(arguments[0], arguments, env);
  const int error_number = errno;
  [[maybe_unused]] ssize_t told = ::write(failure.write, &error_number, sizeof error_number);
  ::_exit(127);
}

// What is there now, without waiting. False at its end.
bool drain(int fd, std::string& to) {
  char buffer[65536];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count > 0)
      to.append(buffer, static_cast<size_t>(count));
    else if (count < 0 && errno == EINTR)
      continue;
    else
      return count < 0 && errno == EAGAIN;
  }
}

// What the child could not do before it became its program: errno, or 0 once its end of the pipe is
// closed by exec.
int number_from(Ends& failure) {
  close_one(failure.write);
  int number = 0;
  ssize_t count = 0;
  do count = ::read(failure.read, &number, sizeof number);
  while (count < 0 && errno == EINTR);
  return count == sizeof number ? number : 0;
}

}  // namespace

Children::~Children() {
  for (auto& [number, child] : children_) ::kill(-child.pid, SIGTERM);
  const double begun = now_seconds();
  while (!children_.empty() && now_seconds() - begun < 2) {
    std::vector<ChildEvent> ended;
    for (auto at = children_.begin(); at != children_.end();)
      at = reap(at->first, at->second, ended) ? children_.erase(at) : std::next(at);
    if (!children_.empty()) ::poll(nullptr, 0, 10);
  }
  for (auto& [number, child] : children_) {
    ::kill(-child.pid, SIGKILL);
    ::kill(child.pid, SIGKILL);
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    for (int* fd : {&child.in, &child.out, &child.err}) close_one(*fd);
  }
}

Result<int> Children::start(const ChildSpec& spec) {
  std::vector<std::string> entries = spec.env ? spec.env->entries() : std::vector<std::string>();
  std::vector<char*> arguments = pointers(spec.arguments), own_env = pointers(entries);
  char* const* env = spec.env ? own_env.data() : environ;
  Ends in, out, err, failure;
  const auto failed = [&](int number) {
    for (Ends* ends : {&in, &out, &err, &failure}) ends->close_both();
    return Error{Fault::Environment, "cannot start " + spec.arguments[0], std::strerror(number),
                 "check that this program exists and is executable"};
  };
  if ((spec.talks && !in.open()) || !out.open() || !err.open() || !failure.open())
    return failed(errno);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed(errno);
  if (pid == 0) become_child(spec, arguments.data(), env, parent, in, out, err, failure);
  ::setpgid(pid, pid);
  if (const int number = number_from(failure)) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return failed(number);
  }
  failure.close_both();
  close_one(in.read);
  close_one(out.write);
  close_one(err.write);
  for (int fd : {out.read, err.read}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  children_[++last_] = {pid, spec.talks, in.write, out.read, err.read, "", ""};
  return last_;
}

bool Children::say(int child, std::string_view line) {
  const auto found = children_.find(child);
  if (found == children_.end() || found->second.in < 0) return false;
  std::string whole = std::string(line) + "\n";
  // A child that has gone must not end this process.
  struct sigaction ignore {
  }, former{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &former);
  size_t sent = 0;
  while (sent < whole.size()) {
    const ssize_t count = ::write(found->second.in, whole.data() + sent, whole.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  ::sigaction(SIGPIPE, &former, nullptr);
  return sent == whole.size();
}

void Children::kill(int child, int signal) {
  if (const auto found = children_.find(child); found != children_.end())
    ::kill(-found->second.pid, signal);
}

void Children::read_all(int number, Child& child, std::vector<ChildEvent>& events) {
  if (child.out >= 0 && !drain(child.out, child.text)) close_one(child.out);
  if (child.err >= 0 && !drain(child.err, child.errors)) close_one(child.err);
  if (child.errors.size() > kKeptOfErrors)
    child.errors.erase(0, child.errors.size() - kKeptOfErrors);
  if (!child.talks) return;
  for (size_t end = child.text.find('\n'); end != std::string::npos; end = child.text.find('\n')) {
    ChildEvent event;
    event.child = number;
    event.line = child.text.substr(0, end);
    child.text.erase(0, end + 1);
    events.push_back(std::move(event));
  }
}

bool Children::reap(int number, Child& child, std::vector<ChildEvent>& events) {
  int status = 0;
  const pid_t done = ::waitpid(child.pid, &status, WNOHANG);
  if (done == 0 || (done < 0 && errno == EINTR)) return false;
  read_all(number, child, events);
  ChildEvent event;
  event.child = number;
  event.ended = true;
  event.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  event.exit_code = event.signal ? 128 + event.signal : WEXITSTATUS(status);
  event.out = std::move(child.text);
  event.last_err = std::move(child.errors);
  events.push_back(std::move(event));
  for (int* fd : {&child.in, &child.out, &child.err}) close_one(*fd);
  return true;
}

std::vector<ChildEvent> Children::wait(double seconds) {
  std::vector<ChildEvent> events;
  const double until = now_seconds() + seconds;
  for (;;) {
    std::vector<pollfd> fds;
    for (auto& [number, child] : children_) {
      read_all(number, child, events);
      for (int fd : {child.out, child.err})
        if (fd >= 0) fds.push_back({fd, POLLIN, 0});
    }
    for (auto at = children_.begin(); at != children_.end();)
      at = reap(at->first, at->second, events) ? children_.erase(at) : std::next(at);
    const double left = until - now_seconds();
    if (!events.empty() || left <= 0 || pending_interrupt()) return events;
    const double wait_s = std::min(left, kTick_s);
    ::poll(fds.data(), fds.size(), std::max(1, static_cast<int>(wait_s * 1000)));
  }
}

}  // namespace kiln::sys
