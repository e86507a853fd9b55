// SPDX-License-Identifier: Apache-2.0
#include "measure/engine_device.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace kiln::measure {
namespace {

class EngineDevice final : public Device {
 public:
  EngineDevice() {
    facts_.kind = "engine";
    facts_.name = "kiln's engine on this CPU";
    facts_.multiprocessors = static_cast<int>(std::thread::hardware_concurrency());
    facts_.memory_bytes = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  }
  const DeviceFacts& facts() const override { return facts_; }
  double now_ns() override {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  Status make_events(int count) override {
    if (events_.size() < static_cast<size_t>(count)) events_.resize(static_cast<size_t>(count));
    return {};
  }
  Status record(int event) override {
    events_[static_cast<size_t>(event)] = now_ns();
    return {};
  }
  Status flush_l2() override { return {}; }
  Status copy(int64_t) override { return {}; }
  Status delay(double) override { return {}; }
  Status hold() override { return {}; }
  Status release() override { return {}; }
  bool was_forced_open() override { return false; }
  Status synchronize(double) override { return {}; }
  Status wait_for_event(int, double) override { return {}; }
  Result<double> elapsed_ns(int from, int to) override {
    return events_[static_cast<size_t>(to)] - events_[static_cast<size_t>(from)];
  }
  bool has_passed(int) override { return false; }  // nothing is asynchronous here
  ClockReading clocks() override { return {}; }
  std::vector<Neighbour> neighbours() override { return {}; }
  Result<Spin> spin(double) override { return Spin{}; }
  // What this process has not taken of the machine's memory: falls when a call leaks.
  int64_t free_bytes() override {
    long pages = 0, resident = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
      const bool read = std::fscanf(file, "%ld %ld", &pages, &resident) == 2;
      std::fclose(file);
      if (read) return facts_.memory_bytes - static_cast<int64_t>(resident) * ::sysconf(_SC_PAGESIZE);
    }
    return -1;
  }
  Result<Launch> capture(const std::function<Status(int)>&, int) override {
    return Error{Fault::Environment, "no CUDA graph", "the engine has none", ""};
  }
  Result<std::vector<KernelRecord>> trace(const std::function<Status()>&, double) override {
    return Error{Fault::Environment, "no kernel times from CUPTI", "there is no GPU", ""};
  }
  Result<double> gemm_tflops() override { return Error{Fault::Environment, "no roof", "there is no GPU", ""}; }

 private:
  DeviceFacts facts_;
  std::vector<double> events_;
};

}  // namespace

std::unique_ptr<Device> open_engine_device() { return std::make_unique<EngineDevice>(); }

}  // namespace kiln::measure
