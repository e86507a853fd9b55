// SPDX-License-Identifier: Apache-2.0
// Are the images of a fat binary found and unpacked, and are lying sizes refused?
#include "binary/fatbin.h"

#include <gmock/gmock.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>

namespace kiln::binary {
namespace {

using testing::HasSubstr;

constexpr uint64_t kZstd = 0x8000, kLz4 = 0x2000;

struct Builder {
  std::vector<std::byte> bytes = std::vector<std::byte>(16);

  template <class T>
  void put(size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  // Returns where the entry's header stands.
  size_t entry(uint16_t kind, uint32_t arch, const std::string& payload, uint64_t flags,
               uint64_t unpacked) {
    size_t at = bytes.size();
    uint64_t padded = (payload.size() + 7) / 8 * 8;
    bytes.resize(at + 64 + padded);
    put(at, kind);
    put(at + 4, uint32_t{64});
    put(at + 8, padded);
    put(at + 0x10, static_cast<uint32_t>(flags ? payload.size() : 0));
    put(at + 0x1c, arch);
    put(at + 0x28, flags);
    put(at + 0x38, unpacked);
    std::memcpy(bytes.data() + at + 64, payload.data(), payload.size());
    put(0, uint32_t{kContainerMagic});
    put(4, uint16_t{1});
    put(6, uint16_t{16});
    put(8, uint64_t{bytes.size() - 16});
    return at;
  }
};

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}
std::string lz4(const std::string& text) {
  std::string out(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))), '\0');
  out.resize(static_cast<size_t>(LZ4_compress_default(
      text.data(), out.data(), static_cast<int>(text.size()), static_cast<int>(out.size()))));
  return out;
}

const std::string kText = std::string(500, 'x') + ".version 9.0\n" + '\0';

TEST(Fatbin, PtxOfEveryPacking) {
  Builder b;
  b.entry(2, 90, "cubin", 0, 5);
  b.entry(1, 80, kText, 0, 0);
  b.entry(1, 90, zstd(kText), kZstd | 0x100000, kText.size());
  b.entry(1, 75, lz4(kText), kLz4, kText.size());
  auto ptx = read_ptx(b.bytes);
  ASSERT_TRUE(static_cast<bool>(ptx)) << format(ptx.error());
  ASSERT_EQ(ptx->size(), 3u);
  for (const PtxText& text : *ptx) EXPECT_EQ(text.text, kText.substr(0, kText.size() - 1));
  EXPECT_EQ((*ptx)[1].arch, 90u);
  EXPECT_EQ((*ptx)[1].variant, 'a');
}

TEST(Fatbin, FromAWrapperInMemory) {
  Builder b;
  b.entry(1, 90, kText, 0, 0);
  struct {
    uint32_t magic = kWrapperMagic, version = 1;
    const void* container;
    const void* names = nullptr;
  } wrapper;
  wrapper.container = b.bytes.data();
  auto ptx = ptx_in_wrapper(&wrapper);
  ASSERT_TRUE(static_cast<bool>(ptx)) << format(ptx.error());
  EXPECT_EQ(ptx->size(), 1u);
  wrapper.magic = 1;
  EXPECT_THAT(format(ptx_in_wrapper(&wrapper).error()),
              HasSubstr("the wrapper's magic is 0x00000001"));
}

TEST(Fatbin, EveryTruncationIsAnErrorAndNoCrash) {
  Builder b;
  b.entry(1, 90, zstd(kText), kZstd, kText.size());
  for (size_t size = 0; size < b.bytes.size(); ++size) {
    EXPECT_FALSE(static_cast<bool>(read_ptx(Bytes(b.bytes).first(size)))) << size;
  }
}

TEST(Fatbin, LyingSizes) {
  std::string packed = zstd(kText);
  {
    Builder b;
    size_t at = b.entry(1, 90, packed, kZstd, kText.size());
    b.put(at + 8, ~uint64_t{0});
    EXPECT_THAT(format(read_ptx(b.bytes).error()), HasSubstr("the container ends before"));
  }
  {
    Builder b;
    size_t at = b.entry(1, 90, packed, kZstd, kText.size());
    b.put(at + 0x10, ~uint32_t{0});
    EXPECT_THAT(format(read_ptx(b.bytes).error()), HasSubstr("packed bytes in a payload"));
  }
  {
    Builder b;
    b.entry(1, 90, packed, kZstd, uint64_t{1} << 30);
    EXPECT_THAT(format(read_ptx(b.bytes).error()), HasSubstr("its header claims"));
  }
  {
    Builder b;
    b.entry(1, 90, packed, kZstd, kText.size() - 1);
    EXPECT_THAT(format(read_ptx(b.bytes).error()), HasSubstr("zstd"));
  }
  {
    Builder b;
    size_t at = b.entry(1, 90, packed, kZstd, kText.size());
    b.put(at + 4, uint32_t{8});
    EXPECT_THAT(format(read_ptx(b.bytes).error()), HasSubstr("is truncated"));
  }
}

}  // namespace
}  // namespace kiln::binary
