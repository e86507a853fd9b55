// SPDX-License-Identifier: Apache-2.0
// How does a GPU behave that a test controls? Time is simulated: launches are asynchronous, a
// stream is in order, an L2 remembers who was last, clocks fall, noise and another process can be
// had.
#pragma once

#include <map>
#include <set>

#include "measure/device/device.h"

namespace kiln::measure {

struct FakeModel {
  double launch_host_ns = 4000;  // the host's time for a launch
  double event_host_ns = 500;    // and for an event
  double gap_ns = 900;           // between two kernels of a stream
  double event_ns = 500;         // of the device, for an event
  double bytes_per_ns = 4000;    // DRAM
  double l2_bytes_per_ns = 9000;
  int64_t l2_bytes = 60ll << 20;
  double noise = 0.002;      // relative, normal
  double outlier_share = 0;  // of samples that take `outlier_factor` times as long
  double outlier_factor = 3;
  double mhz = 1980;
  double throttle_after_ns = 0;  // from then on the clock is `throttled_mhz`; 0: never
  double throttled_mhz = 1200;
  double competitor_slice_ns = 0;  // another process takes the GPU for that time ...
  double competitor_every_ns = 0;  // ... so often
  bool competitor_listed = false;  // and NVML shows it
  int64_t memory_bytes = 1ll << 37;
  bool cupti = true;
  double cupti_clock = 1;   // units of its times a nanosecond
  double window_drift = 0;  // relative change of speed a second: two windows of one run differ
  uint64_t seed = 1;
};

// A kernel that a fake op launches.
struct FakeKernel {
  double fixed_ns = 1500;  // start and end of a kernel
  double bytes = 0;        // moved: from L2 if it holds `buffer`, else from DRAM
  double cycles = 0;       // of the SM clock
  int buffer = 0;          // which memory
  bool other_stream = false;
  bool pins = false;  // its buffer in L2: cudaAccessPropertyPersisting
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeModel model);
  // What an op does.
  void launch(const FakeKernel& kernel);
  void host_work(double ns) { host_ns_ += ns; }
  void synchronize_inside();  // cudaStreamSynchronize in the op
  void allocate(int64_t bytes) { free_bytes_ -= bytes; }
  void hang() { hangs_ = true; }

  const DeviceFacts& facts() const override { return facts_; }
  double now_ns() override { return host_ns_; }
  Status make_events(int count) override;
  Status record(int event) override;
  Status flush_l2() override;
  int64_t pinned_l2_bytes() override { return pins_ ? model_.l2_bytes / 4 : 0; }
  Status unpin_l2() override {
    pinned_ = -1;
    return {};
  }
  Status copy(int64_t bytes) override;
  Status delay(double ns) override;
  Status hold() override;
  Status release() override;
  bool was_forced_open() override { return std::exchange(forced_open_, false); }
  Status synchronize(double limit_s) override;
  Status wait_for_event(int event, double limit_s) override;
  Result<double> elapsed_ns(int from, int to) override;
  bool has_passed(int event) override {
    return !held_ && events_[static_cast<size_t>(event)] <= host_ns_;
  }
  ClockReading clocks() override;
  std::vector<Neighbour> neighbours() override;
  Result<Spin> spin(double ns) override;
  int64_t free_bytes() override { return free_bytes_; }
  Result<Launch> capture(const std::function<Status(int)>& body, int calls) override;
  Result<std::vector<KernelRecord>> trace(const std::function<Status()>& body, double limit_s,
                                          bool) override;
  Result<double> gemm_tflops() override { return 700.0; }

 private:
  double uniform();
  double normal();
  double mhz_at(double ns) const;
  double with_competitor(double begin_ns, double ns) const;
  void scale(KernelRecord& record) const;
  double run(double begin_ns, const FakeKernel& kernel, double gap_ns);

  FakeModel model_;
  DeviceFacts facts_;
  double host_ns_ = 0, stream_ns_ = 0,
         other_ns_ = 0;  // when the host is, when the streams are done
  bool held_ = false, forced_open_ = false, hangs_ = false;
  double held_from_ns_ = 0;
  std::vector<size_t> held_events_;
  std::vector<double> events_;
  int resident_ = -1;  // the buffer in L2
  int pinned_ = -1;    // that stays there when others are read
  bool pins_ = false;  // somebody asked for it once: as with the driver's limit, for good
  int64_t free_bytes_ = 0;
  uint64_t random_ = 0;
  std::vector<FakeKernel>* captured_ = nullptr;
  std::vector<KernelRecord>* traced_ = nullptr;
};

}  // namespace kiln::measure
