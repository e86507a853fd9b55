// SPDX-License-Identifier: Apache-2.0
// Is a good op library opened, and is each wrong file refused with what, why and fix?
#include "host/library.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "sys/files.h"

namespace kiln::host {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::filesystem::path& path) {
  const Result<OpLibrary> library = OpLibrary::open(path);
  EXPECT_FALSE(library);
  return library ? "" : format(library.error());
}

class LibraryFile : public testing::Test {
 protected:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("kiln_library_test_" + std::to_string(getpid()) + ".so");
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
};

TEST(OpLibrary, TellsItsOps) {
  const Result<OpLibrary> library = OpLibrary::open(FAKE_GOOD_LIBRARY);
  ASSERT_TRUE(library) << format(library.error());
  EXPECT_STREQ(library->table().name, "fake");
  EXPECT_EQ(full_name(library->ops()[0]), "add");
  EXPECT_EQ(full_name(library->ops()[1]), "scale.int");
}

TEST(OpLibrary, ARelativeNameIsAFileNotALibraryPath) {
  const auto before = std::filesystem::current_path();
  const std::filesystem::path good = FAKE_GOOD_LIBRARY;
  std::filesystem::current_path(good.parent_path());
  EXPECT_TRUE(OpLibrary::open(good.filename()));
  std::filesystem::current_path(before);
}

TEST(OpLibrary, Missing) {
  EXPECT_THAT(refusal("/nonexistent/lib.so"),
              AllOf(HasSubstr("error: cannot load /nonexistent/lib.so"),
                    HasSubstr("why: there is no such file"), HasSubstr("fix: build it first")));
}

TEST(OpLibrary, NoSymbol) {
  EXPECT_THAT(refusal(FAKE_NO_SYMBOL_LIBRARY),
              AllOf(HasSubstr("why: not a kiln op library: it has no symbol kiln_library"),
                    HasSubstr("fix: include <kiln/op.h>")));
}

TEST(OpLibrary, WrongAbi) {
  EXPECT_THAT(refusal(FAKE_WRONG_ABI_LIBRARY),
              AllOf(HasSubstr("version 77 of the op interface (kiln 9.9.9)"),
                    HasSubstr("version 1"), HasSubstr("fix: build it again")));
}

TEST(OpLibrary, ShortTable) {
  EXPECT_THAT(refusal(FAKE_SHORT_TABLE_LIBRARY), HasSubstr("its table has 24 bytes"));
}
TEST(OpLibrary, NullTable) {
  EXPECT_THAT(refusal(FAKE_NULL_TABLE_LIBRARY), HasSubstr("returned nothing"));
}

TEST(OpLibrary, LoaderFailureInTheLoadersWords) {
  EXPECT_THAT(refusal(FAKE_UNRESOLVED_LIBRARY),
              AllOf(HasSubstr("a_function_that_nobody_has"),
                    HasSubstr("fix: add what defines it to the build")));
}

TEST(OpLibrary, Directory) { EXPECT_THAT(refusal("/"), HasSubstr("it is a directory")); }

TEST_F(LibraryFile, NotElf) {
  write("#!/bin/sh\necho no library at all\n");
  EXPECT_THAT(refusal(path_), HasSubstr("not an ELF file"));
  write("");
  EXPECT_THAT(refusal(path_), HasSubstr("not an ELF file"));
}

TEST_F(LibraryFile, CutShort) {
  const std::string whole = *sys::real_files().read(FAKE_GOOD_LIBRARY);
  write(whole.substr(0, 10));
  EXPECT_THAT(refusal(path_), HasSubstr("it ends after 10 bytes, inside its ELF header"));
  write(whole.substr(0, 64));
  EXPECT_THAT(refusal(path_), HasSubstr("it is truncated: its segment table ends at byte"));
  // The loader would die of SIGBUS.
  write(whole.substr(0, whole.size() / 2));
  EXPECT_THAT(refusal(path_), HasSubstr("the file has " + std::to_string(whole.size() / 2)));
}

TEST_F(LibraryFile, OfAnotherCpuNamesBoth) {
  std::string whole = *sys::real_files().read(FAKE_GOOD_LIBRARY);
  const uint16_t own = static_cast<uint8_t>(whole[18]);
  const uint16_t other = own == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  whole[18] = static_cast<char>(other);
  write(whole);
  EXPECT_THAT(refusal(path_), HasSubstr("it is for " + architecture_name(other) +
                                        "; this machine is " + architecture_name(own)));
  whole[18] = static_cast<char>(EM_CUDA);
  write(whole);
  EXPECT_THAT(refusal(path_), HasSubstr("a cubin"));
  whole[18] = 'z';
  whole[19] = 'z';
  write(whole);
  EXPECT_THAT(refusal(path_), HasSubstr("it is for machine 31354"));
}

TEST(OpLibrary, AnErrorInKilnsFormKeepsItsParts) {
  const Error parts =
      parse_error("error: add failed\n  why: shapes differ\nhere\n  fix: reshape", "unused");
  EXPECT_EQ(parts.what, "add failed");
  EXPECT_EQ(parts.why, "shapes differ\nhere");
  EXPECT_EQ(parts.fix, "reshape");
  EXPECT_EQ(format(parse_error("out of memory", "add failed")),
            "error: add failed\n  why: out of memory");
  EXPECT_EQ(format(parse_error("add: dtype f16 is not supported\n  why: it is written for f32",
                               "add failed")),
            "error: add: dtype f16 is not supported\n  why: it is written for f32");
}

TEST(OpLibrary, NoDeviceIsOfTheEnvironment) {
  const Result<OpLibrary> library = OpLibrary::open(FAKE_GOOD_LIBRARY);
  ASSERT_TRUE(library);
  EXPECT_TRUE(library->default_device());
  setenv("FAKE_NO_DEVICE", "1", 1);
  const Result<Device> device = library->default_device();
  unsetenv("FAKE_NO_DEVICE");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().fault, Fault::Environment);
  EXPECT_EQ(device.error().why, "neither a GPU nor the engine");
}

}  // namespace
}  // namespace kiln::host
