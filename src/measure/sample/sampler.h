// SPDX-License-Identifier: Apache-2.0
// How is a call timed? One function for each way of taking a sample; the order of samples is random
// and shared by all contenders, so that a slow moment of the machine falls on all alike.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "measure/device/device.h"
#include "measure/sample/stop_rule.h"

namespace kiln::measure {

// What is timed. `call` enqueues one call on the device's stream; it may use `rotation` to take
// other buffers.
struct Contender {
  std::string name = {};
  std::function<Status(int rotation)> call = {};
  std::function<Status()> check = {};  // is the last call's result right? May be empty.
  std::function<Result<Device::Launch>(int calls)> capture = {};  // else the device captures `call`
  // New contents for the arguments, or the present ones written once more, in stream order. May be
  // empty.
  std::function<Status(bool fresh)> refresh = {};
  int rotations = 1;
  double bytes = 0, flops = 0;  // that a call must move and compute; 0: not known
  bool bytes_declared = false;  // by the author, not summed up from tensors
};

struct Series {
  std::vector<double> ns;
  std::vector<uint8_t> throttled;  // one a sample
  int64_t late = 0;  // samples whose first event was over before the call was enqueued
  Progress outcome = Progress::More;
};

// What is seen of the machine while samples are taken.
struct Watch {
  std::vector<double> sm_mhz, spin_ns;
  uint64_t reasons = 0;
  double most_watts = 0, most_celsius = 0;
};

struct Limits {
  double call_s = 60;  // the longest that one call may take
  // Samples enqueued before the host waits. One: a call with nothing behind it in the stream, as a
  // plain program times it; with more, the next sample's work is already waiting when the call
  // ends.
  int in_flight = 1;
  bool trace_flush = false;  // CUPTI follows the flush too, as it does for torch.profiler
};

class Sampler {
 public:
  Sampler(Device& device, Limits limits, uint64_t seed)
      : device_(device), limits_(limits), random_(seed) {}

  struct First {
    double first_ns = 0, second_ns = 0;  // host time until the device is done
  };
  Result<First> first_calls(const Contender& contender);
  Status warm_up(const std::vector<const Contender*>& contenders, const Patience& patience);
  // Isolated calls between events, interleaved at random; a cold L2 before each. Samples at the
  // same index are of one round.
  Status interleaved(const std::vector<const Contender*>& contenders, const Patience& patience,
                     double check_share, std::vector<Series>& series, Watch& watch);
  // Isolated calls whose data the call before has left in L2.
  Result<std::vector<double>> hot(const Contender& contender, double seconds);
  // Isolated calls in pairs: the first with new contents, the second with the same ones again.
  struct Repeated {
    std::vector<double> fresh, again;
  };
  Result<Repeated> repeated(const Contender& contender, int count);
  // Time a call of a row of calls that the host enqueues as fast as it can.
  Result<std::vector<double>> batched(const Contender& contender, int calls, double seconds);
  // Time a call of a captured graph of calls.
  Result<std::vector<double>> graph(const Contender& contender, int calls, double seconds);
  // The host's time for a call that does not wait.
  Result<std::vector<double>> launch(const Contender& contender, double seconds);
  // What is still running when the event after the call is done: work on other streams, late
  // writes. Host time.
  Result<std::vector<double>> left_behind(const Contender& contender, int count);
  // The host's time from before a call until the device is idle.
  Result<std::vector<double>> host_and_sync(const Contender& contender, int count);
  // Events around a call on an idle stream: what a plain program sees, the host's time between the
  // events included.
  Result<std::vector<double>> plain_events(const Contender& contender, int count);
  // Between two events with nothing in between.
  Result<std::vector<double>> empty_pairs(int count);
  // GPU time of the kernels of one call, from CUPTI, with a cold L2.
  struct Traced {
    std::vector<double> ns;  // a call: from the start of its first kernel to the end of its last
    std::vector<double> busy_ns;        // the sum of its kernels
    std::vector<KernelRecord> kernels;  // of one call
    double clock = 1;                   // a nanosecond of the events in units of CUPTI's clock
  };
  Result<Traced> traced(const Contender& contender, int count);
  // A copy of as many bytes as a call moves, cold, as GB/s.
  Result<std::vector<double>> copies(int64_t bytes, double seconds);
  // The host's time that a sample takes besides the call: with an empty call.
  Result<double> own_host_ns(int count);

  // In how many of `count` calls it waited for the device inside: the stream is held, and the call
  // does not return.
  Result<int64_t> waits_inside(const Contender& contender, int count);

  // The most memory that was set aside for pinned lines when L2 was flushed.
  int64_t pinned_l2_bytes() const { return pinned_l2_bytes_; }

 private:
  Status unpin_l2();
  // Enqueues a sample. True: the host was late, and its time is between the events.
  Result<bool> isolated(const Contender& contender, int pair, bool flush, bool warm_first);
  Result<double> lead_ns(const Contender& contender);
  Result<double> read_pair(int pair);
  Status sync() { return device_.synchronize(limits_.call_s); }
  uint64_t next_random();

  Device& device_;
  Limits limits_;
  uint64_t random_;
  std::map<const Contender*, double> lead_ns_;  // the host's time to enqueue a sample
  std::set<const Contender*> waiting_;          // those that wait for the device inside
  double flush_ns_ = 0;
  int64_t pinned_l2_bytes_ = 0;
};

// How many calls between one pair of events: about a millisecond of them, and enough that their
// inputs pass through L2.
int batch_calls(double call_ns, double bytes, int64_t l2_bytes);

}  // namespace kiln::measure
