// SPDX-License-Identifier: Apache-2.0
#include "measure/device/fake_device.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {
namespace {

constexpr double kFakeSecond = 1e9;
constexpr double kPatienceOfHold_ns = 50e6;

}  // namespace

FakeDevice::FakeDevice(FakeModel model)
    : model_(model), free_bytes_(model.memory_bytes), random_(model.seed) {
  facts_.kind = "fake";
  facts_.name = "a fake GPU";
  facts_.l2_bytes = model.l2_bytes;
  facts_.memory_bytes = model.memory_bytes;
  facts_.multiprocessors = 100;
  facts_.most_mhz = model.mhz;
}

double FakeDevice::uniform() {
  uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double FakeDevice::normal() {
  return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * 3.14159265358979323846 * uniform());
}

double FakeDevice::mhz_at(double ns) const {
  return model_.throttle_after_ns > 0 && ns >= model_.throttle_after_ns ? model_.throttled_mhz
                                                                        : model_.mhz;
}

// The other process has [k * every, k * every + slice) to itself.
double FakeDevice::with_competitor(double begin_ns, double ns) const {
  if (model_.competitor_every_ns <= 0) return ns;
  double at = begin_ns, left = ns;
  while (left > 0) {
    const double in_period = std::fmod(at, model_.competitor_every_ns);
    if (in_period < model_.competitor_slice_ns) {
      at += model_.competitor_slice_ns - in_period;
      continue;
    }
    const double free_ns = std::min(left, model_.competitor_every_ns - in_period);
    at += free_ns;
    left -= free_ns;
  }
  return at - begin_ns;
}

void FakeDevice::scale(KernelRecord& record) const {
  record.begin_ns *= model_.cupti_clock;
  record.end_ns *= model_.cupti_clock;
}

// When a kernel that may begin at `begin_ns` ends.
double FakeDevice::run(double begin_ns, const FakeKernel& kernel, double gap_ns) {
  const bool hot = (kernel.buffer == resident_ || kernel.buffer == pinned_) &&
                   kernel.bytes <= static_cast<double>(model_.l2_bytes);
  double ns = kernel.fixed_ns +
              kernel.bytes / (hot ? model_.l2_bytes_per_ns : model_.bytes_per_ns) +
              kernel.cycles / mhz_at(begin_ns) * 1e3;
  ns *= model_.mhz / mhz_at(begin_ns) * (1 + model_.window_drift * begin_ns / kFakeSecond);
  ns *= std::max(0.5, 1 + model_.noise * normal());
  if (model_.outlier_share > 0 && uniform() < model_.outlier_share) ns *= model_.outlier_factor;
  if (kernel.bytes > 0) resident_ = kernel.buffer;
  if (kernel.pins) {
    pinned_ = kernel.buffer;
    pins_ = true;
  }
  const double begin = begin_ns + gap_ns;
  const double end = begin + with_competitor(begin, ns);
  if (traced_) {
    traced_->push_back({"fake_kernel", begin, end, {1, 1, 1}, {256, 1, 1}, 32, 0, 0, 7});
    scale(traced_->back());
  }
  return end;
}

void FakeDevice::launch(const FakeKernel& kernel) {
  if (captured_) {
    captured_->push_back(kernel);
    return;
  }
  host_ns_ += model_.launch_host_ns;
  double& done = kernel.other_stream ? other_ns_ : stream_ns_;
  // A stream that ran dry begins when the launch arrives.
  done =
      run(held_ && !kernel.other_stream ? done : std::max(done, host_ns_), kernel, model_.gap_ns);
}

void FakeDevice::synchronize_inside() {
  if (held_) {  // nobody comes to release it: the watchdog does
    host_ns_ += kPatienceOfHold_ns;
    (void)release();
    forced_open_ = true;
  }
  host_ns_ = std::max(host_ns_, stream_ns_);
}

Status FakeDevice::make_events(int count) {
  events_.resize(static_cast<size_t>(count));
  return {};
}

Status FakeDevice::record(int event) {
  host_ns_ += model_.event_host_ns;
  stream_ns_ = (held_ ? stream_ns_ : std::max(stream_ns_, host_ns_)) + model_.event_ns;
  events_[static_cast<size_t>(event)] = stream_ns_;
  if (held_) held_events_.push_back(static_cast<size_t>(event));
  return {};
}

Status FakeDevice::flush_l2() {
  std::vector<KernelRecord>* traced = std::exchange(traced_, nullptr);  // a memset is not a kernel
  launch(
      {.fixed_ns = 1500, .bytes = 2.0 * static_cast<double>(model_.l2_bytes), .buffer = 1 << 20});
  traced_ = traced;
  return {};
}

Status FakeDevice::copy(int64_t bytes) {
  launch({.fixed_ns = 1500, .bytes = static_cast<double>(bytes), .buffer = 1 << 21});
  return {};
}

Status FakeDevice::delay(double ns) {
  std::vector<KernelRecord>* traced = std::exchange(traced_, nullptr);
  launch({.fixed_ns = ns, .buffer = -1});
  traced_ = traced;
  if (traced_) {
    traced_->push_back({kDelayKernel, stream_ns_ - ns, stream_ns_});
    scale(traced_->back());
  }
  return {};
}

// What is enqueued while it is held begins at once in the books; release() shifts it to its real
// begin.
Status FakeDevice::hold() {
  host_ns_ += model_.event_host_ns;
  held_from_ns_ = stream_ns_ = std::max(stream_ns_, host_ns_);
  held_events_.clear();
  held_ = true;
  return {};
}

Status FakeDevice::release() {
  if (!held_) return {};
  held_ = false;
  const double late_ns = std::max(0.0, host_ns_ - held_from_ns_);
  stream_ns_ += late_ns;
  for (size_t event : held_events_) events_[event] += late_ns;
  return {};
}

Status FakeDevice::synchronize(double limit_s) {
  if (hangs_) {
    host_ns_ += limit_s * kFakeSecond;
    return Error{Fault::Work, "the GPU did not finish", "it hangs", ""};
  }
  host_ns_ = std::max({host_ns_, stream_ns_, other_ns_}) + 1000;
  return {};
}

Status FakeDevice::wait_for_event(int event, double limit_s) {
  if (hangs_) return synchronize(limit_s);
  host_ns_ = std::max(host_ns_, events_[static_cast<size_t>(event)]) + 1000;
  return {};
}

Result<double> FakeDevice::elapsed_ns(int from, int to) {
  return events_[static_cast<size_t>(to)] - events_[static_cast<size_t>(from)];
}

ClockReading FakeDevice::clocks() {
  const double mhz = mhz_at(host_ns_);
  return {mhz, mhz < model_.mhz ? 0x4u : 0u, 300, 50};
}

std::vector<Neighbour> FakeDevice::neighbours() {
  if (!model_.competitor_listed) return {};
  return {{4711, 1 << 30}};
}

Result<Spin> FakeDevice::spin(double ns) {
  const double begin = std::max(stream_ns_, host_ns_);
  stream_ns_ = begin + with_competitor(begin, ns);
  host_ns_ = stream_ns_;
  return Spin{stream_ns_ - begin, mhz_at(begin)};
}

Result<Device::Launch> FakeDevice::capture(const std::function<Status(int)>& body, int calls) {
  auto kernels = std::make_shared<std::vector<FakeKernel>>();
  captured_ = kernels.get();
  Status status;
  for (int i = 0; i < calls && status; ++i) status = body(i);
  captured_ = nullptr;
  if (!status) return std::move(status.error());
  return Launch([this, kernels]() -> Status {
    host_ns_ += model_.launch_host_ns;
    if (!held_) stream_ns_ = std::max(stream_ns_, host_ns_);
    for (const FakeKernel& kernel : *kernels)
      stream_ns_ = run(stream_ns_, kernel, model_.gap_ns / 2);
    return {};
  });
}

Result<std::vector<KernelRecord>> FakeDevice::trace(const std::function<Status()>& body,
                                                    double limit_s, bool) {
  if (!model_.cupti)
    return Error{Fault::Environment, "no kernel times from CUPTI", "it is not permitted", ""};
  std::vector<KernelRecord> records;
  traced_ = &records;
  Status status = body();
  if (status) status = synchronize(limit_s);
  traced_ = nullptr;
  if (!status) return std::move(status.error());
  return records;
}

}  // namespace kiln::measure
