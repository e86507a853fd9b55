// SPDX-License-Identifier: Apache-2.0
// How long may something take in all? A deadline for calls that can be given one, and a thread for
// those that cannot: a name server that is gone, a network disk whose server is gone.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "sys/clock.h"

namespace kiln::sys {

struct Deadline {
  explicit Deadline(double seconds) : limit_s(seconds), at_s(now_seconds() + seconds) {}
  double left_s() const { return at_s - now_seconds(); }

  double limit_s;  // for messages
  double at_s;     // of now_seconds()
};

// `work()` gives a Result. It is left behind when the time is over: what it uses must live as long
// as the process, and what it throws is an error like any other.
template <class Work>
auto within(const Deadline& deadline, Work work, const Error& late) -> decltype(work()) {
  using Answer = decltype(work());
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  const auto failed = [late](const char* why) {
    Error error = late;
    error.why = why;
    return error;
  };
  try {
    std::thread([promise, failed, work = std::move(work)] {
      try {
        promise->set_value(work());
      } catch (const std::exception& e) {
        promise->set_value(failed(e.what()));
      }
    }).detach();
  } catch (const std::exception& e) {  // no thread can be had
    return failed(e.what());
  }
  const auto left = std::chrono::duration<double>(std::max(deadline.left_s(), 0.0));
  if (answer.wait_for(left) != std::future_status::ready) return late;
  return answer.get();
}

}  // namespace kiln::sys
