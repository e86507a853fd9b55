// SPDX-License-Identifier: Apache-2.0
// Which GPU images does a file hold, in which order, packed how?
#pragma once

#include <string>
#include <vector>

#include "binary/fatbin.h"

namespace kiln::inspect {

struct Image {
  size_t container = 0;           // which fat binary of the file, from 0
  binary::Bytes container_bytes;  // all of it; empty for a bare cubin or PTX file
  uint64_t container_offset = 0;  // in the file
  binary::FatbinEntry entry;      // offset is relative to the container
  uint64_t header_bytes = 0;      // of its entry, with what is between header and payload

  bool is(binary::ImageKind kind) const { return entry.kind == static_cast<uint16_t>(kind); }
  // "sm_90a", "compute_80", "LTO sm_90"
  std::string label() const;
};

struct ImageList {
  size_t containers = 0;
  std::vector<Image> images;
  std::vector<std::string> faults;  // containers that could not be read, each with its offset
};

// A host ELF file (sections .nv_fatbin and __nv_relfatbin), a fat binary, a cubin or PTX. A file
// without any has an empty list.
Result<ImageList> find_images(binary::Bytes file);

// Unpacked. A bare file is its own image.
Result<std::vector<std::byte>> unpack(const Image& image, binary::Bytes file);

std::string_view name_of(binary::Compression compression);

// Does the text begin as PTX does? Comments and blanks may come first.
bool looks_like_ptx(binary::Bytes bytes);

}  // namespace kiln::inspect
