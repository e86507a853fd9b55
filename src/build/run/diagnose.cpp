// SPDX-License-Identifier: Apache-2.0
// What does a compiler's log say went wrong, in kiln's form?
#include "build/run/diagnose.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "build/run/plain_log.h"
#include "build/run/run_step.h"

namespace kiln::build {

namespace {

struct Remedy {
  std::string_view sign;  // in the log
  Fault fault;
  std::string_view fix;
};

constexpr std::string_view kWhereHeaders =
    "add the header's folder: -I FOLDER, or include = [...] in kiln.toml";
constexpr std::string_view kMoreRoom =
    "free some space, or choose another folder: --build-dir, XDG_CACHE_HOME, TMPDIR";
constexpr std::string_view kLessMemory =
    "memory ran out: set MAX_JOBS=1, close other programs, or compile for fewer architectures";
constexpr std::string_view kBrokenCompiler =
    "the compiler or its installation is broken, not the source: kiln doctor checks it, "
    "kiln build -v prints the command to try by hand";
constexpr std::string_view kWhereIncbin =
    "add the file's folder: -I FOLDER, or include = [...] in kiln.toml; .incbin looks there, and "
    "not next to the source";
constexpr std::string_view kDefineHere =
    "kiln does not link device code of several files: define it in this .cu or in a header that "
    "each includes (inline, static or constexpr), or pass it to the kernel as an argument";
constexpr std::string_view kLaunchFromHost =
    "kiln does not support relocatable device code, which a launch from device code needs: launch "
    "the kernel from host code, or call its code as a __device__ function";
constexpr std::string_view kFlags =
    "check the flags: --cuda-flag, --cflag, --ldflag, and their lists in kiln.toml";
constexpr std::string_view kLambda = "--cuda-flag=--expt-extended-lambda";
constexpr std::string_view kInclude = "add #include <kiln/op.h>";

// The first row whose sign is in the log decides: what the machine lacks stands before what the
// source lacks, because a compiler that was killed may have printed errors as well.
constexpr Remedy kRemedies[] = {
    {kPastLimitSign, Fault::Work, "raise --limit, or compile for fewer architectures"},
    {"No space left on device", Fault::Environment, kMoreRoom},
    {"Disk quota exceeded", Fault::Environment, kMoreRoom},
    {"Read-only file system", Fault::Environment,
     "choose another folder: --build-dir, XDG_CACHE_HOME, TMPDIR"},
    {"Killed", Fault::Environment, kLessMemory},
    {"out of memory", Fault::Environment, kLessMemory},
    {"annot allocate memory", Fault::Environment, kLessMemory},
    {"virtual memory exhausted", Fault::Environment, kLessMemory},
    {"what():  std::bad_alloc", Fault::Environment, kLessMemory},
    {"unsupported GNU version", Fault::Environment, "set CXX to a g++ that this nvcc supports"},
    {"internal compiler error", Fault::Environment,
     "this is a bug in the compiler: try another version (CUDA_HOME, CXX), or simplify the line"},
    {"Segmentation fault", Fault::Environment, kBrokenCompiler},
    {"command not found", Fault::Environment, kBrokenCompiler},
    {": not found", Fault::Environment, kBrokenCompiler},
    {"Exec format error", Fault::Environment, kBrokenCompiler},
    {"error while loading shared libraries", Fault::Environment, kBrokenCompiler},
    {"cannot execute", Fault::Environment, kBrokenCompiler},
    {"Unknown option", Fault::Usage, kFlags},
    {"nrecognized option", Fault::Usage, kFlags},
    {"nrecognized command-line option", Fault::Usage, kFlags},
    {"undefined reference to `main'", Fault::Work,
     "a program needs main; for ops: kiln build without --program, and kiln call"},
    {"undefined reference to", Fault::Work,
     "name the source or the library that defines it: --ldflag=-lNAME"},
    {"cannot find -l", Fault::Work,
     "install that library, or add its folder: --ldflag=-L/FOLDER, ldflags in kiln.toml"},
    {"Error: file not found", Fault::Work, kWhereIncbin},
    {"Unresolved extern", Fault::Work, kDefineHere},
    {"requires separate compilation mode", Fault::Work, kLaunchFromHost},
    {"cannot open source file", Fault::Work, kWhereHeaders},
    {".h: No such file or directory", Fault::Work, kWhereHeaders},
    {".cuh: No such file or directory", Fault::Work, kWhereHeaders},
    {".hpp: No such file or directory", Fault::Work, kWhereHeaders},
    {": No such file or directory\ncompilation terminated", Fault::Work, kWhereHeaders},
    {"ptxas findings are errors here", Fault::Work,
     "leave out --findings=error, or findings = \"error\" in kiln.toml, to get a warning instead"},
    {"not supported on .target 'sm_90'", Fault::Work,
     "name 9.0a in --arch or TORCH_CUDA_ARCH_LIST: only the a variant has wgmma and setmaxnreg"},
    {"not supported on .target 'sm_100'", Fault::Work,
     "name 10.0a in --arch or TORCH_CUDA_ARCH_LIST: only the a and f variants have tcgen05"},
    {"requires --extended-lambda", Fault::Work, kLambda},
    {"requires --expt-extended-lambda", Fault::Work, kLambda},
    {"const kiln::Tensor = ", Fault::Work,
     "a const Tensor& is an input: take the parameter as Tensor& to write to it"},
};

// "Feature 'x' requires .target sm_90 or higher": ptxas names the least architecture.
std::string fix_for_arch(std::string_view log) {
  constexpr std::string_view kSign = "requires .target sm_";
  const size_t at = log.find(kSign);
  if (at == std::string_view::npos) return "";
  std::string_view number = log.substr(at + kSign.size());
  number = number.substr(0, number.find_first_not_of("0123456789"));
  if (number.size() < 2) return "";
  return fmt::format("compile for a newer GPU: {}.{} in --arch or TORCH_CUDA_ARCH_LIST",
                     number.substr(0, number.size() - 1), number.back());
}

// A source that uses kiln's names without its header: what nvcc says of that names neither.
bool lacks_header(const SourcePlace& place) {
  if (!place.read) return false;
  const std::string source = place.read(place.source);
  return source.find("KILN_OP(") != std::string::npos &&
         source.find("#include <kiln/") == source.npos && source.find("#include \"") == source.npos;
}

// The lines before the first error are warnings and notes about files; the error's own line goes
// first.
std::string error_first(std::string_view log) {
  auto lines = text::lines(log);
  size_t first = 0;
  while (first < lines.size() && lines[first].find("error") == std::string_view::npos &&
         lines[first].find("fatal") == std::string_view::npos &&
         lines[first].find("undefined reference") == std::string_view::npos &&
         lines[first].find("cannot find -l") == std::string_view::npos)
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

std::string said_by_compilers(std::string_view log) {
  std::string out;
  for (std::string_view line : text::lines(log)) {
    const bool echo = line.starts_with(' ') && line.find("what():") == line.npos;
    const size_t told = std::min(
        {line.find("static assertion failed"), line.find("#error"), line.find("#warning")});
    if (!echo) out.append(line.substr(0, told)).append("\n");
  }
  return out;
}

bool names_unknown_arch(std::string_view log) {
  return log.find("Unsupported gpu architecture") != std::string_view::npos ||
         (log.find("is not defined for option 'gpu-") != std::string_view::npos);
}

Error diagnose(const Step& step, std::string_view log, std::string_view supported_archs,
               const ReadFileText& read, bool whole) {
  const SourcePlace place{step.source, step.shown, read};
  const PlainLog plain = plain_log(log, place);
  const std::string raw =
      step.source.empty() ? std::string(log) : text::replace_all(log, step.source, step.shown);
  std::string what = step.what;
  if (!step.source.empty())  // whichever of its steps failed
    what = "compile " + step.source.substr(step.source.rfind('/') + 1);
  Error error{Fault::Work, fmt::format("cannot {}", what), error_first(whole ? raw : plain.text),
              ""};
  if (error.why.empty()) error.why = "the command printed nothing";
  if (names_unknown_arch(log)) {
    error.fault = Fault::Usage;
    if (!supported_archs.empty())
      error.fix = fmt::format(
          "where it is named (--arch, TORCH_CUDA_ARCH_LIST, nvcc's flags in setup.py), name one "
          "that "
          "this nvcc supports: {}",
          supported_archs);
    return error;
  }
  const std::string said = said_by_compilers(log);
  for (const Remedy& remedy : kRemedies) {
    if (said.find(remedy.sign) == std::string::npos) continue;
    error.fault = remedy.fault;
    error.fix = remedy.fix;
    return error;
  }
  if (!plain.why.empty()) {
    error.why = whole ? plain.why + "\n" + error.why : plain.why;
    error.fix = plain.fix;
  }
  if (error.fix.empty()) error.fix = fix_for_arch(log);
  if (error.fix.empty() && lacks_header(place)) error.fix = kInclude;
  if (!error.fix.empty()) return error;
  error.fix = "see its command line: kiln build -v";
  if (plain.located)
    error.fix = "fix the source; kiln build -v prints all that the compiler said";
  else if (!step.source.empty() && log.find("error") == std::string_view::npos) {
    error.fault = Fault::Environment;
    error.fix = kBrokenCompiler;
  }
  return error;
}

}  // namespace kiln::build
