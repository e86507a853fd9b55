// SPDX-License-Identifier: Apache-2.0
// How is a target opened, whatever holds the binaries?
#include "inspect/artifact.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "binary/containers.h"
#include "binary/cubin.h"
#include "binary/decompress.h"
#include "binary/fatbin.h"
#include "inspect/images.h"

namespace kiln::inspect {
namespace {

using binary::Bytes;
using sys::fs::path;

Error in_file(Error error, const std::string& shown) {
  error.what = fmt::format("cannot inspect {}", shown);
  if (error.fix.empty()) error.fix = kDamagedFix;
  return error;
}

bool is_binary(FileKind kind) {
  return kind == FileKind::SharedLibrary || kind == FileKind::Executable ||
         kind == FileKind::Object || kind == FileKind::Cubin || kind == FileKind::Fatbin ||
         kind == FileKind::Ptx;
}

// The first bytes of a member, without unpacking it as a whole, tell too little of a deflated one:
// names do.
bool may_be_binary(const std::string& name) {
  std::string file = name.substr(name.rfind('/') + 1);
  for (std::string_view end : {".so", ".cubin", ".fatbin", ".ptx", ".o", ".a"})
    if (file.ends_with(end)) return true;
  return file.find(".so.") != file.npos;
}

// All members are unpacked at once. Libraries shrink to a third, mostly empty ones to a hundredth;
// who claims more lies, or wants the memory.
constexpr uint64_t kMaxWheelRatio = 200, kSmallWheelBytes = 64 << 20;

Status check_sizes(const Artifact& holder, const std::vector<binary::Member>& members) {
  uint64_t claimed = 0;
  for (const binary::Member& member : members)
    if (may_be_binary(member.name))
      claimed += std::min(member.unpacked_bytes, binary::kMaxUnpackedBytes);
  if (claimed <= kSmallWheelBytes || claimed / kMaxWheelRatio <= holder.bytes.size()) return {};
  return Error{
      Fault::Work, "",
      fmt::format("its binaries claim {} bytes in a file of {}: more than {} times as much",
                  claimed, holder.bytes.size(), kMaxWheelRatio),
      ""};
}

Result<std::vector<Artifact>> open_members(const Artifact& holder, bool zip) {
  TRY(auto members, zip ? binary::read_zip(holder.bytes) : binary::read_ar(holder.bytes));
  if (zip) CHECK_OK(check_sizes(holder, members));
  std::vector<Artifact> out;
  for (const binary::Member& member : members) {
    if (zip && !may_be_binary(member.name)) continue;
    Artifact artifact{member.name,   holder.path,    member.name, FileKind::Unknown,
                      member.packed, holder.mapping, nullptr,     nullptr};
    if (member.method != 0) {
      TRY(auto bytes, binary::unpack_member(member));
      artifact.unpacked = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
      artifact.bytes = *artifact.unpacked;
    }
    artifact.kind = kind_of(artifact.bytes);
    if (is_binary(artifact.kind)) out.push_back(std::move(artifact));
  }
  if (zip) {
    auto all = std::make_shared<const std::vector<Artifact>>(out);
    for (Artifact& artifact : out) artifact.wheel = all;
  }
  return out;
}

void collect_libraries(const sys::Files& files, const path& folder, int depth,
                       std::vector<path>& out) {
  if (depth > 12) return;
  for (const std::string& name : files.list(folder)) {
    path file = folder / name;
    sys::FileState state = files.state(file);
    if (state.is_directory)
      collect_libraries(files, file, depth + 1, out);
    else if (state.is_file() && (name.ends_with(".so") || name.find(".so.") != name.npos))
      out.push_back(file);
  }
}

}  // namespace

std::string_view name_of(FileKind kind) {
  switch (kind) {
    case FileKind::SharedLibrary:
      return "shared library";
    case FileKind::Executable:
      return "program";
    case FileKind::Object:
      return "object";
    case FileKind::Cubin:
      return "cubin";
    case FileKind::Fatbin:
      return "fat binary";
    case FileKind::Ptx:
      return "PTX";
    case FileKind::Archive:
      return "archive";
    case FileKind::Zip:
      return "wheel";
    default:
      return "unknown";
  }
}

FileKind kind_of(Bytes bytes) {
  if (binary::is_elf(bytes)) {
    auto machine = binary::read_at<uint16_t>(bytes, 18),
         type = binary::read_at<uint16_t>(bytes, 16);
    if (machine == binary::kMachineCuda) return FileKind::Cubin;
    if (type == binary::kElfRelocatable) return FileKind::Object;
    return type == binary::kElfExecutable ? FileKind::Executable : FileKind::SharedLibrary;
  }
  if (binary::read_at<uint32_t>(bytes, 0) == binary::kContainerMagic) return FileKind::Fatbin;
  if (binary::is_ar(bytes)) return FileKind::Archive;
  if (binary::is_zip(bytes)) return FileKind::Zip;
  return looks_like_ptx(bytes) ? FileKind::Ptx : FileKind::Unknown;
}

Result<std::vector<Artifact>> open_file(const path& file, const std::string& shown) {
  TRY(auto mapped, sys::MappedFile::open(file));
  Artifact artifact{shown, file, "", FileKind::Unknown, {}, nullptr, nullptr, nullptr};
  artifact.mapping = std::make_shared<const sys::MappedFile>(std::move(mapped));
  artifact.bytes = artifact.mapping->bytes();
  if (artifact.bytes.empty())
    return Error{Fault::Work, fmt::format("cannot inspect {}", shown),
                 "at offset 0: the file is empty", kDamagedFix};
  artifact.kind = kind_of(artifact.bytes);
  if (artifact.kind == FileKind::Unknown) {
    uint32_t head = binary::read_at<uint32_t>(artifact.bytes, 0).value_or(0);
    return Error{
        Fault::Usage, fmt::format("cannot inspect {}", shown),
        fmt::format("at offset 0: 0x{:08x} is not the start of an ELF file, fat binary, archive, "
                    "wheel or PTX",
                    head),
        "name a .cu, .so, .o, .a, .cubin, .fatbin, .ptx, .whl, a project or a Python package"};
  }
  if (artifact.kind != FileKind::Archive && artifact.kind != FileKind::Zip)
    return std::vector<Artifact>{artifact};
  auto members = open_members(artifact, artifact.kind == FileKind::Zip);
  if (!members) return in_file(members.error(), shown);
  if (members->empty())
    return Error{Fault::Work, fmt::format("cannot inspect {}", shown), "it contains no binary",
                 "unpack it to see its content"};
  return members;
}

std::string installed_name(const std::string& member) {
  size_t first = member.find('/'),
         second = first == member.npos ? first : member.find('/', first + 1);
  if (second == member.npos || !std::string_view(member).substr(0, first).ends_with(".data"))
    return member;
  std::string_view scheme = std::string_view(member).substr(first + 1, second - first - 1);
  return scheme == "platlib" || scheme == "purelib" ? member.substr(second + 1) : member;
}

Result<path> find_package(const sys::Files& files, sys::Processes& processes,
                          const sys::Environment& env, const std::string& name) {
  const std::string wished = env.get("KILN_PYTHON").value_or("python3");
  Error none{Fault::Usage, fmt::format("cannot find {}", name),
             fmt::format("there is no such file, and {} has no such package", wished),
             "name a .cu, .so, .o, .a, .cubin, .fatbin, .ptx, .whl, a project or a Python package"};
  if (!text::is_identifier(name)) return none;
  path python = sys::find_program(files, wished, env.get("PATH").value_or("/usr/bin:/bin"));
  if (python.empty()) {
    none.why += fmt::format(" ({} is not on PATH)", wished);
    return none;
  }
  sys::ProcessSpec spec;
  // -I would leave out PYTHONPATH, by which people name packages.
  spec.arguments = {python.string(), "-c", "import sys\nfor p in sys.path: print(p)"};
  TRY(auto answer, processes.run(spec));
  for (std::string_view line : text::lines(answer.out)) {
    if (line.empty()) continue;
    path folder = path(line) / name;
    if (files.state(folder).is_directory) return folder;
  }
  return none;
}

Result<std::vector<Artifact>> open_package(const sys::Files& files, const path& folder) {
  std::vector<path> libraries;
  collect_libraries(files, folder, 0, libraries);
  std::vector<Artifact> out;
  for (const path& library : libraries) {
    auto opened = open_file(library, library.lexically_relative(folder).string());
    if (!opened) continue;  // a linker script, a text named .so: no binary
    for (Artifact& artifact : *opened)
      if (is_binary(artifact.kind)) out.push_back(std::move(artifact));
  }
  if (out.empty())
    return Error{Fault::Work, fmt::format("cannot inspect {}", folder.string()),
                 "the package has no shared library",
                 "name a package with compiled code in it, or a file"};
  return out;
}

}  // namespace kiln::inspect
