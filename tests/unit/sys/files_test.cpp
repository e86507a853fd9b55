// SPDX-License-Identifier: Apache-2.0
// Do files appear whole, and do failures say what to do?
#include "sys/files.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "sys/fake_files.h"
#include "temporary_folder.h"

namespace kiln::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Files, WriteMakesFoldersAndLeavesNoTemporary) {
  TemporaryFolder folder;
  Files& files = real_files();
  for (Durable durable : {Durable::Yes, Durable::No, Durable::Scratch})
    for (const char* content : {"one", "two"}) {
      ASSERT_TRUE(files.write(folder / "a/b/c.txt", content, durable));
      EXPECT_EQ(*files.read(folder / "a/b/c.txt"), content);
      EXPECT_THAT(files.list(folder / "a/b"), ElementsAre("c.txt"));
    }
}

TEST(Files, WriteLeavesAFolderOfThatNameAlone) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.write(folder / "a/inner.txt", "one"));
  for (Durable durable : {Durable::No, Durable::Scratch}) {
    EXPECT_FALSE(files.write(folder / "a", "two", durable));
    EXPECT_EQ(*files.read(folder / "a/inner.txt"), "one");
    EXPECT_THAT(files.list(folder / ""), ElementsAre("a"));
  }
}

TEST(Files, ReadsFilesThatSayTheyHaveNoSize) {
  EXPECT_THAT(*real_files().read("/proc/self/status"), HasSubstr("Name:"));
}

TEST(Files, AMissingFileAndAFolderAreErrorsWithTheirPath) {
  TemporaryFolder folder;
  EXPECT_THAT(real_files().read(folder / "none").error().what, HasSubstr("none"));
  EXPECT_FALSE(real_files().read(folder.path()));
  EXPECT_FALSE(real_files().state(folder / "none").exists);
}

TEST(Files, PublishGivesASecondNameAndReplacesAnOlderOne) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.write(folder / "old", "old"));
  ASSERT_TRUE(files.write(folder / "from", "new"));
  ASSERT_TRUE(files.publish(folder / "from", folder / "old"));
  EXPECT_EQ(*files.read(folder / "old"), "new");
  EXPECT_EQ(files.state(folder / "old").inode, files.state(folder / "from").inode);
  ASSERT_TRUE(files.publish(folder / "from", folder / "old"));  // two names of one file already
  EXPECT_THAT(files.list(folder.path()), ElementsAre("from", "old"));
}

TEST(Files, LinkIsSwapped) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.write(folder / "1", "one"));
  ASSERT_TRUE(files.write(folder / "2", "two"));
  ASSERT_TRUE(files.point_link(folder / "link", "1"));
  ASSERT_TRUE(files.point_link(folder / "link", "2"));
  EXPECT_EQ(*files.read(folder / "link"), "two");
  EXPECT_THAT(files.list(folder.path()), ElementsAre("1", "2", "link"));
}

TEST(Files, CopyKeepsTheExecutableMark) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.copy("/bin/sh", folder / "sh"));
  EXPECT_TRUE(files.state(folder / "sh").is_executable);
}

TEST(Files, AStateTellsTwoContentsOfOneSizeApart) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.write(folder / "a", "one"));
  FileState before = files.state(folder / "a");
  ASSERT_TRUE(files.write(folder / "a", "two"));
  EXPECT_FALSE(files.state(folder / "a") == before);
}

TEST(DiskError, SaysWhatToDoAboutAFullDisk) {
  EXPECT_THAT(disk_error("cannot write", "/x/y", ENOSPC).fix, HasSubstr("free some space"));
  EXPECT_THAT(disk_error("cannot write", "/x/y", EROFS).fix, HasSubstr("--build-dir"));
  EXPECT_EQ(disk_error("cannot write", "/x/y", EIO).what, "cannot write /x/y");
}

TEST(FindProgram, TakesTheFirstExecutableOfThePath) {
  FakeFiles files;
  files.add("/a/tool", "", false).add("/b/tool", "", true).add("/c/tool", "", true);
  EXPECT_EQ(find_program(files, "tool", "/a:/b:/c"), "/b/tool");
  EXPECT_EQ(find_program(files, "/c/tool", "/a"), "/c/tool");
  EXPECT_EQ(find_program(files, "other", "/a:/b"), "");
}

}  // namespace
}  // namespace kiln::sys
