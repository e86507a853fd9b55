// SPDX-License-Identifier: Apache-2.0
#include "measure/device/engine_device.h"

#include <link.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include "kiln/engine_abi.h"
#include "measure/device/cupti.h"
#include "sys/library.h"

namespace kiln::measure {
namespace {

// The engine that an op library has brought into this process; null: none has. One that ends before
// `listen` is of a kiln that reported to nobody.
const KilnEngine* loaded_engine() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* found) {
        if (std::filesystem::path(object->dlpi_name).filename() == "libkiln_engine.so")
          *static_cast<std::string*>(found) = object->dlpi_name;
        return 0;
      },
      &path);
  if (path.empty()) return nullptr;
  const Result<sys::Library> library = sys::Library::open(path);
  if (!library) return nullptr;
  const auto get = reinterpret_cast<KilnEngineFunction>(library->find(KILN_ENGINE_SYMBOL));
  const KilnEngine* engine = get ? get(KILN_ENGINE_ABI_VERSION) : nullptr;
  return engine && engine->struct_bytes >= sizeof(KilnEngine) ? engine : nullptr;
}

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
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
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
  // Nothing waits for the host here; in a trace it is between two calls.
  Status delay(double) override {
    const std::lock_guard guard(lock_);
    if (tracing_) records_.push_back({kDelayKernel, now_ns(), now_ns()});
    return {};
  }
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
      if (read)
        return facts_.memory_bytes - static_cast<int64_t>(resident) * ::sysconf(_SC_PAGESIZE);
    }
    return -1;
  }
  Result<Launch> capture(const std::function<Status(int)>&, int) override {
    return Error{Fault::Environment, "no CUDA graph", "the engine does not support it", ""};
  }
  Result<std::vector<KernelRecord>> trace(const std::function<Status()>& body, double,
                                          bool) override;
  Result<double> gemm_tflops() override {
    return Error{Fault::Environment, "no roof", "there is no GPU", ""};
  }

 private:
  static void heard(const KilnLaunchRecord* launch, void* self);

  DeviceFacts facts_;
  std::vector<double> events_;
  std::mutex lock_;  // launches may end on any thread
  bool tracing_ = false;
  std::vector<KernelRecord> records_;
};

void EngineDevice::heard(const KilnLaunchRecord* launch, void* self) {
  auto* device = static_cast<EngineDevice*>(self);
  KernelRecord record{short_kernel_name(launch->kernel), static_cast<double>(launch->begin_ns),
                      static_cast<double>(launch->begin_ns + launch->ns)};
  record.grid[0] = launch->grid.x, record.grid[1] = launch->grid.y, record.grid[2] = launch->grid.z;
  record.block[0] = launch->block.x, record.block[1] = launch->block.y,
  record.block[2] = launch->block.z;
  record.dynamic_shared_bytes = static_cast<int>(launch->shared_bytes);
  const std::lock_guard guard(device->lock_);
  if (device->tracing_) device->records_.push_back(std::move(record));
}

Result<std::vector<KernelRecord>> EngineDevice::trace(const std::function<Status()>& body, double,
                                                      bool) {
  const KilnEngine* engine = loaded_engine();
  if (!engine)
    return Error{Fault::Environment, "no kernel times", "no call reached the engine", ""};
  records_.clear();
  tracing_ = true;
  engine->listen(heard, this);
  const Status status = body();
  engine->listen(nullptr, nullptr);
  const std::lock_guard guard(lock_);
  tracing_ = false;
  if (!status) return status.error();
  return std::exchange(records_, {});
}

}  // namespace

std::unique_ptr<Device> open_engine_device() { return std::make_unique<EngineDevice>(); }

}  // namespace kiln::measure
