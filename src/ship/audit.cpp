// SPDX-License-Identifier: Apache-2.0
// Is a wheel fit for PyPI and for other people's machines?
#include "ship/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "inspect/needs.h"
#include "project/package_name.h"

namespace kiln::ship {

namespace {

// PyPI's limit for one file, unless its owners were granted more.
constexpr uint64_t kPypiBytes = 100ull << 20;

constexpr std::string_view kTorchStems[] = {"libtorch", "libc10", "libcaffe2", "libshm"};
constexpr std::string_view kCudaStems[] = {"libcudart", "libcublas",     "libcudnn",     "libcufft",
                                           "libcurand", "libcusolver",   "libcusparse",  "libnccl",
                                           "libnvrtc",  "libnvToolsExt", "libnvJitLink", "libcupti",
                                           "libcufile", "libnvshmem",    "libcuda.so"};

using Findings = std::vector<Finding>;
using Check = void (*)(const WheelView&, Findings&);

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

template <class List>
bool begins_with_one_of(std::string_view name, const List& stems) {
  return std::any_of(std::begin(stems), std::end(stems),
                     [&](std::string_view stem) { return name.starts_with(stem); });
}

std::string some(const std::vector<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<long>(std::min<size_t>(names.size(), 3)));
  return text::join(shown, ", ") +
         (names.size() > 3 ? fmt::format(" and {} more", names.size() - 3) : "");
}

// "2.17" of "manylinux_2_17_aarch64"; of several tags joined by dots the oldest; empty for linux_*.
std::string promised_glibc(std::string_view platform) {
  std::string oldest;
  for (std::string_view tag : text::split(platform, '.')) {
    std::string version;
    auto parts = text::split(tag, '_');
    if (tag.starts_with("manylinux_") && parts.size() >= 3)
      version = fmt::format("{}.{}", parts[1], parts[2]);
    if (tag.starts_with("manylinux2014")) version = "2.17";
    if (tag.starts_with("manylinux2010")) version = "2.12";
    if (tag.starts_with("manylinux1_")) version = "2.5";
    if (!version.empty() && (oldest.empty() || inspect::compare_versions(version, oldest) < 0))
      oldest = version;
  }
  return oldest;
}

std::string glibc_of_tag(const std::string& tag) { return promised_glibc(tag); }

// ---- one function an area

void check_name(const WheelView& wheel, Findings& out) {
  if (!wheel.name.valid) {
    out.push_back({Verdict::Fault, "name",
                   fmt::format("'{}' is not the name of a wheel", wheel.file_name),
                   "name-version-python-abi-platform.whl"});
    return;
  }
  for (const char* file : {"METADATA", "WHEEL", "RECORD"})
    if (!wheel.texts.count(file))
      out.push_back(
          {Verdict::Fault, "name", fmt::format("it has no {} in a .dist-info", file), ""});
  if (!has_fault(out) && wheel.texts.count("METADATA")) {
    const std::string& metadata = wheel.texts.at("METADATA");
    auto name = field_values(metadata, "Name"), version = field_values(metadata, "Version");
    std::string said = name.empty() ? "" : name[0];
    if (project::package_file_name(said) != project::package_file_name(wheel.name.name) ||
        version.empty() || version[0] != wheel.name.version)
      out.push_back(
          {Verdict::Fault, "name",
           fmt::format("the file name says {} {}, METADATA says {} {}", wheel.name.name,
                       wheel.name.version, said, version.empty() ? "nothing" : version[0]),
           ""});
    if (std::string why = project::name_refused(said); !why.empty())
      out.push_back(
          {Verdict::Fault, "name", fmt::format("PyPI rejects the name '{}': {}", said, why), ""});
    if (wheel.name.version.find('+') != std::string::npos)
      out.push_back({Verdict::Fault, "name",
                     fmt::format("PyPI rejects the local version {}", wheel.name.version),
                     "a version without '+'"});
  }
  if (!has_fault(out) && wheel.texts.count("WHEEL")) {
    std::set<std::string> told;
    for (const std::string& tag : field_values(wheel.texts.at("WHEEL"), "Tag")) told.insert(tag);
    for (std::string_view python : text::split(wheel.name.python, '.'))
      for (std::string_view abi : text::split(wheel.name.abi, '.'))
        for (std::string_view platform : text::split(wheel.name.platform, '.'))
          if (std::string tag = fmt::format("{}-{}-{}", python, abi, platform); !told.count(tag))
            out.push_back(
                {Verdict::Fault, "name", fmt::format("WHEEL does not name the tag {}", tag), ""});
  }
  if (!has_fault(out))
    out.push_back({Verdict::Good, "name",
                   fmt::format("{} {}, {}-{}", wheel.name.name, wheel.name.version,
                               wheel.name.python, wheel.name.abi),
                   ""});
}

// A line of RECORD: "name,hash,size", the name in quotes where it has a comma.
std::vector<std::string> record_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

void check_record(const WheelView& wheel, Findings& out) {
  if (!wheel.texts.count("RECORD")) return;
  std::map<std::string, std::string> hashes;
  for (std::string_view line : text::lines(wheel.texts.at("RECORD")))
    if (auto fields = record_fields(text::trim(line)); fields.size() == 3)
      hashes[fields[0]] = fields[1];
  std::vector<std::string> unlisted, different, missing;
  for (const MemberView& member : wheel.members) {
    auto found = hashes.find(member.name);
    bool exempt =
        member.name == wheel.dist_info + "/RECORD" || member.name.ends_with("/RECORD.jws");
    if (found == hashes.end()) {
      if (!exempt) unlisted.push_back(member.name);
      continue;
    }
    if (!exempt && found->second.starts_with("sha256=") && found->second != member.hash)
      different.push_back(member.name);
    hashes.erase(found);
  }
  for (const auto& [name, hash] : hashes) missing.push_back(name);
  auto add = [&](const std::vector<std::string>& names, std::string_view what) {
    if (!names.empty())
      out.push_back({Verdict::Fault, "record", fmt::format("{}: {}", what, some(names)), ""});
  };
  add(unlisted, "not in RECORD");
  add(different, "does not match RECORD");
  add(missing, "in RECORD but not in the wheel");
  if (unlisted.empty() && different.empty() && missing.empty())
    out.push_back(
        {Verdict::Good, "record", fmt::format("{} files match RECORD", wheel.members.size()), ""});
}

bool is_stray(std::string_view name) {
  for (std::string_view part : text::split(name, '/'))
    if (part == "__pycache__" || part == ".git" || part == ".DS_Store" || part == "CMakeFiles" ||
        part == ".ninja_log")
      return true;
  for (std::string_view ending :
       {".pyc", ".o", ".obj", ".d", ".orig", ".rej", ".swp", ".ii", ".cubin", ".log"})
    if (name.ends_with(ending)) return true;
  return false;
}

void check_files(const WheelView& wheel, Findings& out) {
  std::vector<std::string> stray, tops, odd, special;
  std::set<std::string> seen, folded;
  for (const MemberView& member : wheel.members) {
    if (is_stray(member.name)) stray.push_back(member.name);
    if (!member.oddity.empty())
      special.push_back(fmt::format("{} is {}", member.name, member.oddity));
    if (!seen.insert(member.name).second)
      odd.push_back(member.name + " (twice)");
    else if (!folded.insert(text::lower(member.name)).second)
      odd.push_back(member.name + " (differs from another only by case)");
    for (char c : member.name)
      if (static_cast<unsigned char>(c) < 32 || c == ':' || c == '*' || c == '?' || c == '"' ||
          c == '<' || c == '>' || c == '|') {
        odd.push_back(fmt::format("{} (a character that not every system supports)",
                                  text::replace_all(member.name, "\n", "?")));
        break;
      }
    std::string top(text::split(member.name, '/')[0]);
    if (top == "tests" || top == "test" || top == "docs" || top == "examples" || top == "build" ||
        top == "src")
      tops.push_back(top);
  }
  std::sort(tops.begin(), tops.end());
  tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
  if (!odd.empty()) out.push_back({Verdict::Fault, "files", "names: " + some(odd), ""});
  if (!special.empty())
    out.push_back({Verdict::Fault, "files", "not plain files: " + some(special),
                   "do not install it; a wheel contains plain files only"});
  if (!stray.empty())
    out.push_back(
        {Verdict::Doubt, "files", "left over from a build: " + some(stray), "leave them out"});
  if (!tops.empty())
    out.push_back(
        {Verdict::Doubt, "files",
         fmt::format("it installs a package called {}, as many others do", text::join(tops, ", ")),
         "leave it out, or put it into your package"});
  if (odd.empty() && special.empty() && stray.empty() && tops.empty())
    out.push_back({Verdict::Good, "files", "no unexpected files", ""});
}

void check_bundled(const WheelView& wheel, Findings& out) {
  std::vector<std::string> torch, cuda;
  for (const MemberView& member : wheel.members) {
    std::string name = base_name(member.name);
    if (name.find(".so") == name.npos) continue;
    if (is_torch_library(name)) torch.push_back(name);
    if (is_cuda_library(name)) cuda.push_back(name);
  }
  if (!torch.empty())
    out.push_back(
        {Verdict::Fault, "bundled",
         fmt::format(
             "it brings torch itself ({}): two copies of torch in a process do not share tensors",
             some(torch)),
         "build it again and leave torch out: kiln wheel --repair on the wheel before "
         "auditwheel saw it"});
  if (!cuda.empty())
    out.push_back(
        {Verdict::Fault, "bundled",
         fmt::format("it brings CUDA libraries ({}), which torch's packages bring", some(cuda)),
         "leave them out: kiln wheel --repair on the wheel before auditwheel saw it"});
  if (torch.empty() && cuda.empty())
    out.push_back({Verdict::Good, "bundled", "no library of torch or CUDA", ""});
}

// What forbids an older tag, of whichever library needs the newest: that need not be glibc. Where
// any tag would do, the glibc that it needs.
std::string what_the_tag_rests_on(const WheelView& wheel) {
  std::string newest_tag, glibc;
  std::vector<std::string> reasons;
  for (const LibraryView& library : wheel.libraries) {
    const auto& system = library.needs.system;
    if (glibc.empty() || inspect::compare_versions(system.glibc, glibc) > 0) glibc = system.glibc;
    const std::string tag = glibc_of_tag(system.tag);
    if (system.reasons.empty() ||
        (!newest_tag.empty() && inspect::compare_versions(tag, newest_tag) <= 0))
      continue;
    newest_tag = tag;
    reasons = system.reasons;
  }
  if (!reasons.empty()) return some(reasons);
  return glibc.empty() ? "no glibc" : "GLIBC_" + glibc;
}

// pip believes the tag: a wheel that promises an older glibc than its libraries need installs and
// fails at import.
void check_platform(const WheelView& wheel, Findings& out) {
  const std::string& platform = wheel.name.platform;
  std::string promised = promised_glibc(platform);
  size_t before = out.size();
  for (const std::string& fault : wheel.unreadable)
    out.push_back({Verdict::Fault, "platform", fault, ""});
  for (const LibraryView& library : wheel.libraries) {
    if (!platform.ends_with(library.needs.machine))
      out.push_back({Verdict::Fault, "platform",
                     fmt::format("{} is for {}, the wheel's tag is {}", library.member,
                                 library.needs.machine, platform),
                     ""});
    std::string wanted = glibc_of_tag(library.needs.system.tag);
    if (!promised.empty() && (wanted.empty() || inspect::compare_versions(wanted, promised) > 0))
      out.push_back(
          {Verdict::Fault, "platform",
           fmt::format("{} is {} ({}), the wheel claims {}", library.member,
                       library.needs.system.tag, some(library.needs.system.reasons), platform),
           fmt::format("use the tag {}", library.needs.system.tag)});
  }
  if (wheel.libraries.empty() && wheel.unreadable.empty())
    out.push_back(
        {platform == "any" ? Verdict::Good : Verdict::Doubt, "platform", "no library in it", ""});
  else if (promised.empty() && out.size() == before)
    out.push_back({Verdict::Fault, "platform", fmt::format("PyPI rejects the tag {}", platform),
                   "kiln wheel --repair"});
  else if (out.size() == before) {
    out.push_back({Verdict::Good, "platform",
                   fmt::format("{}: needs {}", platform, what_the_tag_rests_on(wheel)), ""});
  }
}

// A library that names libtorch or libcudart binds the wheel to one version of them, and a path of
// the build machine works nowhere else.
void check_needed(const WheelView& wheel, Findings& out) {
  std::set<std::string> inside;
  for (const MemberView& member : wheel.members) inside.insert(base_name(member.name));
  std::set<std::string> torch, cuda, other, paths;
  for (const LibraryView& library : wheel.libraries) {
    for (const std::string& needed : library.needs.system.outside) {
      if (inside.count(needed)) continue;
      (is_torch_library(needed) ? torch : is_cuda_library(needed) ? cuda : other).insert(needed);
    }
    for (const std::string& list : {library.needs.rpath, library.needs.runpath})
      for (std::string_view path : text::split(list, ':'))
        if (!path.empty() && !path.starts_with("$ORIGIN") && !path.starts_with("${ORIGIN}"))
          paths.insert(fmt::format("{} in {}", path, library.member));
  }
  auto list = [](const std::set<std::string>& names) { return some({names.begin(), names.end()}); };
  if (!other.empty())
    out.push_back(
        {Verdict::Fault, "libraries",
         fmt::format("it needs {}, which no manylinux guarantees and the wheel does not contain",
                     list(other)),
         "kiln wheel --repair, or link it statically"});
  if (!torch.empty())
    out.push_back({Verdict::Note, "libraries",
                   fmt::format("it needs {}: import torch first", list(torch)), ""});
  if (!cuda.empty())
    out.push_back(
        {Verdict::Note, "libraries",
         fmt::format("it needs {}, which torch's packages bring for only one CUDA major version",
                     list(cuda)),
         ""});
  if (!paths.empty())
    out.push_back({Verdict::Fault, "libraries",
                   fmt::format("RPATH of the machine that built it: {}", list(paths)),
                   "link without it, or patchelf --remove-rpath"});
  if (other.empty() && torch.empty() && cuda.empty() && paths.empty() && !wheel.libraries.empty())
    out.push_back(
        {Verdict::Good, "libraries", "needs only libraries that every Linux has; no RPATH", ""});
}

void check_gpus(const WheelView& wheel, Findings& out) {
  for (const LibraryView& library : wheel.libraries) {
    if (library.needs.images.empty()) continue;
    bool ptx = std::any_of(library.needs.images.begin(), library.needs.images.end(),
                           [](const std::string& label) { return label.starts_with("compute_"); });
    std::string shown = text::join(library.needs.images, ", ");
    if (!ptx)
      out.push_back({Verdict::Doubt, "GPUs",
                     fmt::format("{}: {} and no PTX: it does not run on newer GPUs",
                                 base_name(library.member), shown),
                     "add +PTX to the newest architecture"});
    int driver = std::max(library.needs.driver.sass, ptx ? library.needs.driver.ptx : 0);
    out.push_back({Verdict::Good, "GPUs",
                   fmt::format("{}: {}{}", base_name(library.member), shown,
                               driver ? fmt::format("; driver {} or newer", driver) : ""),
                   ""});
  }
}

void check_torch(const WheelView& wheel, Findings& out) {
  bool bound = false;
  for (const LibraryView& library : wheel.libraries) {
    if (!library.python_symbols.empty() && wheel.name.abi == "none") {
      out.push_back({Verdict::Fault, "Python",
                     fmt::format("{} calls CPython ({}), but the tag says any Python",
                                 base_name(library.member), some(library.python_symbols)),
                     "use the tag of that Python, such as cp311-cp311"});
    }
    if (library.torch_symbols.empty()) continue;
    bound = true;
    std::string range = inspect::torch_range(library.torch_symbols);
    out.push_back(
        {Verdict::Doubt, "torch",
         fmt::format("{} needs {} C++ symbols of torch{}: it works only with that release",
                     base_name(library.member), library.torch_symbols.size(),
                     range.empty() ? "" : fmt::format(" ({})", range)),
         "pin torch under dependencies, or build it with kiln"});
  }
  if (!bound && !wheel.libraries.empty())
    out.push_back({Verdict::Good, "torch", "no C++ symbol of torch: any release since 2.7", ""});
}

void check_size(const WheelView& wheel, Findings& out) {
  for (const LibraryView& library : wheel.libraries)
    if (library.symbol_table_bytes)
      out.push_back({Verdict::Doubt, "size",
                     fmt::format("{} is not stripped: {} of symbols that only a debugger reads",
                                 base_name(library.member), bytes_text(library.symbol_table_bytes)),
                     "strip it"});
  if (wheel.bytes > kPypiBytes)
    out.push_back(
        {Verdict::Fault, "size",
         fmt::format("{}; PyPI accepts {}", bytes_text(wheel.bytes), bytes_text(kPypiBytes)),
         "build for fewer architectures, or ask PyPI for a higher limit"});
  else
    out.push_back({Verdict::Good, "size", bytes_text(wheel.bytes), ""});
}

constexpr Check kChecks[] = {check_name,   check_record, check_files, check_bundled, check_platform,
                             check_needed, check_gpus,   check_torch, check_size};

std::string_view mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::Good:
      return "[ok]";
    case Verdict::Note:
      return "[i] ";
    case Verdict::Doubt:
      return "[!] ";
    default:
      return "[x] ";
  }
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Good:
      return "good";
    case Verdict::Note:
      return "note";
    case Verdict::Doubt:
      return "doubt";
    default:
      return "fault";
  }
}

}  // namespace

bool is_torch_library(std::string_view file_name) {
  return begins_with_one_of(file_name, kTorchStems);
}
bool is_cuda_library(std::string_view file_name) {
  return begins_with_one_of(file_name, kCudaStems);
}

std::vector<Finding> audit(const WheelView& wheel) {
  Findings all;
  for (Check check : kChecks) {
    Findings one;
    check(wheel, one);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

bool has_fault(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.verdict == Verdict::Fault; });
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) {
    out += fmt::format("{} {:10} {}\n", mark(finding.verdict), finding.area, finding.text);
    if (!finding.fix.empty()) out += fmt::format("     {:10} fix: {}\n", "", finding.fix);
  }
  return out;
}

Json to_json(const std::vector<Finding>& findings) {
  Json out = Json::array();
  for (const Finding& finding : findings)
    out.push_back({{"verdict", word(finding.verdict)},
                   {"area", finding.area},
                   {"text", finding.text},
                   {"fix", finding.fix}});
  return out;
}

}  // namespace kiln::ship
