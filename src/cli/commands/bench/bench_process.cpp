// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench/bench_process.h"

#include <fmt/format.h>
#include <string.h>

#include <csignal>

#include "base/text.h"
#include "cli/programs.h"
#include "host/library.h"
#include "project/home.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

// Two files that go when it goes.
class Letters {
 public:
  static Result<Letters> open() {
    TRY(fs::path folder, sys::make_temporary_folder("kiln-bench"));
    return Letters(std::move(folder));
  }
  Letters(Letters&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  Letters& operator=(Letters&&) = delete;
  ~Letters() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  fs::path request() const { return folder_ / "request.json"; }
  fs::path answer() const { return folder_ / "answer.json"; }

 private:
  explicit Letters(fs::path folder) : folder_(std::move(folder)) {}
  fs::path folder_;
};

std::string last_words(const std::string& output) {
  const std::vector<std::string_view> lines = text::lines(text::trim(output));
  std::string words;
  for (size_t i = lines.size() > 5 ? lines.size() - 5 : 0; i < lines.size(); ++i)
    words += (words.empty() ? "" : "\n") + std::string(lines[i]);
  return words;
}

Error ended_badly(const measure::OpRequest& request, const sys::ProcessResult& done,
                  double limit_s) {
  const std::string what = fmt::format("{} cannot be timed", request.op);
  if (done.timed_out)
    return {Fault::Work, what, fmt::format("it did not finish in {:.0f} s", limit_s),
            "look for an endless loop; --limit SECONDS gives it more time"};
  if (done.signal)
    return {
        Fault::Work, what,
        fmt::format("the process ended by signal {} ({})", done.signal, ::strsignal(done.signal)),
        done.signal == SIGKILL
            ? "it may have run out of memory: use smaller tensors"
            : "kiln call runs it once; on the engine the message names the line"};
  return {Fault::Work, what,
          fmt::format("the process ended with code {}: {}", done.exit_code, last_words(done.out)),
          "check that it runs on its own: kiln call FILE.cu OP ARGS"};
}

Error error_of(const Json& error) {
  Error out{Fault::Work, error.value("what", "the benchmark failed"), error.value("why", ""),
            error.value("fix", "")};
  const std::string fault = error.value("fault", "work");
  if (fault == "usage") out.fault = Fault::Usage;
  if (fault == "environment") out.fault = Fault::Environment;
  if (fault == "bug") out.fault = Fault::Bug;
  return out;
}

}  // namespace

Result<Python> find_python(Context& context, const std::string& what_for) {
  TRY(const project::Home home, project::find_home(context.env));
  TRY(sys::Environment env, program_environment(context.env));
  const std::string search = env.get("PATH").value_or("/usr/bin:/bin");
  const std::string named = env.get("KILN_PYTHON").value_or("");
  const std::string wished = named.empty() ? "python3" : named;
  const fs::path program = sys::find_program(sys::real_files(), wished, search);
  if (program.empty())
    return named.empty()
               ? Error{Fault::Environment, what_for, "python3 is not on PATH",
                       "install Python, or set KILN_PYTHON to the path of one"}
               : Error{Fault::Environment, what_for,
                       fmt::format("there is no program '{}', which KILN_PYTHON names", named),
                       "correct KILN_PYTHON, or unset it to use python3"};
  std::string package = home.root.parent_path().string();
  // Its sitecustomize.py reads the variable: a script need not import kiln.
  if (env.get("KILN_TRITON").value_or("") == "1")
    package = (home.root / "_site").string() + ":" + package;
  const auto former = env.get("PYTHONPATH");
  env.set("PYTHONPATH", former ? package + ":" + *former : package);
  return Python{program.string(), std::move(env)};
}

Result<Python> python_with_torch(Context& context, const std::string& what_for) {
  TRY(Python python, find_python(context, what_for));
  sys::ProcessSpec look;
  look.arguments = {python.program, "-c",
                    "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"};
  look.env = python.env;
  TRY(const sys::ProcessResult found, sys::real_processes().run(look));
  if (found.exit_code != 0)
    return Error{Fault::Environment, what_for, fmt::format("{} has no torch", python.program),
                 "pip install torch; KILN_PYTHON names another Python"};
  return python;
}

Result<results::BenchResult> run_bench_process(const measure::OpRequest& request, double limit_s,
                                               Context& context) {
  TRY(const Letters letters, Letters::open());
  CHECK_OK(sys::real_files().write(letters.request(), dump(measure::to_json(request)),
                                   sys::Durable::No));
  sys::ProcessSpec spec;
  if (request.against.empty()) {
    TRY(const fs::path own, sys::own_executable());
    TRY(spec.env, program_environment(context.env));
    spec.arguments = {own.string(), "bench", "--process", letters.request().string(),
                      letters.answer().string()};
  } else {
    TRY(Python python,
        python_with_torch(context, "cannot compare with " + request.against.front()));
    spec.arguments = {python.program, "-m", "kiln._processes.bench", letters.request().string(),
                      letters.answer().string()};
    spec.env = std::move(python.env);
  }
  if (!request.device.empty()) spec.env->set("KILN_DEVICE", request.device);
  spec.limit_s = limit_s;
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  const auto text = sys::real_files().read(letters.answer());
  if (!text) return ended_badly(request, done, limit_s);
  if (context.verbose && !done.out.empty()) context.note(text::trim(done.out));
  TRY(const Json answer, parse_json(*text, "the answer of the benchmark"));
  if (answer.contains("error")) return error_of(answer["error"]);
  return results::read_bench(answer, "the answer of the benchmark");
}

Result<Json> ask_python(const Python& python, const std::string& module, const Json& request,
                        double limit_s, const std::string& what, bool show, Context& context) {
  TRY(const Letters letters, Letters::open());
  CHECK_OK(sys::real_files().write(letters.request(), dump(request), sys::Durable::No));
  sys::ProcessSpec spec;
  spec.arguments = {python.program, "-m", module, letters.request().string(),
                    letters.answer().string()};
  spec.env = python.env;
  spec.limit_s = limit_s;
  TRY(const sys::ProcessResult done, sys::real_processes().run(spec));
  if (show && !text::trim(done.out).empty()) context.note(text::trim(done.out));
  const auto text = sys::real_files().read(letters.answer());
  if (!text)
    return Error{Fault::Work, what,
                 done.timed_out ? fmt::format("it did not finish in {:.0f} s", limit_s)
                                : fmt::format("the process ended with code {}: {}", done.exit_code,
                                              last_words(done.out)),
                 done.timed_out
                     ? "give it more time: --limit SECONDS"
                     : "check that it runs on its own: kiln call, or python3 for a script"};
  TRY(Json answer, parse_json(*text, "the answer of Python"));
  if (answer.contains("error")) return error_of(answer["error"]);
  return answer;
}

Result<int> be_bench_process(const std::string& request_path, const std::string& answer_path) {
  const auto answer = [&]() -> Result<Json> {
    TRY(const std::string text, sys::real_files().read(request_path));
    TRY(const Json json, parse_json(text, request_path));
    TRY(const measure::OpRequest request, measure::op_request(json));
    TRY(const results::BenchResult result, measure::bench_op(request));
    return to_json(result);
  }();
  CHECK_OK(sys::real_files().write(answer_path, dump(answer ? *answer : to_json(answer.error())),
                                   sys::Durable::No));
  return 0;
}

}  // namespace kiln::cli
