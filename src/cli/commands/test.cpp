// SPDX-License-Identifier: Apache-2.0
// `kiln test`: does a project's code do what it should? It builds, its program ends with 0, its
// Python tests pass.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/call_limit.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "project/manifest.h"
#include "sys/clock.h"

namespace kiln::cli {
namespace test_cli {
namespace {

namespace fs = std::filesystem;

struct Part {
  std::string name;
  std::string state;  // passed, failed, skipped
  std::string why;    // of the latter two
  double seconds = 0;
};

struct Session {
  Context& context;
  fs::path folder;
  build::Request request;
  double limit_s = 0;  // of the program, of pytest and of the benchmark, each
  std::string select;  // pytest's -k; empty: all
  std::vector<Part> parts;

  // `check` gives "" for passed, "skipped: WHY", or why it failed.
  template <class Check>
  void add(std::string name, Check check) {
    double begun = sys::now_seconds();
    std::string said = check();
    Part part{std::move(name), said.empty() ? "passed" : "failed", said, 0};
    if (said.starts_with("skipped: ")) part = {part.name, "skipped", said.substr(9), 0};
    part.seconds = sys::now_seconds() - begun;
    const std::string line =
        fmt::format("{:8} {}{}{}", part.state, part.name, part.why.empty() ? "" : ": ", part.why);
    part.state == "passed" ? context.note(line) : context.warn(line);
    parts.push_back(std::move(part));
  }
};

std::string first_line(const Error& error) {
  return error.what + ": " + error.why.substr(0, error.why.find('\n'));
}

// Its words go to stderr with --json, where stdout is for one JSON value. "" for an exit code of 0,
// else what went wrong.
std::string run_child(Session& session, std::vector<std::string> words, const sys::Environment& env,
                      const std::string& shown) {
  sys::ProcessSpec spec;
  spec.arguments = std::move(words);
  spec.directory = session.folder;
  spec.env = env;
  spec.capture = session.context.json;
  spec.limit_s = session.limit_s;
  session.context.end_progress();
  auto result = sys::real_processes().run(spec);
  if (!result) return first_line(result.error());
  if (session.context.json) session.context.note(text::trim(result->out));
  if (result->timed_out) return past_limit(session.limit_s);
  return result->exit_code == 0 ? "" : fmt::format("{}exit code {}", shown, result->exit_code);
}

std::string run_program(Session& session, const fs::path& program, const sys::Environment& env) {
  return run_child(session, {program.string()}, env, "");
}

// Which of them this Python lacks. Looked for and not imported: torch takes seconds.
Result<std::vector<std::string>> missing_packages(const Python& python,
                                                  const std::vector<std::string>& wanted) {
  sys::ProcessSpec look;
  look.arguments = {python.program, "-c",
                    "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if "
                    "u.find_spec(n) is None])"};
  look.arguments.insert(look.arguments.end(), wanted.begin(), wanted.end());
  look.env = python.env;
  TRY(const sys::ProcessResult found, sys::real_processes().run(look));
  if (found.exit_code != 0)
    return Error{Fault::Environment, fmt::format("cannot use {}", python.program),
                 std::string(text::trim(found.out)), "set KILN_PYTHON to a Python that works"};
  std::vector<std::string> names;
  for (std::string_view name : text::split_any(found.out, " \n")) names.emplace_back(name);
  return names;
}

std::string run_pytest(Session& session) {
  auto python = find_python(session.context, "cannot run the tests");
  if (!python) return "skipped: " + python.error().why;
  auto missing = missing_packages(*python, {"torch", "pytest"});
  if (!missing) return first_line(missing.error());
  if (!missing->empty())
    return fmt::format("skipped: {0} has no {1}; {0} -m pip install {2}, or set KILN_PYTHON",
                       python->program, fmt::join(*missing, " and no "), fmt::join(*missing, " "));
  std::vector<std::string> words = {python->program, "-m", "pytest", "-q", "tests"};
  if (!session.select.empty()) words.insert(words.end(), {"-k", session.select});
  const std::string failed =
      run_child(session, std::move(words), python->env, "pytest ended with ");
  constexpr const char* kNothingSelected = "exit code 5";  // pytest.ExitCode.NO_TESTS_COLLECTED
  if (!session.select.empty() && failed.ends_with(kNothingSelected))
    return fmt::format("no test matches -k '{}'", session.select);
  return failed;
}

// The scaffold's own bench.py, which prints its times next to torch's; without torch what kiln.toml
// declares.
std::string run_bench(Session& session, const sys::Environment& env) {
  auto python = find_python(session.context, "cannot run bench.py");
  auto missing = python ? missing_packages(*python, {"torch"}) : python.error();
  std::vector<std::string> words;
  if (missing && missing->empty()) {
    words = {python->program, "bench.py"};
  } else {
    auto own = sys::own_executable();
    if (!own) return first_line(own.error());
    const std::string why = !python   ? python.error().why
                            : missing ? "no torch for bench.py"
                                      : missing.error().what;
    session.context.note(why + ": kiln bench, without a peer");
    words = {own->string(), "bench"};
  }
  const std::string shown = words.back() + " ended with ";
  return run_child(session, std::move(words), python ? python->env : env, shown);
}

struct Extent {
  bool bench = false;
  double limit_s = 0;
  std::string select;  // only tests with these names
};

Result<int> run(build::Request request, const std::string& target, const Extent& extent,
                Context& context) {
  fs::path folder = (context.directory / target).lexically_normal();
  const sys::Files& files = sys::real_files();
  if (!files.state(folder / project::kManifestName).is_file())
    return Error{Fault::Usage, fmt::format("cannot test {}", target),
                 files.state(folder).is_file() ? "it is a file; kiln test takes a project's folder"
                 : files.state(folder).exists  ? fmt::format("it has no {}", project::kManifestName)
                                               : "there is no such folder",
                 "kiln new NAME makes a project with tests"};
  TRY(sys::Environment env, program_environment(context.env));
  Session session{context, folder, std::move(request), extent.limit_s, extent.select, {}};

  session.request.targets = {folder.string()};
  TRY(build::Outcome library, build_for(context, session.request));
  session.add("build " + library.name, [] { return std::string(); });
  session.parts.back().seconds = library.seconds;
  if (extent.select.empty() && files.state(folder / "main.cu").is_file()) {
    build::Request program = session.request;
    program.targets = {(folder / "main.cu").string()};
    program.program = true;
    TRY(build::Outcome built, build_for(context, program));
    session.add("main.cu", [&] { return run_program(session, built.file, env); });
  }
  if (!extent.select.empty() && !files.state(folder / "tests").is_directory)
    return Error{Fault::Usage, fmt::format("cannot select tests of {}", target),
                 "it has no folder tests", "leave out -k"};
  if (files.state(folder / "tests").is_directory)
    session.add("tests", [&] { return run_pytest(session); });
  bool has_bench = files.state(folder / "bench.py").is_file();
  if (extent.bench && has_bench) session.add("bench", [&] { return run_bench(session, env); });

  if (sys::pending_interrupt()) return sys::interrupted_error();
  bool failed = false;
  Json parts = Json::array();
  for (const Part& part : session.parts) {
    failed |= part.state == "failed";
    parts.push_back(
        {{"name", part.name}, {"state", part.state}, {"why", part.why}, {"seconds", part.seconds}});
  }
  if (context.json) context.print_json({{"passed", !failed}, {"parts", parts}});
  return failed ? 1 : 0;
}

Run setup(CLI::App& app) {
  struct Options {
    build::Request request;
    std::string target = ".";
    Extent extent;
  };
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target, "A folder with kiln.toml (default: this one)")
      ->type_name("");
  app.add_flag("--bench", options->extent.bench,
               "Run bench.py at the end, or kiln bench without torch");
  app.add_option("-k,--select", options->extent.select,
                 "Run only the Python tests whose names match, as pytest -k; not main.cu")
      ->type_name("EXPR");
  add_limit(app, options->extent.limit_s, "a program, pytest or benchmark");
  add_build_options(app, options->request);
  app.footer(
      "Builds the library, builds and runs main.cu, runs pytest on tests/. What is missing is "
      "reported as skipped.");
  return [options](Context& context) {
    return run(options->request, options->target, options->extent, context);
  };
}

}  // namespace
}  // namespace test_cli

const Command test_command = {"test", "Build a project and run its tests", test_cli::setup};

}  // namespace kiln::cli
