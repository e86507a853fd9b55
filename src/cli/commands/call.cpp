// SPDX-License-Identifier: Apache-2.0
// `kiln call`: what does an op give for these arguments, without Python and without torch?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/call_limit.h"
#include "cli/command.h"
#include "cli/commands/call_ptx.h"
#include "cli/commands/call_report.h"
#include "cli/options.h"
#include "cli/watch_options.h"
#include "host/arguments.h"
#include "host/compare.h"
#include "host/generate.h"
#include "host/library.h"
#include "host/npy.h"
#include "host/op_call.h"
#include "sys/clock.h"
#include "sys/files.h"

namespace kiln::cli {
namespace call_cli {
namespace {

struct Options {
  build::Request request;
  std::string target, op;
  std::vector<std::string> arguments, output, expect;
  std::optional<double> rtol, atol;
  std::string device;
  int64_t repeat = 0, print = 3;
  double limit_s = 0;
  uint64_t seed = 0;
  WatchOptions watch;
  PtxLaunch ptx;  // --grid, --block and --shared
};

// What the call came to.
struct CallOutcome {
  std::vector<host::Output> outputs;
  std::vector<Expectation> expectations;
  CallTimes times;
};

bool is_library(const std::filesystem::path& target) {
  const std::string name = target.filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// A program has no op to call; nvcc would only say so after it was built.
Status check_not_a_program(const std::filesystem::path& source) {
  if (!sys::real_files().state(source).is_file()) return {};
  const build::SourceFacts facts = build::scan_source(sys::real_files(), source, {});
  if (!facts.defines_main || facts.defines_op) return {};
  return Error{Fault::Usage, fmt::format("cannot call an op in {}", source.string()),
               "it defines main but no op", "kiln run " + source.string()};
}

CallLimit limit_of(const Options& options, const std::string& what, const char* fix,
                   const Context& context) {
  return {options.limit_s,
          {Fault::Work, fmt::format("{} was stopped", what), past_limit(options.limit_s), fix},
          context};
}

Result<host::OpLibrary> open_target(const Options& options, Context& context) {
  std::filesystem::path target = options.target;
  if (!is_library(target)) {
    CHECK_OK(check_not_a_program(target));
    build::Request request = options.request;
    request.targets = {options.target};
    TRY(const build::Outcome outcome, build_for(context, request));
    if (outcome.rebuilt)
      context.note(fmt::format("built {} in {}", outcome.name, text::duration(outcome.seconds)));
    target = outcome.file;
  }
  // Both are read by the runtime inside the library.
  host::point_to_own_engine(context.env);
  if (context.verbose) setenv("KILN_ENGINE_FIDELITY", "1", 0);
  if (!options.device.empty()) setenv("KILN_DEVICE", options.device.c_str(), 1);
  // Constructors of the library run now, and may wait forever.
  const CallLimit limit =
      limit_of(options, "loading " + target.string(),
               "raise --limit, or look for a constructor or static variable that waits", context);
  return host::OpLibrary::open(target);
}

// Wrong words are reported before anything is built.
Result<std::vector<host::TensorSpec>> parse_expectations(Options& options, const Context& context) {
  std::vector<host::TensorSpec> specs;
  for (const std::string& text : options.expect) {
    TRY(host::TensorSpec spec, host::parse_tensor_spec(text));
    specs.push_back(std::move(spec));
  }
  for (std::string& path : options.output) {
    if (!path.ends_with(".npy"))
      return Error{Fault::Usage, "cannot save to " + path, "results are saved as .npy files",
                   "use a name that ends in .npy"};
    CHECK_OK(check_outputs({{"-o", path}}, context));
  }
  return specs;
}

// The n-th -o and the n-th --expect belong to the n-th tensor that came out.
Result<std::vector<const host::Output*>> tensors_for(const Options& options,
                                                     const std::vector<host::Output>& outputs) {
  std::vector<const host::Output*> tensors;
  for (const host::Output& output : outputs)
    if (output.array) tensors.push_back(&output);
  const auto check = [&](const char* option, size_t count) -> Status {
    if (count <= tensors.size()) return {};
    return Error{Fault::Usage, fmt::format("{} was given {} times", option, count),
                 fmt::format("{} returned {} tensor{}", options.op, tensors.size(),
                             tensors.size() == 1 ? "" : "s"),
                 "give it at most once for each of them"};
  };
  CHECK_OK(check("-o", options.output.size()));
  CHECK_OK(check("--expect", options.expect.size()));
  return tensors;
}

Result<CallTimes> make_calls(host::OpCall& call, int64_t repeat,
                             std::vector<host::Output>& outputs) {
  CallTimes times;
  const auto timed = [&]() -> Result<double> {
    const double begin = sys::now_seconds();
    CHECK_OK(call.call());
    CHECK_OK(call.synchronize());
    return sys::now_seconds() - begin;
  };
  TRY(times.first_seconds, timed());
  // Before the repetitions: an op that works in place changes its input each time.
  TRY(outputs, call.outputs());
  TRY(const std::vector<std::string> overwritten, call.overwritten_inputs());
  if (!overwritten.empty())
    return Error{
        Fault::Work,
        fmt::format("{} wrote to its input '{}'", host::full_name(call.op()), overwritten.front()),
        fmt::format("{} does not declare it", call.op().schema),
        "take the argument as Tensor& instead of const Tensor&, or write to a new tensor"};
  for (int64_t i = 0; i < repeat; ++i) {
    TRY(const double seconds, timed());
    times.later_seconds.push_back(seconds);
  }
  return times;
}

// Saves what came out, and compares it with what was expected.
Status settle_outputs(const Options& options, const std::vector<host::TensorSpec>& expected,
                      CallOutcome& outcome) {
  TRY(const std::vector<const host::Output*> tensors, tensors_for(options, outcome.outputs));
  for (size_t i = 0; i < options.output.size(); ++i)
    CHECK_OK(host::write_npy(options.output[i], *tensors[i]->array));
  for (size_t i = 0; i < expected.size(); ++i) {
    TRY(const host::Array wanted, host::make_array(expected[i], options.seed));
    const host::Array& seen = *tensors[i]->array;
    Expectation expectation{expected[i].text, tensors[i]->name, {}, {}};
    expectation.tolerance = host::tolerance_for(seen, wanted, options.rtol, options.atol);
    expectation.comparison = host::compare(seen, wanted, expectation.tolerance);
    outcome.expectations.push_back(std::move(expectation));
  }
  return {};
}

Result<CallOutcome> call_op(const Options& options, const std::vector<host::TensorSpec>& expected,
                            host::OpCall& call) {
  CallOutcome outcome;
  TRY(outcome.times, make_calls(call, options.repeat, outcome.outputs));
  CHECK_OK(settle_outputs(options, expected, outcome));
  return outcome;
}

void print_people(const Options& options, std::string out, const CallOutcome& outcome,
                  Context& context) {
  for (const host::Output& output : outcome.outputs) out += output_text(output, options.print);
  for (const Expectation& expectation : outcome.expectations) {
    if (!expectation.comparison.note.empty())
      out += fmt::format("{}: {}\n", expectation.output, expectation.comparison.note);
    if (expectation.comparison.equal)
      out += fmt::format("{}: as expected ({}; greatest error {} absolute, {} relative)\n",
                         expectation.output, expectation.source,
                         host::number_text(expectation.comparison.max_absolute, 3),
                         host::number_text(expectation.comparison.max_relative, 3));
  }
  context.print(out);
  size_t saved = 0;
  for (const host::Output& output : outcome.outputs) {
    if (!output.array || saved >= options.output.size()) continue;
    context.note(fmt::format("saved {}", options.output[saved++]));
    if (const std::string note = host::npy_note(output.array->dtype); !note.empty())
      context.note(note);
  }
}

void print_program(const Options& options, Json json, const CallOutcome& outcome,
                   Context& context) {
  Json outputs = Json::array(), expectations = Json::array();
  for (const host::Output& output : outcome.outputs) outputs.push_back(output_json(output));
  for (const Expectation& expectation : outcome.expectations)
    expectations.push_back(expectation_json(expectation));
  json["seconds"] = {{"first", outcome.times.first_seconds},
                     {"later", outcome.times.later_seconds}};
  json["outputs"] = outputs;
  json["saved"] = options.output;
  if (!outcome.expectations.empty()) json["expectations"] = expectations;
  context.print_json(json);
}

Json head_of(const host::OpCall& call) {
  Json devices = Json::array();
  for (host::Device device : call.devices()) devices.push_back(device_label(device));
  return {{"op", host::full_name(call.op())}, {"schema", call.op().schema}, {"devices", devices}};
}

// What differs from --expect; 0: nothing does.
Result<int> verdict(const CallOutcome& outcome, Context& context) {
  for (const Expectation& expectation : outcome.expectations) {
    if (expectation.comparison.equal) continue;
    Error error{Fault::Work, fmt::format("{} is not {}", expectation.output, expectation.source),
                mismatch_text(expectation), ""};
    if (!context.json) return error;
    context.note(format(error));  // stdout has its one value already
    return static_cast<int>(Fault::Work);
  }
  return 0;
}

Result<int> run_ptx(Options& options, const std::vector<host::TensorSpec>& expected,
                    Context& context) {
  host::point_to_own_engine(context.env);
  if (options.op.empty()) {
    TRY(const std::vector<std::string> kernels, ptx_kernels(options.target));
    if (context.json)
      context.print_json(Json{{"kernels", kernels}});
    else
      for (const std::string& kernel : kernels) context.print(kernel + "\n");
    return 0;
  }
  PtxLaunch launch = options.ptx;
  launch.file = options.target;
  launch.kernel = options.op;
  launch.device = options.device;
  launch.arguments = options.arguments;
  launch.seed = options.seed;
  launch.repeat = options.repeat;
  auto called = [&] {
    const CallLimit limit = limit_of(options, options.op, kPastLimitFix, context);
    return call_ptx(launch);
  }();
  TRY(PtxResult result, std::move(called));
  CallOutcome outcome;
  outcome.outputs = std::move(result.outputs);
  outcome.times = std::move(result.times);
  CHECK_OK(settle_outputs(options, expected, outcome));
  const std::string device = device_label({});
  if (context.json)
    print_program(options, {{"kernel", options.op}, {"devices", Json::array({device})}}, outcome,
                  context);
  else
    print_people(options,
                 fmt::format("{} on {}: {}\n", result.kernel, device,
                             text::duration(outcome.times.first_seconds)),
                 outcome, context);
  return verdict(outcome, context);
}

Result<int> run(Options& options, Context& context) {
  TRY(const std::vector<host::TensorSpec> expected, parse_expectations(options, context));
  CHECK_OK(apply_watch_options(options.watch, options.device));
  if (names_ptx(options.target)) return run_ptx(options, expected, context);
  if (!options.ptx.grid.empty() || !options.ptx.block.empty() || options.ptx.shared_bytes)
    return Error{Fault::Usage, "--grid, --block and --shared do not belong to " + options.target,
                 "an op launches its own kernels; they are for PTX", "leave them out"};
  TRY(const host::OpLibrary library, open_target(options, context));
  if (options.op.empty()) {
    context.json ? context.print_json(ops_json(library)) : context.print(ops_text(library));
    return 0;
  }
  TRY(const host::BoundCall bound, host::bind_call(library.ops(), options.op, options.arguments));
  TRY(const host::Device device, library.default_device());
  TRY(host::OpCall call, host::OpCall::prepare(library, bound, device, options.seed));
  context.doing(fmt::format("calling {}", options.op));
  auto called = [&] {
    const CallLimit limit = limit_of(options, options.op, kPastLimitFix, context);
    return call_op(options, expected, call);
  }();
  TRY(const CallOutcome outcome, std::move(called));
  if (context.json)
    print_program(options, head_of(call), outcome, context);
  else
    print_people(options, call_text(call, outcome.times), outcome, context);
  return verdict(outcome, context);
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A .cu file, a project folder, a library that kiln build made, or PTX")
      ->required()
      ->type_name("");
  app.add_option("OP", options->op, "The op, or OP.OVERLOAD; without it the ops are listed")
      ->type_name("");
  add_op_arguments(app, options->arguments,
                   "Its arguments, positional or as NAME=VALUE; see below");
  add_list(app, "-o,--output", options->output, "FILE.npy",
           "Save the next tensor result to this file (repeatable)");
  add_list(app, "--expect", options->expect, "TENSOR",
           "Compare the next tensor result with this; exit 1 if it differs");
  app.add_option("--rtol", options->rtol, "Relative tolerance of --expect (default: by dtype)")
      ->type_name("NUMBER");
  app.add_option("--atol", options->atol, "Absolute tolerance of --expect (default: by dtype)")
      ->type_name("NUMBER");
  app.add_option("--repeat", options->repeat, "Call it N more times and print the times")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX));
  app.add_option("--seed", options->seed, "Seed for random tensors (default: 0)")->type_name("N");
  app.add_option("--print", options->print,
                 "Elements shown at each end of a dimension; 0 shows none (default: 3)")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX));
  app.add_option("--grid", options->ptx.grid, "Blocks of a kernel in PTX: 4, or 4x2x1")
      ->type_name("SIZE");
  app.add_option("--block", options->ptx.block, "Threads of a block: 128, or 32x4")
      ->type_name("SIZE");
  app.add_option("--shared", options->ptx.shared_bytes,
                 "Bytes of dynamic shared memory (default: 0)")
      ->type_name("BYTES");
  add_limit(app, options->limit_s, "a call");
  add_device(app, options->device);
  add_watch_options(app, options->watch);
  add_build_options(app, options->request);
  app.footer(
      "Tensors: KIND:DTYPE:SHAPE, as randn:f32:1024x1024, arange:i64:5, ones:bf16:2^20,\n"
      "full=3:f32:8, randint=0,10:i32:4x4; kinds zeros ones eye rand randn empty full arange\n"
      "randint; options :seed=N :t :strides=N,N :offset=N @cuda:N; or a .npy file. Others: 3,\n"
      "2.5, true, none, [1,2,3], f32, cuda:0, text. A negative value that does not start with a\n"
      "digit is written NAME=-inf.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace call_cli

const Command call_command = {"call", "Call an op without Python and without torch",
                              call_cli::setup};

}  // namespace kiln::cli
