// SPDX-License-Identifier: Apache-2.0
#include "measure/op_bench.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "host/arguments.h"
#include "host/compare.h"
#include "host/generate.h"
#include "host/op_call.h"
#include "measure/device/cuda_device.h"
#include "measure/device/engine_device.h"
#include "measure/render.h"
#include "measure/result.h"

namespace kiln::measure {
namespace {

constexpr int kMostRotations = 8;
constexpr int kMostChecks = 4;  // of timed calls: each brings the result to the host

struct Prepared {
  host::OpLibrary library;
  host::BoundCall bound;
  host::Device device;
  std::vector<host::OpCall> calls;  // the same op on memory of their own
};

Result<Prepared> prepare(const OpRequest& request) {
  TRY(host::OpLibrary library, host::OpLibrary::open(request.library));
  TRY(host::BoundCall bound, host::bind_call(library.ops(), request.op, request.arguments));
  TRY(const host::Device device, library.default_device());
  Prepared prepared{std::move(library), std::move(bound), device, {}};
  TRY(host::OpCall call,
      host::OpCall::prepare(prepared.library, prepared.bound, device, request.seed));
  prepared.calls.push_back(std::move(call));
  return prepared;
}

Result<std::vector<host::Array>> arrays_of(const host::OpCall& call) {
  TRY(std::vector<host::Output> outputs, call.outputs());
  std::vector<host::Array> arrays;
  for (host::Output& output : outputs)
    if (output.array) arrays.push_back(host::contiguous(*output.array));
  return arrays;
}

Error wrong_result(const host::OpCall& call, const std::string& what, std::string why) {
  return {Fault::Work, fmt::format("{} {}", host::full_name(call.op()), what), std::move(why),
          "a wrong op is not timed: kiln call shows its result"};
}

Status compare_arrays(const host::OpCall& call, const std::vector<host::Array>& seen,
                      const std::vector<host::Array>& wanted, const char* what) {
  for (size_t i = 0; i < seen.size() && i < wanted.size(); ++i) {
    if (seen[i].storage == wanted[i].storage) continue;
    const host::Tolerance tolerance = host::tolerance_for(seen[i], wanted[i], {}, {});
    const host::Comparison comparison = host::compare(seen[i], wanted[i], tolerance);
    if (comparison.equal) continue;
    return wrong_result(
        call, what,
        comparison.unlike.empty()
            ? fmt::format("{} of {} elements differ, the first at {}: got {}, expected {}",
                          comparison.mismatches, comparison.count,
                          host::coordinate_text(comparison.first), comparison.first_seen,
                          comparison.first_wanted)
            : comparison.unlike);
  }
  return {};
}

// What is known without a reference: it gives the same twice, and leaves its inputs alone.
Result<std::string> check(const OpRequest& request, host::OpCall& call,
                          std::vector<host::Array>& first, bool& mutates) {
  CHECK_OK(call.call());
  CHECK_OK(call.synchronize());
  TRY(first, arrays_of(call));
  TRY(const std::vector<std::string> overwritten, call.overwritten_inputs());
  if (!overwritten.empty())
    return wrong_result(call, fmt::format("wrote to its input '{}'", overwritten.front()),
                        fmt::format("{} does not declare it", call.op().schema));
  for (uint32_t i = 0; i < call.op().parameter_count; ++i)
    mutates |= (call.op().parameters[i].flags & KILN_PARAMETER_MUTABLE) != 0;
  std::string said = "inputs unchanged";
  if (!request.expect.empty()) {
    TRY(const host::TensorSpec spec, host::parse_tensor_spec(request.expect));
    TRY(host::Array wanted, host::make_array(spec, request.seed));
    if (first.empty())
      return wrong_result(call, "returned no tensor", "--expect has nothing to compare with");
    CHECK_OK(compare_arrays(call, first, {host::contiguous(wanted)}, "gives a wrong result"));
    said = "equal to " + request.expect + ", " + said;
  } else {
    said = "not compared with a reference (--against NAME, --expect TENSOR); " + said;
  }
  if (mutates) return said + ", writes to its arguments, as its schema says";
  CHECK_OK(call.call());
  CHECK_OK(call.synchronize());
  TRY(const std::vector<host::Array> second, arrays_of(call));
  CHECK_OK(compare_arrays(call, second, first, "returns a different result in its second call"));
  return said + ", the same result twice";
}

Result<std::unique_ptr<Device>> open_device(const Prepared& prepared) {
  if (prepared.device.type == KILN_DEVICE_CPU) return open_engine_device();
  TRY(std::unique_ptr<Device> device, open_cuda_device({prepared.device.index, nullptr, true}));
  // A library that is older than this puts its work on the default stream: then that one is timed.
  if (prepared.library.use_stream(device->stream())) return device;
  return open_cuda_device({prepared.device.index, nullptr, false});
}

// More sets of tensors, so that calls in a row do not find their inputs in L2.
Status add_rotations(const OpRequest& request, const Device& device, Prepared& prepared,
                     double bytes) {
  if (!device.is_gpu() || bytes <= 0) return {};
  const double wanted = std::ceil(3 * static_cast<double>(device.facts().l2_bytes) / bytes);
  const int count = static_cast<int>(std::min<double>(wanted, kMostRotations));
  for (int i = 1; i < count; ++i) {
    TRY(host::OpCall call,
        host::OpCall::prepare(prepared.library, prepared.bound, prepared.device, request.seed));
    prepared.calls.push_back(std::move(call));
  }
  return {};
}

}  // namespace

Json to_json(const OpRequest& r) {
  Json json{{"library", r.library.string()},
            {"op", r.op},
            {"arguments", r.arguments},
            {"against", r.against},
            {"expect", r.expect},
            {"device", r.device},
            {"seed", r.seed},
            {"options", r.options}};
  json["bytes"] = r.bytes ? Json(*r.bytes) : Json();
  json["flops"] = r.flops ? Json(*r.flops) : Json();
  return json;
}

Result<OpRequest> op_request(const Json& json) {
  try {
    OpRequest r;
    r.library = json.at("library").get<std::string>();
    r.op = json.at("op").get<std::string>();
    r.arguments = json.at("arguments").get<std::vector<std::string>>();
    r.against = json.at("against").get<std::vector<std::string>>();
    r.expect = json.at("expect").get<std::string>();
    r.device = json.at("device").get<std::string>();
    r.seed = json.at("seed").get<uint64_t>();
    if (!json.at("bytes").is_null()) r.bytes = json.at("bytes").get<double>();
    if (!json.at("flops").is_null()) r.flops = json.at("flops").get<double>();
    r.options = json.at("options");
    return r;
  } catch (const Json::exception& e) {
    return Error{Fault::Bug, "cannot read a request for a benchmark", e.what(), ""};
  }
}

Result<results::BenchResult> bench_op(const OpRequest& request) {
  TRY(Prepared prepared, prepare(request));
  TRY(const std::unique_ptr<Device> device, open_device(prepared));
  std::vector<host::Array> right;
  bool mutates = false;
  TRY(const std::string correct, check(request, prepared.calls.front(), right, mutates));
  Contender contender;
  contender.name = host::full_name(prepared.calls.front().op());
  contender.bytes = request.bytes.value_or(prepared.calls.front().moved_bytes());
  contender.bytes_declared = request.bytes.has_value();
  contender.flops = request.flops.value_or(0);
  CHECK_OK(add_rotations(request, *device, prepared, contender.bytes));
  contender.rotations = static_cast<int>(prepared.calls.size());
  contender.call = [&](int rotation) {
    return prepared.calls[static_cast<size_t>(rotation)].call();
  };
  // Memory that a graph allocates must be freed in it, or it runs once; memory from outside cannot
  // be freed in it.
  contender.capture = [&](int count) {
    const auto release_all = [&prepared] {
      for (host::OpCall& call : prepared.calls) call.release_results();
    };
    release_all();
    return device->capture(
        [&, release_all, count](int i) -> Status {
          CHECK_OK(contender.call(i % contender.rotations));
          if (i + 1 == count) release_all();
          return {};
        },
        count);
  };
  int checks = 0;
  contender.check = [&]() -> Status {
    if (mutates || ++checks > kMostChecks) return {};
    TRY(const std::vector<host::Array> seen, arrays_of(prepared.calls.front()));
    return compare_arrays(prepared.calls.front(), seen, right,
                          "returned a different result while it was timed");
  };
  TRY(const RunOptions options, run_options(request.options));
  TRY(const Report report, run(*device, {contender}, options));
  results::BenchResult result = result_of(report);
  result.title = fmt::format("{}({})", contender.name,
                             text::join(prepared.calls.front().tensor_arguments(), ", "));
  result.correct = correct;
  if (request.expect.empty())
    result.findings.push_back(
        {"not checked", "warning", contender.name,
         "the results were not compared with anything: use --against or --expect"});
  return result;
}

}  // namespace kiln::measure
