// SPDX-License-Identifier: Apache-2.0
// How does one process check and time one library after another? Tuning asks it line by line: what
// all variants share (the context, the inputs, the right results) is made once, and a variant that
// takes the process with it costs one process.
//
// A request and its answer are a line of JSON each:
//   {"do": "hello"}                        {"device": {"kind", "name", "compute", ...}}
//   {"do": "time", "library", "op",        {"correct", "us", "low_us", "high_us", "samples",
//   "findings"}
//    "arguments", "check", "reference",     without "us" on the engine: a time there says nothing
//    about a GPU "establish", "rtol", "atol", "seed",   {"error", "fate": "wrong"|"crashed",
//    "lost"} "options"}
//   {"do": "race", "libraries", ...}       {"us": [...], "low_us", "high_us", "ratio": [...], ...}
// "check" are the arguments for which results are compared, "reference" the folder of the right
// results; the first variant that runs makes them where "establish" allows it. "lost": the device
// can no more be used by this process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "host/library.h"
#include "host/op_call.h"
#include "measure/device/device.h"
#include "measure/run.h"

namespace kiln::measure {

class Lane {
 public:
  // Never fails: an error is an answer.
  Json answer(const Json& request);

 private:
  Result<Json> hello();
  Result<Json> time(const Json& request);
  Result<Json> race(const Json& request);
  Status check(const Json& request, const host::OpLibrary& library, Json& answer);
  Result<host::OpCall> prepare(const Json& request, const host::OpLibrary& library,
                               const char* arguments);
  Status use_device(const host::OpLibrary& library);
  bool is_lost();

  std::unique_ptr<Device> device_;
  host::ArrayMemory inputs_;
  std::string reference_folder_;
  std::vector<host::Array> reference_;
};

// Reads requests from stdin until it ends; answers on stdout. What the ops print goes to stderr.
// The exit code.
int serve_lane();

}  // namespace kiln::measure
