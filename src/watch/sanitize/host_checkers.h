// SPDX-License-Identifier: Apache-2.0
// What does the program do wrong beside its kernels? Both are on request: a process that ends need
// not free, and a program may try a call to see whether it works.
#pragma once

#include <map>
#include <string>

#include "watch/sanitize/collector.h"

namespace kiln::watch {

// Errors of CUDA calls after which nobody asked cudaGetLastError() or cudaPeekAtLastError().
class ApiChecker : public engine::Sink {
 public:
  explicit ApiChecker(Collector& collector);
  uint32_t wanted() const override { return engine::kHostEvents; }
  void on(const engine::HostEvent& event) override;

 private:
  void report();

  Collector& collector_;
  struct Failure {
    std::string text;
    int code = 0;
    int64_t count = 0;
  };
  std::map<uint32_t, std::map<std::string, Failure>> open_;  // by thread of the host, by text
};

// Memory that is still allocated when the process ends.
class LeakChecker : public engine::Sink {
 public:
  explicit LeakChecker(Collector& collector);
  uint32_t wanted() const override { return engine::kHostEvents; }
  void on(const engine::HostEvent& event) override;

 private:
  void report();

  Collector& collector_;
  struct Allocated {
    uint64_t bytes = 0;
    std::string call;
    SiteId site = kNoSite;  // of malloc() on the device
    Who who;
  };
  std::map<uint64_t, Allocated> alive_;  // by address
};

}  // namespace kiln::watch
