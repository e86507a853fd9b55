// SPDX-License-Identifier: Apache-2.0
// Are .npy files read and written as numpy does it, and hostile ones refused with their offset?
#include "host/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kiln/abi.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "host/generate.h"

namespace kiln::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(const std::string& dict, const std::string& bytes, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const size_t length = dict.size() + 1;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(length >> (8 * i));
  return file + dict + "\n" + bytes;
}

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

Result<Array> parse(const std::string& file, std::optional<int32_t> as = std::nullopt) {
  return parse_npy({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.npy", as);
}

std::vector<std::string> elements(const Array& array) {
  std::vector<std::string> texts;
  const DType& type = array.type();
  for_each_element(array.layout, [&](int64_t, int64_t offset) {
    const uint8_t* at = array.storage.data() + static_cast<size_t>(offset) * type.bytes;
    texts.push_back(element_text(type, load_element(type, at), 0));
  });
  return texts;
}

std::vector<std::string> elements(const Result<Array>& array) {
  EXPECT_TRUE(array) << (array ? "" : format(array.error()));
  return array ? elements(*array) : std::vector<std::string>{};
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::string refused_file(const std::string& file, std::optional<int32_t> as = std::nullopt) {
  const Result<Array> array = parse(file, as);
  EXPECT_FALSE(array);
  return array ? "" : array.error().why;
}

TEST(Npy, ReadsEachVersion) {
  for (int version : {1, 2, 3})
    EXPECT_THAT(elements(parse(npy(dict("<f4", "(3,)"), bytes_of<float>({1, -2, 0.1f}), version))),
                ElementsAre("1", "-2", "0.1"));
}

TEST(Npy, ReadsDtypes) {
  EXPECT_THAT(elements(parse(npy(dict("|b1", "(2,)"), std::string("\1\0", 2)))),
              ElementsAre("true", "false"));
  EXPECT_THAT(elements(parse(npy(dict("|u1", "(1,)"), "\xff"))), ElementsAre("255"));
  EXPECT_THAT(elements(parse(npy(dict("|i1", "(1,)"), "\xff"))), ElementsAre("-1"));
  EXPECT_THAT(elements(parse(npy(dict("<i2", "(1,)"), bytes_of<int16_t>({-300})))),
              ElementsAre("-300"));
  EXPECT_THAT(elements(parse(npy(dict("<u4", "(1,)"), bytes_of<uint32_t>({4000000000})))),
              ElementsAre("4000000000"));
  EXPECT_THAT(elements(parse(npy(dict("<u8", "(1,)"), bytes_of<uint64_t>({UINT64_MAX})))),
              ElementsAre("18446744073709551615"));
  EXPECT_THAT(elements(parse(npy(dict("<f2", "(1,)"), bytes_of<uint16_t>({0x3e00})))),
              ElementsAre("1.5"));
  EXPECT_THAT(elements(parse(npy(dict("<c8", "(1,)"), bytes_of<float>({1, -2})))),
              ElementsAre("1-2j"));
  EXPECT_THAT(elements(parse(npy(dict("<c16", "(1,)"), bytes_of<double>({1, 2})))),
              ElementsAre("1+2j"));
  EXPECT_EQ(parse(npy(dict("|V2", "(1,)"), bytes_of<uint16_t>({0x3f80})))->dtype, KILN_BF16);
  EXPECT_EQ(parse(npy(dict("<V2", "(1,)"), bytes_of<uint16_t>({0x3f80})))->dtype, KILN_BF16);
  EXPECT_EQ(parse(npy(dict("<u2", "(1,)"), bytes_of<uint16_t>({0x3f80})))->dtype, KILN_U16);
  EXPECT_THAT(elements(parse(npy(dict("<u2", "(1,)"), bytes_of<uint16_t>({0x3f80})), KILN_BF16)),
              ElementsAre("1"));
  EXPECT_THAT(elements(parse(npy(dict("|V1", "(1,)"), "\x38"), KILN_F8E4M3)), ElementsAre("1"));
}

TEST(Npy, ReadsBigEndianPartByPart) {
  EXPECT_THAT(elements(parse(npy(dict(">i4", "(1,)"), std::string("\0\0\1\0", 4)))),
              ElementsAre("256"));
  EXPECT_THAT(elements(parse(npy(dict(">c8", "(1,)"), std::string("\x3f\x80\0\0\x40\0\0\0", 8)))),
              ElementsAre("1+2j"));
}

TEST(Npy, FortranOrderIsAStridedView) {
  const Result<Array> array =
      parse(npy(dict("<i4", "(2, 3)", "True"), bytes_of<int32_t>({0, 3, 1, 4, 2, 5})));
  EXPECT_THAT(elements(array), ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_THAT(array->layout.strides, ElementsAre(1, 2));
}

TEST(Npy, ScalarsAndEmptyArrays) {
  EXPECT_THAT(elements(parse(npy(dict("<f8", "()"), bytes_of<double>({2.5})))), ElementsAre("2.5"));
  EXPECT_THAT(elements(parse(npy(dict("<f8", "(0, 3)"), ""))), ElementsAre());
}

TEST(Npy, HostileFilesAreRefusedWithTheirOffset) {
  const std::string good = npy(dict("<f4", "(2,)"), "12345678");
  EXPECT_THAT(refused_file(""), HasSubstr("at byte 0: it does not start"));
  EXPECT_THAT(refused_file("PK\3\4aaaaaaaaaaaa"), HasSubstr("at byte 0"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(2,)"), "12345678", 4)),
              HasSubstr("at byte 6: format version 4"));
  EXPECT_THAT(refused_file(good.substr(0, 9)), HasSubstr("at byte 8: the file ends"));
  EXPECT_THAT(refused_file(good.substr(0, 40)), HasSubstr("at byte 8: the header claims"));
  EXPECT_THAT(refused_file(good.substr(0, good.size() - 1)),
              HasSubstr("takes 8 bytes; the file has 7"));
  EXPECT_THAT(refused_file(good + "x"), HasSubstr("takes 8 bytes; the file has 9"));
  std::string huge_header = npy(dict("<f4", "(2,)"), "12345678", 2);
  std::memset(huge_header.data() + 8, 0xff, 4);
  EXPECT_THAT(refused_file(huge_header),
              HasSubstr("at byte 8: the header claims 4294967295 bytes"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(4611686018427387904, 4)"), "")),
              HasSubstr("is too large"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(0, 4611686018427387904, 4)"), "")),
              HasSubstr("is too large"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(99999999999999999999,)"), "")),
              HasSubstr("a size of at most 63 bits"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(-1,)"), "")), HasSubstr("a size of at most 63 bits"));
  EXPECT_THAT(refused_file(npy(dict("|O", "(1,)"), "12345678")), HasSubstr("Python objects"));
  EXPECT_THAT(refused_file(npy(dict("<U4", "(1,)"), "12345678")),
              HasSubstr("dtype '<U4' is not supported"));
  EXPECT_THAT(refused_file(npy(dict("<f16", "(1,)"), "12345678")),
              HasSubstr("dtype '<f16' is not supported"));
  EXPECT_THAT(refused_file(npy(dict("|V1", "(1,)"), "1")), HasSubstr("either fp8"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(1,)"), "1234"), KILN_BF16),
              HasSubstr("4 bytes; bf16 has 2"));
  EXPECT_THAT(refused_file(npy(dict("|b1", "(3,)"), std::string("\0\1\2", 3))),
              HasSubstr("the byte 2 is neither"));
  EXPECT_THAT(refused_file(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
                               "1234")),
              HasSubstr("records with several fields"));
  EXPECT_THAT(refused_file(npy("{'descr': '<f4', 'shape': (1,), }", "1234")),
              HasSubstr("before it ends"));
  EXPECT_THAT(refused_file(npy("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", "1234")),
              HasSubstr("'descr' is not"));
  EXPECT_THAT(refused_file(npy("{'descr': '<f4', 'evil': 1}", "1234")), HasSubstr("'evil' is not"));
  EXPECT_THAT(refused_file(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "1234")),
              HasSubstr("True or False"));
  EXPECT_THAT(refused_file(npy("{'descr': '<f4", "1234")),
              HasSubstr("a short string with a closing quote"));
  EXPECT_THAT(refused_file(npy(dict("<f4", "(1,)") + "x", "1234")), HasSubstr("nothing more"));
  EXPECT_THAT(refused_file(npy("__import__('os')", "1234")),
              HasSubstr("at byte 10: the header should have a '{'"));
}

// Every prefix, and every byte of the header changed: an answer, never a crash.
TEST(Npy, NoByteOfTheHeaderCanCrashIt) {
  const std::string good = npy(dict("<f4", "(2,)"), "12345678");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse(good.substr(0, length)));
  for (size_t at = 0; at < good.size() - 8; ++at)
    for (int value : {0, 9, 32, 39, 40, 48, 57, 91, 125, 127, 255}) {
      std::string file = good;
      file[at] = static_cast<char>(value);
      (void)parse(file);
    }
}

class NpyFile : public testing::Test {
 protected:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("kiln_npy_test_" + std::to_string(getpid()) + ".npy");
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(NpyFile, EveryDtypeComesBack) {
  for (const DType& type : dtypes()) {
    const std::string text =
        std::string(is_integral(type.kind) ? "randint=0,2:" : "randn:") + type.name + ":3x5:t";
    Result<TensorSpec> spec = parse_tensor_spec(text);
    ASSERT_TRUE(spec) << format(spec.error());
    Result<Array> array = make_array(*spec, 1);
    ASSERT_TRUE(array);
    ASSERT_TRUE(write_npy(path_, *array));
    const Result<Array> back =
        read_npy(path_, type.npy == std::string("V1") ? std::optional(type.code) : std::nullopt);
    ASSERT_TRUE(back) << format(back.error());
    EXPECT_EQ(back->dtype, type.code);
    EXPECT_EQ(elements(*back), elements(*array)) << type.name;
    EXPECT_TRUE(is_contiguous(back->layout));
  }
}

TEST_F(NpyFile, HeaderIsNumpysOwn) {
  const auto header = [](const std::string& text) {
    return npy_header(*make_array(*parse_tensor_spec(text), 0));
  };
  EXPECT_THAT(header("zeros:f32:2x3"),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_THAT(header("zeros:bool:7"),
              HasSubstr("{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_THAT(header("zeros:i64:scalar"),
              HasSubstr("{'descr': '<i8', 'fortran_order': False, 'shape': (), }"));
  EXPECT_EQ(header("zeros:f32:2x3").size() % 64, 0u);
  EXPECT_EQ(header("zeros:f32:2x3").back(), '\n');
}

TEST_F(NpyFile, AMissingFileIsSaid) {
  const Result<Array> array = read_npy("/nonexistent/a.npy");
  ASSERT_FALSE(array);
  EXPECT_THAT(array.error().what, HasSubstr("/nonexistent/a.npy"));
}

}  // namespace
}  // namespace kiln::host
