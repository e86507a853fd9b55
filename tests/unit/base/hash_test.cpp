// SPDX-License-Identifier: Apache-2.0
// Is it BLAKE2b-256? Values of an independent implementation (Python's
// hashlib.blake2b(digest_size=32)).
#include "base/hash.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Hash, AgreesWithAnotherImplementation) {
  EXPECT_EQ(hash_hex(""), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hash_hex("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(hash_hex(std::string(128, 'x')),
            "164ffb7089bae6f5a62fb0795e751dc9e88eac92e1a5b2fafe93a25abf2d9c3b");
  EXPECT_EQ(hash_hex(std::string(129, 'x')),
            "03b0758fa71d249c846c2304a2b9996e6ae66ffa7e5528f9e612e089a360fc8d");
  EXPECT_EQ(hash_hex(std::string(100000, 'y')),
            "17509e9bfd9e422831ef0b03cf7480231987cfe772fc5eef7b4ce0c312a64caa");
}

TEST(Hash, PiecesMakeTheSameWhole) {
  Hasher pieces;
  for (int i = 0; i < 1000; ++i) pieces.add(std::string(i % 7, 'y'));
  size_t total = 0;
  for (int i = 0; i < 1000; ++i) total += i % 7;
  EXPECT_EQ(pieces.hex(), hash_hex(std::string(total, 'y')));
}

TEST(Hash, FieldsDoNotRunIntoEachOther) {
  EXPECT_NE(Hasher().add_field("ab").add_field("c").hex(),
            Hasher().add_field("a").add_field("bc").hex());
}

}  // namespace
}  // namespace kiln
