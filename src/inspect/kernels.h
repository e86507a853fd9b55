// SPDX-License-Identifier: Apache-2.0
// Which kernels do the images of a file hold, and what does each need?
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "binary/cubin.h"
#include "inspect/images.h"
#include "inspect/occupancy.h"

namespace kiln::inspect {

// A kernel in one image, with its names kept apart from the cubin, which is gone by then.
struct KernelRow {
  size_t image = 0;  // index into the list of images
  uint32_t arch = 0;
  char variant = 0;
  std::string name;          // mangled
  binary::Kernel resources;  // its `name` is empty
  uint64_t local_index = 0;  // among its image's kernels

  uint64_t user_shared_bytes() const {
    return resources.shared_bytes - resources.shared_reserved_bytes;
  }
  uint32_t instructions() const;
  // "sm_90a"
  std::string arch_text() const;
  // The block size the occupancy is computed for: the launch bounds' where `wanted` exceeds them.
  uint32_t block_threads(uint32_t wanted) const;
};

struct CubinFacts {
  size_t image = 0;
  std::string compiler, compiler_options;  // "" when it does not say
  bool has_lines = false, relocatable = false, has_ptx_text = false;
  size_t kernels = 0;
  uint64_t code_bytes = 0;
};

struct KernelList {
  std::vector<KernelRow> rows;  // by image, then as in the cubin
  std::vector<CubinFacts> cubins;
  std::vector<std::string> faults;  // images that could not be read
};

struct ReadOptions {
  int threads = 1;
  // Only images for which it is true; empty: all.
  std::function<bool(const Image&)> wanted;
  // Called after an image was read, from any thread, one at a time: its packed bytes are not needed
  // any more.
  std::function<void(const Image&)> on_done;
};
KernelList read_kernels(const ImageList& images, binary::Bytes file, const ReadOptions& options);

// "13.0" out of "Cuda compilation tools, release 13.0, V13.0.88"; empty when it is not there.
std::string compiler_release(std::string_view compiler);
// The newest release among the cubins.
std::string newest_release(const KernelList& kernels);

Occupancy occupancy_of(const KernelRow& row, uint32_t block_threads, bool* known);

// Demangled names by mangled ones; a library repeats a name for each architecture.
class Demangler {
 public:
  const std::string& operator()(const std::string& name);

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace kiln::inspect
