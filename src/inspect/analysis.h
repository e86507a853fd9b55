// SPDX-License-Identifier: Apache-2.0
// What is known about one binary file once it was read?
#pragma once

#include <string>
#include <vector>

#include "inspect/artifact.h"
#include "inspect/gpus.h"
#include "inspect/kernels.h"
#include "inspect/picture.h"

namespace kiln::inspect {

struct Analysis {
  Artifact file;
  std::string machine;  // of the host code: "x86_64"; empty for device code alone
  ImageList images;
  std::vector<Piece> pieces;
  bool kernels_read = false;
  KernelList kernels;
  std::string release;  // of the CUDA compiler, "13.0"; empty when nothing says it
  DriverFloor floor;
};

struct AnalyseOptions {
  bool kernels = true;  // else only as much of the first cubin as tells what compiled it
  int threads = 1;
  std::vector<std::string> archs;  // "sm_90", "90a", "compute_80": only these images; empty: all
};
Result<Analysis> analyse(Artifact file, const AnalyseOptions& options);

// Does an image answer to "90", "sm_90a" or "compute_80"?
bool matches(const Image& image, const std::vector<std::string>& archs);

struct ImageGroup {
  std::string label;        // "sm_90"
  std::string compression;  // "zstd"
  bool debug = false;
  size_t count = 0;
  uint64_t packed_bytes = 0, unpacked_bytes = 0;
};
std::vector<ImageGroup> groups_of(const std::vector<Image>& images);

// "8.0" of 80, "12.1" of 121
std::string dotted(uint32_t arch);

}  // namespace kiln::inspect
