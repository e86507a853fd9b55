// SPDX-License-Identifier: Apache-2.0
// What is inside a fat binary? Containers with an entry for each image: PTX, cubin or LTO-IR.
// The format is not published; these are measured facts of CUDA 12 and 13.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "binary/bytes.h"
#include "binary/decompress.h"

namespace kiln::binary {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kContainerMagic = 0xBA55ED50;

enum class ImageKind : uint16_t { Ptx = 1, Elf = 2, LtoIr = 8 };

struct FatbinEntry {
  uint16_t kind = 0;  // ImageKind, or a number not known here
  uint32_t arch = 0;  // 90 of sm_90
  char variant = 0;   // 'a', 'f', or 0
  bool debug = false;
  Compression compression = Compression::None;
  uint64_t offset = 0;         // of the payload, in the container
  uint64_t payload_bytes = 0;  // with its padding
  uint64_t packed_bytes = 0;
  uint64_t unpacked_bytes = 0;
  uint16_t version_major = 0, version_minor = 0;  // of PTX the ISA's: 9, 0
  std::string identifier;                         // the source file, where it is known
};

// The whole size that the container's header claims; an error when this is not a container.
Result<uint64_t> container_bytes(Bytes head);
Result<std::vector<FatbinEntry>> read_container(Bytes container);
// The entry's image, unpacked. PTX comes without the NUL at its end.
Result<std::vector<std::byte>> read_image(Bytes container, const FatbinEntry& entry);

struct PtxText {
  uint32_t arch = 0;
  char variant = 0;
  std::string text;
};
// All PTX of a container.
Result<std::vector<PtxText>> read_ptx(Bytes container);
// The same of a fat binary in this process's memory, from what __cudaRegisterFatBinary is given.
// The container's own size is believed: the loader has mapped it.
Result<std::vector<PtxText>> ptx_in_wrapper(const void* wrapper);

}  // namespace kiln::binary
