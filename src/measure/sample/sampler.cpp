// SPDX-License-Identifier: Apache-2.0
#include "measure/sample/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::measure {
namespace {

constexpr double kSecond = 1e9;
constexpr int kPairs = 64;         // event pairs in flight
constexpr double kBatch_ns = 5e6;  // about so much work between two waits of the host
constexpr double kMostDelay_ns = 400e3;
constexpr double kWatchEvery_ns = 2e7;  // NVML takes up to a millisecond
constexpr double kClockWithin =
    0.05;  // of CUPTI against events: the ends of a trace are not the events' moments

}  // namespace

int batch_calls(double call_ns, double bytes, int64_t l2_bytes) {
  double calls = 1e6 / std::max(call_ns, 1.0);
  if (bytes > 0) calls = std::max(calls, 3.0 * static_cast<double>(l2_bytes) / bytes);
  return static_cast<int>(std::clamp(calls, 10.0, 200.0));
}

uint64_t Sampler::next_random() {
  uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// How long the host takes to enqueue a call and two events; for that time the stream must have
// something else to do, or the host's time is between the events.
Result<double> Sampler::lead_ns(const Contender& contender) {
  if (const auto found = lead_ns_.find(&contender); found != lead_ns_.end()) return found->second;
  CHECK_OK(sync());
  if (flush_ns_ == 0) {
    std::vector<double> values;
    for (int i = 0; i < 5; ++i) {
      CHECK_OK(device_.record(0));
      CHECK_OK(device_.flush_l2());
      CHECK_OK(device_.record(1));
      CHECK_OK(sync());
      TRY(const double ns, read_pair(0));
      values.push_back(ns);
    }
    flush_ns_ = median(values);
  }
  std::vector<double> values;
  for (int i = 0; i < 7; ++i) {
    const double begin = device_.now_ns();
    CHECK_OK(device_.record(0));
    CHECK_OK(contender.call(0));
    CHECK_OK(device_.record(1));
    values.push_back(device_.now_ns() - begin);
    CHECK_OK(sync());
  }
  return lead_ns_[&contender] = median(values);
}

// A call may pin its data in L2 (cudaAccessPropertyPersisting): such lines survive a flush. Asked
// each time, as a call may begin with it at any time; a context that sets nothing aside pays a
// query.
Status Sampler::unpin_l2() {
  const int64_t pinned = device_.pinned_l2_bytes();
  if (pinned == 0) return {};
  pinned_l2_bytes_ = std::max(pinned_l2_bytes_, pinned);
  CHECK_OK(sync());
  return device_.unpin_l2();
}

Result<bool> Sampler::isolated(const Contender& contender, int pair, bool flush, bool warm_first) {
  TRY(const double lead, lead_ns(contender));
  if (flush) CHECK_OK(unpin_l2());  // before the stream is held: it waits
  // Twice as long as it takes: a host that is interrupted for a moment stays in time. Where that is
  // very long the stream is held instead, which costs a microsecond between the events (H200: 17.7
  // for 17.1 us of a plain program). A call that waits for the device would wait forever in a held
  // stream, and is late in any.
  const double busy_ns = 2 * lead * (warm_first ? 2 : 1) + 5e3;
  const bool waits = waiting_.contains(&contender), held = busy_ns > kMostDelay_ns && !waits;
  if (held)
    CHECK_OK(device_.hold());
  else if (const double missing = busy_ns - (flush ? flush_ns_ : 0); missing > 0 && !waits)
    CHECK_OK(device_.delay(missing));
  // Else an error would leave the stream closed forever.
  const auto enqueue = [&]() -> Status {
    if (flush) CHECK_OK(device_.flush_l2());
    if (warm_first) CHECK_OK(contender.call(0));
    CHECK_OK(device_.record(2 * pair));
    CHECK_OK(contender.call(0));
    return device_.record(2 * pair + 1);
  };
  Status enqueued = enqueue();
  if (held) {
    const Status released = device_.release();
    (void)device_.was_forced_open();
    CHECK_OK(std::move(enqueued));
    CHECK_OK(released);
    return false;
  }
  CHECK_OK(std::move(enqueued));
  return !waits && device_.has_passed(2 * pair);
}

Result<int64_t> Sampler::waits_inside(const Contender& contender, int count) {
  int64_t waited = 0;
  for (int i = 0; i < count; ++i) {
    CHECK_OK(device_.hold());
    Status called = contender.call(0);
    const Status released = device_.release();
    waited += device_.was_forced_open();
    CHECK_OK(std::move(called));
    CHECK_OK(released);
    CHECK_OK(sync());
  }
  if (waited > 0) waiting_.insert(&contender);
  return waited;
}

Result<double> Sampler::read_pair(int pair) { return device_.elapsed_ns(2 * pair, 2 * pair + 1); }

Result<Sampler::First> Sampler::first_calls(const Contender& contender) {
  const auto timed = [&]() -> Result<double> {
    const double begin = device_.now_ns();
    CHECK_OK(contender.call(0));
    CHECK_OK(sync());
    return device_.now_ns() - begin;
  };
  First first;
  TRY(first.first_ns, timed());
  TRY(first.second_ns, timed());
  return first;
}

Status Sampler::warm_up(const std::vector<const Contender*>& contenders, const Patience& patience) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  std::vector<double> seen;
  const double begin = device_.now_ns();
  for (;;) {
    double round_ns = 0;
    for (const Contender* contender : contenders) {
      CHECK_OK(isolated(*contender, 0, true, false));
      CHECK_OK(sync());
      TRY(const double ns, read_pair(0));
      round_ns += ns;
    }
    seen.push_back(round_ns);
    if (is_warm(seen, (device_.now_ns() - begin) / kSecond, patience)) return {};
  }
}

Status Sampler::interleaved(const std::vector<const Contender*>& contenders,
                            const Patience& patience, double check_share,
                            std::vector<Series>& series, Watch& watch) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  series.assign(contenders.size(), {});
  const auto count = contenders.size();
  const int rounds_most = std::max<int>(1, kPairs / static_cast<int>(count));
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const double begin = device_.now_ns();
  double watched = 0, busy_ns = 0, round_ns = 0;
  size_t look_at = static_cast<size_t>(patience.min_samples);
  ClockReading clock = device_.clocks();
  const auto check_below = static_cast<uint64_t>(check_share * 1e6);
  for (;;) {
    int rounds = round_ns > 0 ? static_cast<int>(kBatch_ns / round_ns) : 1;
    rounds = std::clamp(rounds, 1, rounds_most);
    const double batch_begin = device_.now_ns();
    int pair = 0;
    std::vector<std::pair<size_t, int>> taken;  // contender, pair
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = count - 1; i > 0; --i) std::swap(order[i], order[next_random() % (i + 1)]);
      for (size_t which : order) {
        TRY(const bool late, isolated(*contenders[which], pair, true, false));
        if (late) {
          ++series[which].late;
          double& lead = lead_ns_[contenders[which]];
          lead = std::min(1.25 * lead, kMostDelay_ns / 2 - 5e3);
        }
        taken.emplace_back(which, pair++);
        if (pair % std::max(1, limits_.in_flight) == 0) CHECK_OK(sync());
        if (contenders[which]->check && next_random() % 1000000 < check_below) {
          CHECK_OK(sync());
          CHECK_OK(contenders[which]->check());
          // One for nobody: a host that has just compared tensors is late for the next call.
          CHECK_OK(isolated(*contenders[which], kPairs, true, false));
          CHECK_OK(sync());
        }
      }
    }
    CHECK_OK(sync());
    const double batch_ns = device_.now_ns() - batch_begin;
    busy_ns += batch_ns;
    round_ns = batch_ns / rounds;
    if (device_.now_ns() - watched > kWatchEvery_ns) {
      watched = device_.now_ns();
      TRY(const Spin spin, device_.spin(kSpin_ns));
      if (spin.event_ns > 0) watch.spin_ns.push_back(spin.event_ns);
      clock = device_.clocks();
      if (clock.sm_mhz > 0) watch.sm_mhz.push_back(clock.sm_mhz);
      watch.reasons |= clock.reasons;
      watch.most_watts = std::max(watch.most_watts, clock.watts);
      watch.most_celsius = std::max(watch.most_celsius, clock.celsius);
    }
    for (const auto& [which, at] : taken) {
      TRY(const double ns, read_pair(at));
      series[which].ns.push_back(ns);
      series[which].throttled.push_back((clock.reasons & kThrottleReasons) != 0);
    }
    const double elapsed_s = (device_.now_ns() - begin) / kSecond;
    // Sorting at every batch would take longer than the samples.
    if (series[0].ns.size() < look_at && elapsed_s < patience.max_time_s) continue;
    look_at = series[0].ns.size() + std::max<size_t>(1, series[0].ns.size() / 8);
    bool all = true;
    for (size_t i = 0; i < count; ++i) {
      series[i].outcome = progress(sorted(series[i].ns), busy_ns / kSecond, elapsed_s, patience);
      // One that takes part twice has its time from the first.
      const bool again =
          std::find(contenders.begin(), contenders.begin() + static_cast<ptrdiff_t>(i),
                    contenders[i]) != contenders.begin() + static_cast<ptrdiff_t>(i);
      all &= again || series[i].outcome != Progress::More;
    }
    if (all) return {};
  }
}

namespace {

// Repeats `sample` until the time is over; at least `least` times.
template <class Sample>
Result<std::vector<double>> repeat(Device& device, double seconds, int least, Sample sample) {
  std::vector<double> values;
  const double begin = device.now_ns();
  while (static_cast<int>(values.size()) < least || device.now_ns() - begin < seconds * kSecond) {
    TRY(const double value, sample());
    values.push_back(value);
    if (static_cast<int>(values.size()) >= 5 && device.now_ns() - begin > 10 * seconds * kSecond)
      break;  // slow calls
  }
  return values;
}

}  // namespace

Result<std::vector<double>> Sampler::hot(const Contender& contender, double seconds) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  return repeat(device_, seconds, 20, [&]() -> Result<double> {
    CHECK_OK(isolated(contender, 0, false, true));
    CHECK_OK(sync());
    return read_pair(0);
  });
}

Result<Sampler::Repeated> Sampler::repeated(const Contender& contender, int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  Repeated out;
  for (int i = 0; i < count; ++i)
    for (const bool fresh : {true, false}) {
      CHECK_OK(contender.refresh(fresh));
      CHECK_OK(isolated(contender, 0, true, false));
      CHECK_OK(sync());
      TRY(const double ns, read_pair(0));
      (fresh ? out.fresh : out.again).push_back(ns);
    }
  return out;
}

Result<std::vector<double>> Sampler::batched(const Contender& contender, int calls,
                                             double seconds) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  return repeat(device_, seconds, 5, [&]() -> Result<double> {
    CHECK_OK(device_.record(0));
    for (int i = 0; i < calls; ++i) CHECK_OK(contender.call(i % contender.rotations));
    CHECK_OK(device_.record(1));
    CHECK_OK(sync());
    TRY(const double ns, read_pair(0));
    return ns / calls;
  });
}

Result<std::vector<double>> Sampler::graph(const Contender& contender, int calls, double seconds) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  const auto body = [&](int i) { return contender.call(i % contender.rotations); };
  TRY(const Device::Launch replay,
      contender.capture ? contender.capture(calls) : device_.capture(body, calls));
  CHECK_OK(replay());
  CHECK_OK(sync());
  return repeat(device_, seconds, 5, [&]() -> Result<double> {
    CHECK_OK(device_.record(0));
    CHECK_OK(replay());
    CHECK_OK(device_.record(1));
    CHECK_OK(sync());
    TRY(const double ns, read_pair(0));
    return ns / calls;
  });
}

Result<std::vector<double>> Sampler::launch(const Contender& contender, double seconds) {
  return repeat(device_, seconds, 20, [&]() -> Result<double> {
    const double begin = device_.now_ns();
    CHECK_OK(contender.call(0));
    const double ns = device_.now_ns() - begin;
    CHECK_OK(sync());
    return ns;
  });
}

Result<std::vector<double>> Sampler::left_behind(const Contender& contender, int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    CHECK_OK(contender.call(0));
    CHECK_OK(device_.record(0));
    CHECK_OK(device_.wait_for_event(0, limits_.call_s));
    const double begin = device_.now_ns();
    CHECK_OK(sync());
    values.push_back(device_.now_ns() - begin);
  }
  return values;
}

Result<std::vector<double>> Sampler::host_and_sync(const Contender& contender, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const double begin = device_.now_ns();
    CHECK_OK(contender.call(0));
    CHECK_OK(sync());
    values.push_back(device_.now_ns() - begin);
  }
  return values;
}

Result<std::vector<double>> Sampler::plain_events(const Contender& contender, int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    CHECK_OK(device_.record(0));
    CHECK_OK(contender.call(0));
    CHECK_OK(device_.record(1));
    CHECK_OK(sync());
    TRY(const double ns, read_pair(0));
    values.push_back(ns);
  }
  return values;
}

Result<std::vector<double>> Sampler::empty_pairs(int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    CHECK_OK(device_.delay(20e3));
    CHECK_OK(device_.record(0));
    CHECK_OK(device_.record(1));
    CHECK_OK(sync());
    TRY(const double ns, read_pair(0));
    values.push_back(ns);
  }
  return values;
}

Result<Sampler::Traced> Sampler::traced(const Contender& contender, int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  // The flush is a memset, which CUPTI does not list among the kernels. The kernel that keeps the
  // stream busy is between the calls. No events around a call, which would be 0.1 us of an add
  // of 2^22; two span it all.
  const auto body = [&]() -> Status {
    CHECK_OK(device_.record(2));
    for (int i = 0; i < count; ++i) {
      CHECK_OK(unpin_l2());
      CHECK_OK(device_.delay(2e3));
      CHECK_OK(device_.flush_l2());
      CHECK_OK(contender.call(0));
      if ((i + 1) % std::max(1, limits_.in_flight) == 0) CHECK_OK(sync());
    }
    return device_.record(3);
  };
  TRY(const std::vector<KernelRecord> all,
      device_.trace(body, limits_.call_s, limits_.trace_flush));
  TRY(const double span_ns, device_.elapsed_ns(2, 3));
  Traced traced;
  for (size_t i = 0; i < all.size();) {
    if (all[i].name == kDelayKernel) {
      ++i;
      continue;
    }
    double begin = all[i].begin_ns, end = all[i].end_ns, busy = 0;
    traced.kernels.clear();
    for (; i < all.size() && all[i].name != kDelayKernel; ++i) {
      begin = std::min(begin, all[i].begin_ns);
      end = std::max(end, all[i].end_ns);
      busy += all[i].end_ns - all[i].begin_ns;
      traced.kernels.push_back(all[i]);
    }
    traced.ns.push_back(end - begin);
    traced.busy_ns.push_back(busy);
  }
  if (traced.ns.empty())
    return Error{Fault::Environment, "no kernel times", "no kernel ran in a call", ""};
  if (!device_.is_gpu()) return traced;  // one clock
  const auto [first, last] = std::minmax_element(
      all.begin(), all.end(),
      [](const KernelRecord& a, const KernelRecord& b) { return a.begin_ns < b.begin_ns; });
  if (span_ns > 0) traced.clock = (last->end_ns - first->begin_ns) / span_ns;
  if (std::abs(traced.clock - 1) <= kClockWithin) return traced;
  // Another profiler has put in a clock that does not count nanoseconds, and it stayed.
  if (!(traced.clock > 0))
    return Error{Fault::Environment, "no kernel times from CUPTI",
                 "its timestamps are not monotonic", ""};
  for (std::vector<double>* values : {&traced.ns, &traced.busy_ns})
    for (double& value : *values) value /= traced.clock;
  for (KernelRecord& kernel : traced.kernels)
    kernel.end_ns = kernel.begin_ns + (kernel.end_ns - kernel.begin_ns) / traced.clock;
  return traced;
}

Result<std::vector<double>> Sampler::copies(int64_t bytes, double seconds) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  const Contender copy{.name = "copy", .call = [&](int) { return device_.copy(bytes); }};
  TRY(std::vector<double> ns, repeat(device_, seconds, 10, [&]() -> Result<double> {
        CHECK_OK(isolated(copy, 0, true, false));
        CHECK_OK(sync());
        return read_pair(0);
      }));
  for (double& value : ns) value = static_cast<double>(bytes) / value;  // bytes a ns = GB/s
  return ns;
}

Result<double> Sampler::own_host_ns(int count) {
  CHECK_OK(device_.make_events(2 * (kPairs + 1)));
  const Contender empty{.name = "nothing", .call = [](int) { return Status(); }};
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const double begin = device_.now_ns();
    CHECK_OK(device_.record(0));
    CHECK_OK(empty.call(0));
    CHECK_OK(device_.record(1));
    values.push_back(device_.now_ns() - begin);
    if (i % 32 == 31) CHECK_OK(sync());
  }
  CHECK_OK(sync());
  return median(values);
}

}  // namespace kiln::measure
