// SPDX-License-Identifier: Apache-2.0
// What must a device be able to do to be measured on? Three have it: the GPU (cuda_device.h), the
// engine (engine_device.h) and one for tests whose clock, cache, noise and neighbours are set by
// the test (fake_device.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::measure {

struct DeviceFacts {
  std::string kind;  // "cuda", "engine", "fake"
  std::string name;  // "NVIDIA H200"
  int index = 0;
  std::string driver;   // "580.95.05"
  std::string cuda;     // "13.0": what the driver serves
  std::string compute;  // "9.0"
  int multiprocessors = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  double most_mhz = 0;  // the highest SM clock; 0: unknown
  double peak_gbs = 0;  // of the memory, from its clock and width; 0: unknown
  std::string notes;    // what is missing and why: "no NVML: clocks are not watched"
};
Json to_json(const DeviceFacts& facts);

// Bits of NVML's clock event reasons that mean: the clock is lower than the load asks for.
inline constexpr uint64_t kThrottleReasons = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
std::string reason_names(uint64_t reasons);  // "power cap, thermal slowdown"

struct ClockReading {
  double sm_mhz = 0;     // 0: unknown
  uint64_t reasons = 0;  // NVML's bits
  double watts = 0, celsius = 0;
};

struct Neighbour {
  int64_t pid = 0;
  int64_t memory_bytes = 0;
};

// As long as a short kernel, and long enough for the clock of the events.
constexpr double kSpin_ns = 250e3;

// A kernel that always takes as many cycles, timed: another process on the GPU takes slices out of
// it.
struct Spin {
  double event_ns = 0;  // between events; 0: the device has no such kernel
  double sm_mhz = 0;    // cycles over global timer
};

// One GPU kernel as CUPTI saw it.
inline constexpr const char* kDelayKernel = "kiln_spin";
struct KernelRecord {
  std::string name;
  double begin_ns = 0, end_ns = 0;
  uint32_t grid[3] = {0, 0, 0}, block[3] = {0, 0, 0};
  int registers = 0, static_shared_bytes = 0, dynamic_shared_bytes = 0;
  uint32_t stream = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual double now_ns() = 0;                      // of the host, steady
  virtual void* stream() const { return nullptr; }  // where the calls must go: a cudaStream_t

  // Room for events 0 .. count - 1.
  virtual Status make_events(int count) = 0;
  // These four are put into the stream, in order.
  virtual Status record(int event) = 0;
  virtual Status flush_l2() = 0;
  // How much of L2 is set aside for lines that a flush does not evict; 0: none. And evicts those.
  virtual int64_t pinned_l2_bytes() { return 0; }
  virtual Status unpin_l2() { return {}; }
  virtual Status copy(int64_t bytes) = 0;  // of device memory: half read, half written
  // Keeps the stream busy for about that time, by a kernel that touches no memory: kiln_spin to
  // CUPTI.
  virtual Status delay(double ns) = 0;
  // What comes after waits in the stream until release(), so that the host's time to enqueue it is
  // not in it.
  virtual Status hold() = 0;
  virtual Status release() = 0;
  // A hold that nobody released in time was opened: the call waits for the device inside.
  virtual bool was_forced_open() = 0;

  // The host waits for everything on the device. Fails after `limit_s`, and the device is lost for
  // this process.
  virtual Status synchronize(double limit_s) = 0;
  virtual Status wait_for_event(int event, double limit_s) = 0;
  virtual Result<double> elapsed_ns(int from, int to) = 0;
  // Has the device come to it? Asks, does not wait.
  virtual bool has_passed(int event) = 0;

  virtual ClockReading clocks() = 0;
  virtual std::vector<Neighbour> neighbours() = 0;
  virtual Result<Spin> spin(double ns) = 0;
  virtual int64_t free_bytes() = 0;  // of device memory; -1: unknown

  // `body` put into a graph `calls` times over; what comes back launches it.
  using Launch = std::function<Status()>;
  virtual Result<Launch> capture(const std::function<Status(int)>& body, int calls) = 0;
  // Kernels that ran while `body` did, from CUPTI; the error says why there is none (not there, not
  // permitted, taken). With `memsets` CUPTI follows those as well, as other profilers let it; they
  // are not in the answer.
  virtual Result<std::vector<KernelRecord>> trace(const std::function<Status()>& body,
                                                  double limit_s, bool memsets) = 0;
  // TFLOP/s of a bf16 matrix product on random data; the error says why it cannot be had.
  virtual Result<double> gemm_tflops() = 0;

  bool is_gpu() const { return facts().kind != "engine"; }
};

}  // namespace kiln::measure
