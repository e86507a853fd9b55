// SPDX-License-Identifier: Apache-2.0
// What does a binary file consist of, and which GPUs does its device code serve?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "results/file_bytes.h"

namespace kiln::results {

// Of what `kiln inspect --json` prints; docs/reference/inspect-json.md names every field.
inline constexpr std::string_view kInspectSchema = "kiln.inspect/1";

struct ImageFacts {
  size_t container = 0;    // which fat binary of the file, from 0
  std::string kind, arch;  // "sass", "ptx", "lto" or "unknown"; "sm_90a", "compute_80"
  uint64_t offset = 0;     // in the file
  std::string compression;
  uint64_t packed_bytes = 0, unpacked_bytes = 0;
  bool debug = false;
  std::optional<std::string> ptx_isa, source;
};

enum class Service { Native, Jit, None };

// Does a GPU run the file's device code?
struct GpuService {
  std::string arch, names;  // "9.0", "H100, H200"
  Service service = Service::None;
  std::string by;             // the image that it runs or compiles: "sm_90"
  size_t jit_containers = 0;  // of a native one: fat binaries that have only PTX for this GPU
};

// The oldest driver, as its major version: SASS of a CUDA major runs from that major's first driver
// on, PTX needs one that knows its ISA.
struct DriverFloor {
  int sass = 0, ptx = 0;  // 0: nothing of the kind, or not known
  std::string why_sass, why_ptx;
};

struct Overview {
  FileBytes file;
  std::string path, member;  // on the disk; of a member its name in that file
  std::vector<Piece> pieces;
  std::vector<ImageFacts> images;
  std::vector<GpuService> gpus, here;  // every GPU that kiln knows; those of this machine
  DriverFloor driver;
  std::string compiler;  // release of CUDA, "13.0"; empty when nothing says it
  std::vector<std::string> image_faults, kernel_faults;  // what could not be read
};

Json to_json(const Overview& overview);

}  // namespace kiln::results
