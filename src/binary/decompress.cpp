// SPDX-License-Identifier: Apache-2.0
// Which libraries unpack LZ4 blocks and zstd frames?
#include "binary/decompress.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace kiln::binary {

Result<std::vector<std::byte>> decompress(Compression compression, Bytes packed,
                                          uint64_t unpacked_bytes) {
  auto wrong = [](std::string why) {
    return Error{Fault::Work, "cannot unpack an image of a fat binary", std::move(why), ""};
  };
  if (compression == Compression::None) return std::vector<std::byte>(packed.begin(), packed.end());
  if (unpacked_bytes > kMaxUnpackedBytes || unpacked_bytes / kMaxRatio > packed.size()) {
    return wrong(fmt::format("its header claims {} bytes from {} packed ones", unpacked_bytes,
                             packed.size()));
  }
  std::vector<std::byte> out(unpacked_bytes);
  if (compression == Compression::Zstd) {
    size_t written = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
    if (ZSTD_isError(written)) return wrong(fmt::format("zstd: {}", ZSTD_getErrorName(written)));
    if (written != unpacked_bytes)
      return wrong(fmt::format("got {} bytes, the header claims {}", written, unpacked_bytes));
    return out;
  }
  if (packed.size() > INT_MAX || unpacked_bytes > INT_MAX)
    return wrong("an LZ4 block of more than 2 GB");
  int written = LZ4_decompress_safe(
      reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(out.data()),
      static_cast<int>(packed.size()), static_cast<int>(unpacked_bytes));
  if (written < 0 || static_cast<uint64_t>(written) != unpacked_bytes) {
    return wrong(fmt::format("LZ4: the block is damaged at about byte {}", -written));
  }
  return out;
}

}  // namespace kiln::binary
