// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/watched_process.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "base/text.h"
#include "build/plan/source_scan.h"
#include "cli/build_options.h"
#include "cli/call_limit.h"
#include "cli/commands/bench/bench_process.h"
#include "cli/programs.h"
#include "sys/files.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;
using WatchKind = WatchedProcess::Kind;

constexpr std::string_view kSourceEndings[] = {".cu", ".cpp", ".cc", ".cxx", ".c++", ".ptx"};

bool names_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// What `kiln run` or a compiler made: it runs as it is, whatever sources it came from.
bool is_executable_file(const fs::path& path) {
  const sys::FileState state = sys::real_files().state(path);
  if (!state.is_file() || !state.is_executable || names_library(path)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(4, ' ');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == "\177ELF";
}

bool holds_program(const fs::path& path) {
  if (names_library(path) || !sys::real_files().state(path).is_file()) return false;
  const build::SourceFacts facts = build::scan_source(sys::real_files(), path, {});
  return facts.defines_main && !facts.defines_op;
}

Result<WatchedProcess> script_process(const WatchTarget& target, Context& context) {
  if (!sys::real_files().state(context.directory / target.name).is_file())
    return Error{Fault::Usage, target.cannot(), "there is no such file", "check the path"};
  TRY(Python python, find_python(context, target.cannot()));
  WatchedProcess out{WatchKind::Script, {}};
  out.spec.env = std::move(python.env);
  out.spec.arguments = {python.program, target.name};
  return out;
}

Result<std::string> built_file(const WatchTarget& target, bool program, Context& context) {
  const fs::path path = context.directory / target.name;
  if (names_library(path)) return target.name;
  if (is_executable_file(path)) return path.string();
  build::Request request = target.request;
  request.targets = {target.name};
  request.program = program;
  TRY(const build::Outcome outcome, build_for(context, request));
  return outcome.file.string();
}

Result<WatchedProcess> built_process(const WatchTarget& target, Context& context) {
  const fs::path path = context.directory / target.name;
  const bool program = is_executable_file(path) || holds_program(path);
  WatchedProcess out{program ? WatchKind::Program : WatchKind::Op, {}};
  const std::string name = path.filename().string();
  const bool may_hold_ops = sys::real_files().state(path).is_directory || names_library(path) ||
                            std::ranges::any_of(kSourceEndings, [&](std::string_view ending) {
                              return name.ends_with(ending);
                            });
  if (!program && may_hold_ops && target.arguments.empty() && sys::real_files().state(path).exists)
    return Error{Fault::Usage, target.cannot(), "no op was named",
                 fmt::format("kiln {} {} OP ARGS", target.command, target.name)};
  TRY(out.spec.env, program_environment(context.env));
  TRY(const std::string built, built_file(target, program, context));
  if (program) {
    out.spec.arguments = {built};
    return out;
  }
  TRY(const fs::path own, sys::own_executable());
  out.spec.arguments = {own.string(), "call", built, "--print=0", "--"};
  return out;
}

std::string named_signal(int signal) {
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

// "  why: TEXT" -> "TEXT".
std::string labelled(std::string_view line, std::string_view label) {
  return line.starts_with(label) ? std::string(line.substr(label.size())) : "";
}

}  // namespace

Result<WatchedProcess> watched_process(const WatchTarget& target, Context& context) {
  TRY(WatchedProcess out, target.name.ends_with(".py") ? script_process(target, context)
                                                       : built_process(target, context));
  std::vector<std::string>& words = out.spec.arguments;
  words.insert(words.end(), target.arguments.begin(), target.arguments.end());
  words.insert(words.end(), context.rest.begin(), context.rest.end());
  return out;
}

bool has_failed(const sys::ProcessResult& done) {
  return done.exit_code || done.signal || done.timed_out;
}

Error error_of_kiln(const std::string& output, int exit_code, Error otherwise) {
  const std::string text = "\n" + output;
  const size_t at = text.rfind("\nerror: ");
  const bool has_code =
      exit_code >= static_cast<int>(Fault::Work) && exit_code <= static_cast<int>(Fault::Bug);
  if (at == std::string::npos || !has_code) return otherwise;
  Error out{static_cast<Fault>(exit_code), "", "", ""};
  for (std::string_view line : text::lines(std::string_view(text).substr(at + 1))) {
    if (out.what.empty()) out.what = labelled(line, "error: ");
    if (out.why.empty()) out.why = labelled(line, "  why: ");
    if (out.fix.empty()) out.fix = labelled(line, "  fix: ");
  }
  // A reason of several lines stands before, the first of them again in the error.
  const size_t reason = text.substr(0, at + 1).rfind("\n" + out.why + "\n");
  if (!out.why.empty() && reason != std::string::npos)
    out.why = text::trim(text.substr(reason + 1, at - reason));
  return out;
}

Error failure_of(const WatchTarget& target, WatchedProcess::Kind kind,
                 const sys::ProcessResult& done, double limit_s) {
  const std::string what = target.name + " failed";
  if (done.timed_out)
    return {Fault::Work, target.cannot(), past_limit(limit_s),
            "look for an endless loop, use smaller inputs, or give it more time"};
  std::string alone = kind == WatchKind::Script ? "python3 " + target.name
                      : kind == WatchKind::Op   ? "kiln call " + target.name
                                                : "kiln run " + target.name;
  if (target.command != "sanitize") alone += "; kiln sanitize finds faults";
  if (done.signal)
    return {Fault::Work, what, "it was ended by " + named_signal(done.signal),
            "check that it runs on its own: " + alone};
  const Error plain{Fault::Work, what, fmt::format("it ended with exit code {}", done.exit_code),
                    "check that it runs on its own: " + alone};
  return kind == WatchKind::Op ? error_of_kiln(done.out, done.exit_code, plain) : plain;
}

}  // namespace kiln::cli
