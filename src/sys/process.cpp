// SPDX-License-Identifier: Apache-2.0
// How does kiln start another program, and what becomes of it when kiln is interrupted or killed?
#include "sys/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sys/argv.h"
#include "sys/clock.h"

namespace kiln::sys {

namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP};
constexpr int kTickMs = 100;
constexpr int kPauseMs = 10;

// A signal handler can reach nothing but globals.
std::atomic<int> g_interrupt{0};
std::atomic<pid_t> g_child{0};
int g_scopes = 0;
std::array<struct sigaction, kForwarded.size()> g_former;

void remember(int signal, siginfo_t* details, void*) {
  g_interrupt = signal;
  // What the terminal sends, it sends to the child as well.
  bool from_terminal = details->si_code == SI_KERNEL;
  if (pid_t child = g_child; child > 0 && !from_terminal) ::kill(child, signal);
}

Error start_error(const std::string& program, int error_number) {
  return {Fault::Environment, "cannot start " + program,
          error_number == ENOENT ? "there is no such program" : std::strerror(error_number), ""};
}

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_read() { close_one(read_end); }
  void close_write() { close_one(write_end); }
  ~Pipe() {
    close_read();
    close_write();
  }

 private:
  static void close_one(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_child(const ProcessSpec& spec, char* const* arguments, char* const* env,
                               pid_t parent, const Pipe& output, const Pipe& failure) {
  for (int signal : kForwarded) ::signal(signal, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  if (spec.capture) {
    int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
    ::dup2(output.write_end, STDOUT_FILENO);
    ::dup2(output.write_end, STDERR_FILENO);
  }
  // Allocations fail then. What is mapped from files does not count, nor what is only reserved.
  if (rlimit limit; spec.memory_bytes && ::getrlimit(RLIMIT_DATA, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(spec.memory_bytes, limit.rlim_max);
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  int error_number = 0;
  if (!spec.directory.empty() && ::chdir(spec.directory.c_str()) != 0) error_number = errno;
  if (!error_number) {
    ::execve(arguments[0], arguments, env);
    error_number = errno;
  }
  [[maybe_unused]] ssize_t told = ::write(failure.write_end, &error_number, sizeof error_number);
  ::_exit(127);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// A process and all that came from it, however deep: what a test or a script started must not
// outlive it. Stopped first, so that none starts another meanwhile.
void kill_tree(pid_t process) {
  ::kill(process, SIGSTOP);
  const std::string tasks = fmt::format("/proc/{}/task", process);
  std::error_code gone;
  for (const auto& task : fs::directory_iterator(tasks, gone)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) kill_tree(child);
  }
  ::kill(process, SIGKILL);
}

// Whether the child's time is up; it is killed then, once.
class TimeLimit {
 public:
  TimeLimit(double limit_s, pid_t child) : limit_s_(limit_s), child_(child) {}
  bool passed() {
    if (!passed_ && limit_s_ > 0 && now_seconds() - begun_ > limit_s_) {
      passed_ = true;
      kill_tree(child_);
    }
    return passed_;
  }
  bool killed() const { return passed_; }

 private:
  double limit_s_, begun_ = now_seconds();
  pid_t child_;
  bool passed_ = false;
};

// Until the child closes its end, or is killed for its time. A signal interrupts poll; the child
// gets it too and ends soon.
void collect(const ProcessSpec& spec, int fd, TimeLimit& limit, std::string& out) {
  char buffer[16384];
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    int ready = ::poll(&waiting, 1, spec.on_wait || spec.limit_s > 0 ? kTickMs : -1);
    // Whoever got away from the child may hold its end forever.
    if (limit.passed() && ready <= 0) return;
    if (ready <= 0) {
      if (spec.on_wait) spec.on_wait();
      continue;
    }
    ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    out.append(buffer, static_cast<size_t>(count));
  }
}

// The child's end: what it writes may be closed long before.
int wait_for(const ProcessSpec& spec, pid_t child, TimeLimit& limit, rusage& used) {
  int status = 0;
  const bool limited = spec.limit_s > 0;
  for (;;) {
    const pid_t ended = ::wait4(child, &status, limited ? WNOHANG : 0, &used);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (ended < 0 || !limited) continue;
    (void)limit.passed();
    ::poll(nullptr, 0, kPauseMs);
  }
}

class RealProcesses final : public Processes {
 public:
  Result<ProcessResult> run(const ProcessSpec& spec) override {
    std::vector<std::string> entries = spec.env ? spec.env->entries() : std::vector<std::string>();
    std::vector<char*> arguments = pointers(spec.arguments);
    std::vector<char*> own_env = pointers(entries);
    char* const* env = spec.env ? own_env.data() : environ;
    Pipe output, failure;
    if (!output.open() || !failure.open()) return start_error(spec.arguments[0], errno);

    InterruptScope scope;
    pid_t parent = ::getpid();
    pid_t child = ::fork();
    if (child < 0) return start_error(spec.arguments[0], errno);
    if (child == 0) become_child(spec, arguments.data(), env, parent, output, failure);
    g_child = child;
    if (int signal = g_interrupt) ::kill(child, signal);  // came between fork and the line above
    output.close_write();
    failure.close_write();

    ProcessResult result;
    TimeLimit limit(spec.limit_s, child);
    collect(spec, output.read_end, limit, result.out);
    rusage used{};
    const int status = wait_for(spec, child, limit, used);
    result.timed_out = limit.killed();
    result.peak_bytes = static_cast<uint64_t>(used.ru_maxrss) * 1024;
    result.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    g_child = 0;
    int error_number = 0;
    if (::read(failure.read_end, &error_number, sizeof error_number) == sizeof error_number)
      return start_error(spec.arguments[0], error_number);
    if (g_interrupt) return interrupted_error();
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result.exit_code = result.signal ? 128 + result.signal : WEXITSTATUS(status);
    return result;
  }
};

}  // namespace

Processes& real_processes() {
  static RealProcesses processes;
  return processes;
}

Error replace_process(const std::vector<std::string>& arguments, const Environment& env) {
  std::vector<std::string> entries = env.entries();
  ::signal(SIGXFSZ, SIG_DFL);
  ::execve(arguments[0].c_str(), pointers(arguments).data(), pointers(entries).data());
  return start_error(arguments[0], errno);
}

InterruptScope::InterruptScope() {
  if (g_scopes++ > 0) return;
  struct sigaction action {};
  action.sa_sigaction = remember;
  action.sa_flags = SA_SIGINFO;  // no SA_RESTART: a wait for a lock must end
  for (size_t i = 0; i < kForwarded.size(); ++i) {
    ::sigaction(kForwarded[i], nullptr, &g_former[i]);
    if (g_former[i].sa_handler != SIG_IGN)
      ::sigaction(kForwarded[i], &action, nullptr);  // nohup stays nohup
  }
}

InterruptScope::~InterruptScope() {
  if (--g_scopes > 0) return;
  for (size_t i = 0; i < kForwarded.size(); ++i) ::sigaction(kForwarded[i], &g_former[i], nullptr);
}

int pending_interrupt() { return g_interrupt; }

Error interrupted_error() {
  const int signal = g_interrupt;
  return {Fault::Interrupted,
          signal == SIGINT ? "interrupted (Ctrl-C)"
                           : fmt::format("interrupted ({})", ::strsignal(signal)),
          "", ""};
}

}  // namespace kiln::sys
