// SPDX-License-Identifier: Apache-2.0
// How does kiln pack what it keeps?
#include "binary/pack.h"

#include <zstd.h>

#include "binary/decompress.h"

namespace kiln::binary {

std::string pack(std::string_view content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  size_t written = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 1);
  packed.resize(ZSTD_isError(written) ? 0 : written);
  return packed;
}

Result<std::string> unpack(std::string_view packed, uint64_t unpacked_bytes) {
  if (unpacked_bytes > kMaxUnpackedBytes)
    return Error{Fault::Work, "cannot unpack",
                 "it claims to be larger than anything that was packed", ""};
  std::string out(unpacked_bytes, '\0');
  size_t written = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(written))
    return Error{Fault::Work, "cannot unpack", ZSTD_getErrorName(written), ""};
  if (written != unpacked_bytes)
    return Error{Fault::Work, "cannot unpack", "its size differs from what it claims", ""};
  return out;
}

}  // namespace kiln::binary
