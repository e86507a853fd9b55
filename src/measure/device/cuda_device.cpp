// SPDX-License-Identifier: Apache-2.0
#include "measure/device/cuda_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "measure/device/cuda_driver.h"
#include "measure/device/cupti.h"
#include "measure/device/device_code.h"
#include "measure/device/gate.h"
#include "measure/device/steady.h"

namespace kiln::measure {
namespace {

constexpr int kNotReady = 600, kOutOfMemory = 2;
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kClockKhz = 13, kMajor = 75, kMinor = 76,
              kMemoryKhz = 36,
              kMemoryBits = 37;  // CU_DEVICE_ATTRIBUTE_*
constexpr unsigned kMappedPortable = 0x3, kWaitGreaterEqual = 0x0;
constexpr int kCaptureRelaxed = 2;
constexpr double kHoldLimit_s = 0.2;  // longer than any enqueueing; shorter than anybody's patience
constexpr int kGemmSize = 8192;

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaDriver& driver, CuStream stream) : cu_(driver), stream_(stream) {}
  ~CudaDevice() override;
  Status open(const CudaPlace& place);
  void* stream() const override { return stream_; }

  const DeviceFacts& facts() const override { return facts_; }
  double now_ns() override { return steady_ns(); }
  Status make_events(int count) override;
  Status record(int event) override {
    return check(cu_.event_record(events_[static_cast<size_t>(event)], stream_), "record an event");
  }
  Status flush_l2() override {
    return check(cu_.memory_set(flush_, 0, flush_bytes_, stream_), "flush the L2 cache");
  }
  int64_t pinned_l2_bytes() override;
  Status unpin_l2() override {
    return check(cu_.reset_persisting(), "reset the persisting lines of L2");
  }
  Status copy(int64_t bytes) override;
  Status delay(double ns) override;
  Status hold() override;
  Status release() override;
  bool was_forced_open() override { return gate_ && gate_->was_forced_open(); }
  Status synchronize(double limit_s) override;
  Status wait_for_event(int event, double limit_s) override;
  Result<double> elapsed_ns(int from, int to) override;
  bool has_passed(int event) override {
    return cu_.event_query(events_[static_cast<size_t>(event)]) == 0;
  }
  ClockReading clocks() override;
  std::vector<Neighbour> neighbours() override;
  Result<Spin> spin(double ns) override;
  int64_t free_bytes() override;
  Result<Launch> capture(const std::function<Status(int)>& body, int calls) override;
  Result<std::vector<KernelRecord>> trace(const std::function<Status()>& body, double limit_s,
                                          bool memsets) override;
  Result<double> gemm_tflops() override;

 private:
  Status check(int code, const char* what) const {
    if (code == 0) return {};
    return failure(code, what);
  }
  Error failure(int code, const char* what) const;
  template <class Query>
  Status wait(double limit_s, const char* what, Query query);
  Status need_buffers(size_t bytes);
  Status fill(CuPointer to, size_t bytes, unsigned mask);
  Status open_module();
  Status open_gate();

  const CudaDriver& cu_;
  CuStream stream_;
  DeviceFacts facts_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  std::optional<Nvml> nvml_;
  std::vector<CuEvent> events_;
  CuPointer flush_ = 0, from_ = 0, to_ = 0, spin_out_ = 0;
  size_t flush_bytes_ = 0, buffer_bytes_ = 0;
  unsigned long long* spin_host_ = nullptr;
  void *spin_kernel_ = nullptr, *copy_kernel_ = nullptr, *fill_kernel_ = nullptr;
  CuEvent spin_events_[2] = {nullptr, nullptr};

  CuPointer gate_device_ = 0;  // the gate's word, as the device sees it
  std::unique_ptr<Gate> gate_;
};

Error CudaDevice::failure(int code, const char* what) const {
  Error error{Fault::Work,
              fmt::format("cannot {} on {}", what, facts_.name.empty() ? "the GPU" : facts_.name),
              cuda_error_text(cu_, code), ""};
  if (code == kOutOfMemory) {
    error.fault = Fault::Environment;
    error.fix = "free GPU memory (nvidia-smi shows what uses it), or use smaller tensors";
  }
  return error;
}

Status CudaDevice::open(const CudaPlace& place) {
  const int index = place.index;
  CHECK_OK(check(cu_.init(0), "start CUDA"));
  CHECK_OK(check(cu_.device_get(&device_, index), "find it"));
  CHECK_OK(check(cu_.primary_retain(&context_, device_), "make a context"));
  CHECK_OK(check(cu_.context_set(context_), "use its context"));
  // It waits for the default stream, where copies go.
  if (place.make_stream) CHECK_OK(check(cu_.stream_create(&stream_, 0), "make a stream"));
  char name[256] = {}, pci[64] = {};
  cu_.device_name(name, sizeof name, device_);
  cu_.device_pci(pci, sizeof pci, device_);
  const auto attribute = [&](int which) {
    int value = 0;
    cu_.device_attribute(&value, which, device_);
    return value;
  };
  size_t memory = 0;
  int version = 0;
  cu_.device_memory(&memory, device_);
  cu_.driver_version(&version);
  facts_.kind = "cuda";
  facts_.name = name;
  facts_.index = index;
  facts_.cuda = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  facts_.compute = fmt::format("{}.{}", attribute(kMajor), attribute(kMinor));
  facts_.multiprocessors = attribute(kMultiprocessors);
  facts_.l2_bytes = attribute(kL2Bytes);
  facts_.memory_bytes = static_cast<int64_t>(memory);
  facts_.most_mhz = attribute(kClockKhz) / 1e3;
  // Two transfers a clock.
  facts_.peak_gbs = 2.0 * attribute(kMemoryKhz) * 1e3 * attribute(kMemoryBits) / 8 * 1e-9;
  if (auto nvml = Nvml::open(pci)) {
    nvml_ = *nvml;
    facts_.driver = nvml_->driver();
    if (unsigned mhz = nvml_->most_sm_mhz()) facts_.most_mhz = mhz;
  } else {
    facts_.notes =
        "no NVML (" + nvml.error().why + "): throttle reasons and other processes are not reported";
  }
  flush_bytes_ = 2 * static_cast<size_t>(std::max<int64_t>(facts_.l2_bytes, 8 << 20));
  CHECK_OK(
      check(cu_.memory_allocate(&flush_, flush_bytes_), "allocate the buffer that flushes L2"));
  CHECK_OK(open_module());
  return open_gate();
}

Status CudaDevice::open_module() {
  void* module = nullptr;
  CHECK_OK(check(cu_.module_load(&module, kDeviceCode), "compile the kernels of the timing core"));
  CHECK_OK(check(cu_.module_function(&spin_kernel_, module, "kiln_spin"), "find kiln_spin"));
  CHECK_OK(check(cu_.module_function(&copy_kernel_, module, "kiln_copy"), "find kiln_copy"));
  CHECK_OK(check(cu_.module_function(&fill_kernel_, module, "kiln_fill"), "find kiln_fill"));
  void* host = nullptr;
  CHECK_OK(check(cu_.host_allocate(&host, 4096, kMappedPortable), "allocate host memory"));
  spin_host_ = static_cast<unsigned long long*>(host);
  CHECK_OK(check(cu_.host_device_pointer(&spin_out_, host, 0), "map host memory"));
  for (CuEvent& event : spin_events_) CHECK_OK(check(cu_.event_create(&event, 0), "make an event"));
  return {};
}

Status CudaDevice::open_gate() {
  if (!cu_.wait_value) {
    facts_.notes +=
        (facts_.notes.empty() ? "" : "; ") +
        std::string(
            "the driver cannot hold a stream: short times may include the host's enqueueing");
    return {};
  }
  void* host = nullptr;
  CHECK_OK(check(cu_.host_allocate(&host, 4096, kMappedPortable), "allocate host memory"));
  std::memset(host, 0, 4096);
  CHECK_OK(check(cu_.host_device_pointer(&gate_device_, host, 0), "map host memory"));
  gate_ = std::make_unique<Gate>(static_cast<uint32_t*>(host), kHoldLimit_s);
  return {};
}

CudaDevice::~CudaDevice() {
  gate_.reset();
  if (!context_ || cu_.context_set(context_) != 0) return;
  for (CuEvent event : events_) cu_.event_destroy(event);
  for (CuPointer pointer : {flush_, from_, to_})
    if (pointer) cu_.memory_free(pointer);
  // The module, the host words and the context stay: cheap, and other users of the process have the
  // context too.
}

int64_t CudaDevice::pinned_l2_bytes() {
  constexpr int kPersistingL2 = 6;  // CU_LIMIT_PERSISTING_L2_CACHE_SIZE
  size_t bytes = 0;
  return cu_.context_limit(&bytes, kPersistingL2) == 0 ? static_cast<int64_t>(bytes) : 0;
}

Status CudaDevice::make_events(int count) {
  while (static_cast<int>(events_.size()) < count) {
    CuEvent event = nullptr;
    CHECK_OK(check(cu_.event_create(&event, 0), "make an event"));
    events_.push_back(event);
  }
  return {};
}

Status CudaDevice::hold() {
  if (!gate_) return {};
  return check(cu_.wait_value(stream_, gate_device_, gate_->hold(), kWaitGreaterEqual),
               "hold the stream");
}

Status CudaDevice::release() {
  if (gate_) gate_->release();
  return {};
}

template <class Query>
Status CudaDevice::wait(double limit_s, const char* what, Query query) {
  const double begin = steady_ns();
  for (int looks = 0;; ++looks) {
    const int code = query();
    if (code == 0) return {};
    if (code != kNotReady) return failure(code, what);
    if (looks % 64 != 63) continue;
    const double waited_s = (steady_ns() - begin) * 1e-9;
    if (waited_s > limit_s)
      return Error{Fault::Work, fmt::format("{} did not finish", facts_.name),
                   fmt::format("a call still runs after {:.0f} s", limit_s),
                   "look for an endless loop in the kernel; --limit SECONDS gives it more time"};
    if (waited_s > 0.05) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Status CudaDevice::synchronize(double limit_s) {
  CHECK_OK(wait(limit_s, "run the call", [&] { return cu_.stream_query(stream_); }));
  return check(cu_.context_synchronize(), "run the call");
}

Status CudaDevice::wait_for_event(int event, double limit_s) {
  return wait(limit_s, "run the call",
              [&] { return cu_.event_query(events_[static_cast<size_t>(event)]); });
}

Result<double> CudaDevice::elapsed_ns(int from, int to) {
  float ms = 0;
  CHECK_OK(check(
      cu_.event_elapsed(&ms, events_[static_cast<size_t>(from)], events_[static_cast<size_t>(to)]),
      "read two events"));
  return static_cast<double>(ms) * 1e6;
}

ClockReading CudaDevice::clocks() {
  if (!nvml_) return {};
  return {static_cast<double>(nvml_->sm_mhz()), nvml_->reasons(), nvml_->watts(), nvml_->celsius()};
}

std::vector<Neighbour> CudaDevice::neighbours() {
  std::vector<Neighbour> others;
  if (!nvml_) return others;
  Nvml::Process rows[64];
  unsigned count = std::size(rows);
  if (!nvml_->processes(rows, count)) return others;
  const auto own = static_cast<unsigned>(::getpid());
  // In a container NVML has pids of the host, this process's own among them: then one of them is
  // this one.
  const bool own_seen =
      std::any_of(rows, rows + count, [&](const Nvml::Process& row) { return row.pid == own; });
  const unsigned expected = own_seen ? 0 : 1;
  for (unsigned i = 0; i < count; ++i)
    if (rows[i].pid != own)
      others.push_back({rows[i].pid, static_cast<int64_t>(rows[i].used_bytes)});
  if (others.size() <= expected) others.clear();
  return others;
}

Status CudaDevice::delay(double ns) {
  const double mhz = facts_.most_mhz > 0 ? facts_.most_mhz : 1500;
  // 29 cycles for a dependent FMA and the loop around it (H200); the length matters less than that
  // it is always equal.
  auto iterations = static_cast<unsigned>(ns * mhz / 1e3 / 29);
  void* arguments[] = {&iterations, &spin_out_};
  return check(cu_.launch(spin_kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
               "launch kiln_spin");
}

Result<Spin> CudaDevice::spin(double ns) {
  CHECK_OK(check(cu_.event_record(spin_events_[0], stream_), "record an event"));
  CHECK_OK(delay(ns));
  CHECK_OK(check(cu_.event_record(spin_events_[1], stream_), "record an event"));
  CHECK_OK(synchronize(10));
  float ms = 0;
  CHECK_OK(check(cu_.event_elapsed(&ms, spin_events_[0], spin_events_[1]), "read two events"));
  const auto cycles = static_cast<double>(spin_host_[0]),
             timer_ns = static_cast<double>(spin_host_[1]);
  return Spin{static_cast<double>(ms) * 1e6, timer_ns > 0 ? cycles / timer_ns * 1e3 : 0};
}

int64_t CudaDevice::free_bytes() {
  size_t available = 0, total = 0;
  return cu_.memory_free_total(&available, &total) == 0 ? static_cast<int64_t>(available) : -1;
}

Status CudaDevice::fill(CuPointer to, size_t bytes, unsigned mask) {
  unsigned long long count = bytes / 16;
  unsigned seed = 12345;
  void* arguments[] = {&to, &count, &seed, &mask};
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  return check(cu_.launch(fill_kernel_, blocks, 1, 1, 256, 1, 1, 0, stream_, arguments, nullptr),
               "fill memory");
}

Status CudaDevice::need_buffers(size_t bytes) {
  if (buffer_bytes_ >= bytes) return {};
  for (CuPointer* pointer : {&from_, &to_}) {
    if (*pointer) cu_.memory_free(*pointer);
    *pointer = 0;
    CHECK_OK(check(cu_.memory_allocate(pointer, bytes), "allocate the buffers of the copy"));
    CHECK_OK(fill(*pointer, bytes, 0xFFFFFFFF));
  }
  buffer_bytes_ = bytes;
  return {};
}

Status CudaDevice::copy(int64_t bytes) {
  const size_t half = std::max<size_t>(16, static_cast<size_t>(bytes) / 2 / 16 * 16);
  CHECK_OK(need_buffers(half));
  unsigned long long count = half / 16;
  void* arguments[] = {&from_, &to_, &count};
  const auto blocks = static_cast<unsigned>((count + 1023) / 1024);
  return check(cu_.launch(copy_kernel_, blocks, 1, 1, 256, 1, 1, 0, stream_, arguments, nullptr),
               "launch kiln_copy");
}

Result<Device::Launch> CudaDevice::capture(const std::function<Status(int)>& body, int calls) {
  if (!stream_)
    return Error{Fault::Work, "cannot capture a graph", "the calls go to the default stream",
                 "use another stream"};
  CHECK_OK(check(cu_.begin_capture(stream_, kCaptureRelaxed), "begin a graph"));
  Status status;
  for (int i = 0; i < calls && status; ++i) status = body(i);
  void *graph = nullptr, *executable = nullptr;
  const int ended = cu_.end_capture(stream_, &graph);
  if (!status) return std::move(status.error());
  CHECK_OK(check(ended, "capture the call"));
  const int made = cu_.graph_instantiate(&executable, graph, 0);
  cu_.graph_destroy(graph);
  CHECK_OK(check(made, "instantiate a graph"));
  const std::shared_ptr<void> owner(executable,
                                    [this](void* held) { cu_.graph_exec_destroy(held); });
  return Launch(
      [this, owner] { return check(cu_.graph_launch(owner.get(), stream_), "launch a graph"); });
}

Result<std::vector<KernelRecord>> CudaDevice::trace(const std::function<Status()>& body,
                                                    double limit_s, bool memsets) {
  CHECK_OK(cupti_begin(memsets));
  Status status = body();
  if (status) status = synchronize(limit_s);
  auto records = cupti_end();
  if (!status) return std::move(status.error());
  return records;
}

Result<double> CudaDevice::gemm_tflops() {
  TRY(const Blas blas, Blas::open(stream_));
  constexpr size_t kBytes = size_t{kGemmSize} * kGemmSize * 2;
  std::array<CuPointer, 3> matrices{};
  const auto measure = [&]() -> Result<double> {
    for (CuPointer& matrix : matrices) {
      CHECK_OK(check(cu_.memory_allocate(&matrix, kBytes), "allocate a matrix"));
      CHECK_OK(fill(matrix, kBytes, 0xBFFFBFFF));  // bf16 below 2: no infinity, no NaN
    }
    CHECK_OK(make_events(2));
    std::vector<double> values;
    for (int i = 0; i < 12; ++i) {
      CHECK_OK(record(0));
      if (int code = blas.multiply(kGemmSize, matrices[0], matrices[1], matrices[2]); code != 0)
        return Error{Fault::Environment, "no matrix product",
                     fmt::format("cublasGemmEx returned {}", code), ""};
      CHECK_OK(record(1));
      CHECK_OK(synchronize(30));
      TRY(const double ns, elapsed_ns(0, 1));
      if (i >= 2) values.push_back(2.0 * kGemmSize * kGemmSize * kGemmSize / ns * 1e-3);
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  Result<double> found = measure();
  for (CuPointer matrix : matrices)
    if (matrix) cu_.memory_free(matrix);
  return found;
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(const CudaPlace& place) {
  TRY(const CudaDriver* driver, cuda_driver());
  auto device = std::make_unique<CudaDevice>(*driver, place.stream);
  Status opened = device->open(place);
  if (!opened) {
    opened.error().fault = Fault::Environment;
    return std::move(opened.error());
  }
  return std::unique_ptr<Device>(std::move(device));
}

int cuda_device_count() {
  const auto driver = cuda_driver();
  int count = 0;
  if (!driver || (*driver)->init(0) != 0 || (*driver)->device_count(&count) != 0) return 0;
  return count;
}

}  // namespace kiln::measure
