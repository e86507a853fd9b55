// SPDX-License-Identifier: Apache-2.0
// Which binary files are behind a target: a file itself, the members of an archive or a wheel,
// the libraries of an installed package?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "binary/bytes.h"
#include "sys/files.h"
#include "sys/mapped_file.h"
#include "sys/process.h"

namespace kiln::inspect {

// What helps against a file that is empty, cut off or not as its format wants it.
inline constexpr const char* kDamagedFix = "build or download it again";

enum class FileKind {
  SharedLibrary,
  Executable,
  Object,
  Cubin,
  Fatbin,
  Ptx,
  Archive,
  Zip,
  Unknown
};
std::string_view name_of(FileKind kind);
FileKind kind_of(binary::Bytes bytes);

struct Artifact {
  std::string name;    // as shown: "libadd.so", "pkg/lib/x.so"
  sys::fs::path path;  // on the disk; of a member the file that holds it
  std::string member;  // inside it; empty for the file itself
  FileKind kind = FileKind::Unknown;
  binary::Bytes bytes;
  std::shared_ptr<const sys::MappedFile> mapping;          // when the bytes are the file's own
  std::shared_ptr<const std::vector<std::byte>> unpacked;  // when they were compressed
  std::shared_ptr<const std::vector<Artifact>> wheel;  // of a member of a wheel: all its binaries
};

// One file: itself; of a .a its objects; of a wheel its binaries. An error names file and offset.
Result<std::vector<Artifact>> open_file(const sys::fs::path& path, const std::string& shown);

// Where pip puts a member of a wheel, in its folder of packages: "x-1.data/platlib/x.so" is "x.so".
std::string installed_name(const std::string& member);

// The folder of an installed Python package (`torch`), asked of the python3 that PATH gives. An
// error when there is no such package.
Result<sys::fs::path> find_package(const sys::Files& files, sys::Processes& processes,
                                   const sys::Environment& env, const std::string& name);
// Its shared libraries.
Result<std::vector<Artifact>> open_package(const sys::Files& files, const sys::fs::path& folder);

}  // namespace kiln::inspect
