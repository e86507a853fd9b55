// SPDX-License-Identifier: Apache-2.0
// Are hashes right, and does the same content always make the same zip, one that others read?
#include <gmock/gmock.h>

#include "binary/containers.h"
#include "ship/sha256.h"
#include "ship/wheel.h"
#include "ship/zip.h"

namespace kiln::ship {
namespace {

using ::testing::HasSubstr;

// FIPS 180-2, appendix B.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsWrittenAsRecordHasIt) {
  EXPECT_EQ(record_hash(""), "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
}

TEST(Zip, IsReadBackWhole) {
  std::vector<PackedFile> files = {{"a/x.py", "print(1)\n", false},
                                   {"a/lib.so", std::string(5000, 'x') + "y", true},
                                   {"e", "", false}};
  auto zip = write_zip(files, 0);
  ASSERT_TRUE(zip);
  EXPECT_EQ(*zip, *write_zip(files, 0));
  EXPECT_NE(*zip, *write_zip(files, 1'700'000'000));
  EXPECT_LT(zip->size(), 600u);  // 5000 times the same letter
  auto members = binary::read_zip(std::as_bytes(std::span(*zip)));
  ASSERT_TRUE(members) << format(members.error());
  ASSERT_EQ(members->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    auto content = binary::unpack_member((*members)[i]);
    ASSERT_TRUE(content);
    EXPECT_EQ((*members)[i].name, files[i].name);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(content->data()), content->size()),
              files[i].content);
  }
}

TEST(Record, ListsEveryFileAndStandsLast) {
  auto files = with_record(
      {{"p-1.dist-info/WHEEL", "w", false}, {"p/b.py", "b", false}, {"p/a,1.py", "a", false}},
      "p-1.dist-info");
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].name, "p/a,1.py");
  EXPECT_EQ(files[3].name, "p-1.dist-info/RECORD");
  EXPECT_THAT(files[3].content, HasSubstr("\"p/a,1.py\",sha256="));
  EXPECT_THAT(files[3].content, HasSubstr("p-1.dist-info/RECORD,,\n"));
}

}  // namespace
}  // namespace kiln::ship
