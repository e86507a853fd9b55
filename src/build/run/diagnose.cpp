// SPDX-License-Identifier: Apache-2.0
// What does a compiler's log say went wrong, in kiln's form?
#include "build/run/diagnose.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::build {

namespace {

struct Remedy {
  std::string_view sign;  // in the log
  Fault fault;
  std::string_view fix;
};

constexpr std::string_view kWhereHeaders =
    "add the header's folder: -I FOLDER, or include = [...] in kiln.toml";
constexpr Remedy kRemedies[] = {
    {"No space left on device", Fault::Environment,
     "free some space, or choose another folder: --build-dir, XDG_CACHE_HOME, TMPDIR"},
    {"Disk quota exceeded", Fault::Environment,
     "free some space, or choose another folder: --build-dir, XDG_CACHE_HOME, TMPDIR"},
    {"Read-only file system", Fault::Environment,
     "choose another folder: --build-dir, XDG_CACHE_HOME, TMPDIR"},
    {"Killed", Fault::Environment,
     "the system killed the compiler, most likely because memory ran out: set MAX_JOBS=1"},
    {"out of memory", Fault::Environment, "set MAX_JOBS=1, or compile for fewer architectures"},
    {"unsupported GNU version", Fault::Environment, "set CXX to a g++ that this nvcc supports"},
    {"undefined reference to `main'", Fault::Work,
     "a program needs main; for ops: kiln build without --program, and kiln call"},
    {"undefined reference to", Fault::Work,
     "name the source or the library that defines it: --ldflag=-lNAME"},
    {".h: No such file or directory", Fault::Work, kWhereHeaders},
    {".cuh: No such file or directory", Fault::Work, kWhereHeaders},
    {".hpp: No such file or directory", Fault::Work, kWhereHeaders},
    {"ptxas findings are errors here", Fault::Work,
     "leave out --findings=error, or findings = \"error\" in kiln.toml, to get a warning instead"},
    {"not supported on .target 'sm_90'", Fault::Work,
     "--arch 9.0a: only the a variant has wgmma and setmaxnreg"},
    {"not supported on .target 'sm_100'", Fault::Work,
     "--arch 10.0a: only the a and f variants have tcgen05"},
    {"requires --extended-lambda", Fault::Work, "--cuda-flag=--expt-extended-lambda"},
    {"requires --expt-extended-lambda", Fault::Work, "--cuda-flag=--expt-extended-lambda"},
};

// An assertion in one of kiln's headers is about the user's line, not the header's. nvcc:
// `op.h(12): error: static assertion failed with "TEXT"`; gcc: `op.h:12:3: error: static assertion
// failed: TEXT`.
std::string assertion_in_own_header(std::string_view log) {
  for (std::string_view line : text::lines(log)) {
    size_t failed = line.find("static assertion failed");
    if (failed == std::string_view::npos ||
        line.substr(0, failed).find("/include/kiln/") == std::string_view::npos)
      continue;
    std::string_view message =
        text::trim(line.substr(failed + std::string_view("static assertion failed").size()));
    for (std::string_view lead : {"with", ":", "\""})
      if (message.starts_with(lead)) message = text::trim(message.substr(lead.size()));
    if (message.ends_with('"')) message.remove_suffix(1);
    return std::string(message);
  }
  return "";
}

// "add.cu(14):", the first place in the user's source that is named after the assertion: cudafe
// says "at line 14 of add.cu".
std::string place_in_source(std::string_view log, const std::string& shown) {
  for (std::string_view line : text::lines(log.substr(log.find("static assertion failed")))) {
    std::string_view trimmed = text::trim(line);
    if (trimmed.starts_with(shown + "(") || trimmed.starts_with(shown + ":"))
      return std::string(trimmed.substr(0, trimmed.find_first_of(" ", shown.size())));
    size_t at = trimmed.find("at line ");
    if (at == std::string_view::npos || trimmed.find(shown, at) == std::string_view::npos) continue;
    std::string_view number = trimmed.substr(at + 8);
    return fmt::format("{}({}):", shown, number.substr(0, number.find(' ')));
  }
  return shown + ":";
}

// The lines before the first error are warnings and notes about files; the error's own line goes
// first.
std::string error_first(std::string_view log) {
  auto lines = text::lines(log);
  size_t first = 0;
  while (first < lines.size() && lines[first].find("error") == std::string_view::npos &&
         lines[first].find("fatal") == std::string_view::npos &&
         lines[first].find("undefined reference") == std::string_view::npos)
    ++first;
  if (first == 0 || first == lines.size()) return std::string(text::trim(log));
  // gcc writes "In file included from" before its error; they belong together.
  while (first > 0 &&
         (lines[first - 1].starts_with("In file included") || lines[first - 1].starts_with("   ")))
    --first;
  if (first == 0) return std::string(text::trim(log));
  size_t offset = static_cast<size_t>(lines[first].data() - log.data());
  return std::string(text::trim(log.substr(offset))) + "\n" +
         std::string(text::trim(log.substr(0, offset)));
}

}  // namespace

bool names_unknown_arch(std::string_view log) {
  return log.find("Unsupported gpu architecture") != std::string_view::npos ||
         (log.find("is not defined for option 'gpu-") != std::string_view::npos);
}

Error diagnose(const Step& step, std::string_view log, std::string_view supported_archs) {
  std::string text(log);
  const std::string& shown = step.shown;
  std::string what = step.what;
  if (!step.source.empty()) {
    text = text::replace_all(text, step.source, shown);
    what = "compile " +
           step.source.substr(step.source.rfind('/') + 1);  // whichever of its steps failed
  }
  Error error{Fault::Work, fmt::format("cannot {}", what), error_first(text), ""};
  if (error.why.empty()) error.why = "the command printed nothing";
  if (names_unknown_arch(text)) {
    error.fault = Fault::Usage;
    if (!supported_archs.empty())
      error.fix = fmt::format("use --arch with an architecture that this nvcc supports: {}",
                              supported_archs);
    return error;
  }
  error.fix = step.source.empty() ? "see its command line: kiln build -v"
                                  : "fix the source; kiln build -v prints the command lines";
  if (std::string assertion = assertion_in_own_header(text); !assertion.empty()) {
    error.why = fmt::format("{} error: {}\n{}", place_in_source(text, shown), assertion, error.why);
    return error;
  }
  for (const Remedy& remedy : kRemedies) {
    if (text.find(remedy.sign) == std::string::npos) continue;
    error.fault = remedy.fault;
    error.fix = remedy.fix;
    return error;
  }
  return error;
}

}  // namespace kiln::build
