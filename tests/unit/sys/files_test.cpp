// SPDX-License-Identifier: Apache-2.0
// Do files appear whole, and do failures say what to do?
#include "sys/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "sys/fake_files.h"
#include "sys/guarded_files.h"
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

TEST(Files, RewriteKeepsTheLinkAndTheMode) {
  TemporaryFolder folder;
  Files& files = real_files();
  ASSERT_TRUE(files.write(folder / "dotfiles/bashrc", "one"));
  for (mode_t mode : {0640, 0606, 0400}) {
    ASSERT_EQ(::chmod((folder / "dotfiles/bashrc").c_str(), mode), 0);
    ASSERT_TRUE(files.point_link(folder / ".bashrc", "dotfiles/bashrc"));
    const std::string text = "mode " + std::to_string(mode);
    ASSERT_TRUE(rewrite(files, folder / ".bashrc", text));
    EXPECT_TRUE(fs::is_symlink(folder / ".bashrc"));
    EXPECT_EQ(*files.read(folder / "dotfiles/bashrc"), text);
    struct stat now;
    ASSERT_EQ(::stat((folder / ".bashrc").c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777, mode);
    EXPECT_THAT(files.list(folder / "dotfiles"), ElementsAre("bashrc"));
  }
  EXPECT_FALSE(rewrite(files, folder / "nothing", "text"));
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

// A container gives every run the same process number; a killed run leaves its temporaries behind.
TEST(Files, WhatAnEarlierProcessOfTheSameNumberLeftIsNotInTheWay) {
  TemporaryFolder folder;
  Files& files = real_files();
  for (int i = 0; i < 300; ++i)
    for (const char* name : {"a", "link"})
      std::ofstream(folder / ("." + std::string(name) + "." + std::to_string(::getpid()) + "." +
                              std::to_string(i) + ".tmp"));
  EXPECT_TRUE(files.write(folder / "a", "one"));
  EXPECT_TRUE(files.copy(folder / "a", folder / "b"));
  EXPECT_TRUE(files.publish(folder / "b", folder / "a"));
  EXPECT_TRUE(files.point_link(folder / "link", "a"));
}

TEST(Files, ALongNameLeavesRoomForATemporaryOne) {
  TemporaryFolder folder;
  const std::string name(250, 'n');
  ASSERT_TRUE(real_files().write(folder / name, "one"));
  EXPECT_EQ(*real_files().read(folder / name), "one");
}

class Mask {
 public:
  explicit Mask(mode_t mask) : former_(::umask(mask)) {}
  ~Mask() { ::umask(former_); }

 private:
  mode_t former_;
};

mode_t mode_of(const fs::path& path) {
  struct stat s {};
  EXPECT_EQ(::lstat(path.c_str(), &s), 0) << path;
  return s.st_mode & 07777;
}

TEST(Files, WhatIsProtectedIsSoWhateverTheUmask) {
  TemporaryFolder folder;
  Files& files = real_files();
  for (mode_t mask : {0000, 0002, 0077}) {
    Mask set(mask);
    const fs::path top = folder / std::to_string(mask);
    ASSERT_TRUE(write_protected(files, top / "a/b", "x", Durable::No));
    ASSERT_TRUE(files.make_private_directory(top / "c/d/e"));
    for (const fs::path& path : {top, top / "a", top / "a/b", top / "c", top / "c/d"})
      EXPECT_EQ(mode_of(path) & 0022, 0u) << path;
    EXPECT_EQ(mode_of(top / "c/d/e"), 0700u);
  }
}

TEST(Files, ALimitedReadTakesRegularFilesOfABoundedSizeAlone) {
  TemporaryFolder folder;
  const Files& files = real_files();
  std::ofstream(folder / "file") << "12345";
  EXPECT_EQ(*read_limited(files, folder / "file", {.max_bytes = 5}), "12345");
  EXPECT_THAT(read_limited(files, folder / "file", {.max_bytes = 4}).error().why,
              HasSubstr("the limit is 4"));
  EXPECT_EQ(*read_beginning(files, folder / "file", 2), "12");
  EXPECT_EQ(*read_beginning(files, folder / "file", 9), "12345");
  fs::create_symlink("file", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::ofstream(folder / "sparse");
  fs::resize_file(folder / "sparse", uint64_t{200} << 30);
  for (const fs::path& path : {folder / "link", folder / "pipe", folder / "sparse", folder.path(),
                               folder / "none", fs::path("/dev/zero"), fs::path("/dev/stdin")}) {
    EXPECT_FALSE(read_limited(files, path, {.max_bytes = 1 << 20})) << path;
  }
  for (const fs::path& path : {folder / "link", folder / "pipe", fs::path("/dev/zero")})
    EXPECT_FALSE(read_beginning(files, path, 10)) << path;
  EXPECT_EQ(read_beginning(files, folder / "sparse", 10)->size(), 10u);
}

TEST(Files, ALimitedReadOfOwnFilesRefusesWhatOthersMayWriteTo) {
  TemporaryFolder folder;
  const Files& files = real_files();
  std::ofstream(folder / "file") << "x";
  fs::permissions(folder / "file", fs::perms(0644));
  EXPECT_TRUE(read_limited(files, folder / "file", {.max_bytes = 9, .own_only = true}));
  for (int mode : {0664, 0646}) {
    fs::permissions(folder / "file", fs::perms(mode));
    EXPECT_FALSE(read_limited(files, folder / "file", {.max_bytes = 9, .own_only = true}));
    EXPECT_TRUE(read_limited(files, folder / "file", {.max_bytes = 9}));
  }
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
