// SPDX-License-Identifier: Apache-2.0
// Is the right to write told without writing?
#include "sys/access.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace kiln::sys {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Access, AFolderThatIsNotThereIsAskedAboutAboveAndNotMade) {
  TemporaryFolder folder;
  EXPECT_EQ(nearest_existing(real_files(), folder / "a/b"), folder.path());
  EXPECT_TRUE(may_write(real_files(), folder / "a/b"));
  EXPECT_TRUE(may_write(real_files(), folder.path()));
  EXPECT_THAT(real_files().list(folder.path()), IsEmpty());
}

TEST(Access, BelowAFileNothingCanBeWritten) {
  TemporaryFolder folder;
  ASSERT_TRUE(real_files().write(folder / "file", ""));
  EXPECT_THAT(may_write(real_files(), folder / "file/below").error().why,
              HasSubstr("is a file, not a folder"));
}

TEST(Access, WhereTheSystemForbidsItItIsToldWhatToDo) {
  TemporaryFolder folder;
  // Root may write anywhere but to what the kernel keeps.
  std::filesystem::path closed = ::geteuid() == 0 ? "/proc/self" : folder.path();
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read);
  Status status = may_write(real_files(), closed);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().fix, HasSubstr("writable"));
}

TEST(Exposure, AFolderOfThisUserAloneIsNotExposed) {
  TemporaryFolder folder;
  fs::create_directories(folder / "top/below");
  fs::permissions(folder / "top", fs::perms(0755));
  fs::permissions(folder / "top/below", fs::perms(0755));
  EXPECT_FALSE(exposure_of(folder / "top"));
  EXPECT_FALSE(exposure_of(folder / "top/below", folder / "top"));
  EXPECT_FALSE(exposure_of(folder / "top/not/there/yet", folder / "top"));
}

TEST(Exposure, WhereGroupOrOthersMayWriteIsNamed) {
  TemporaryFolder folder;
  fs::create_directories(folder / "top/below");
  fs::permissions(folder / "top", fs::perms(0755));
  for (int mode : {0775, 0757, 01777}) {
    fs::permissions(folder / "top/below", fs::perms(mode));
    auto exposed = exposure_of(folder / "top/below/deeper", folder / "top");
    ASSERT_TRUE(exposed) << std::oct << mode;
    EXPECT_EQ(exposed->path, folder / "top/below");
    EXPECT_THAT(exposed->why, HasSubstr("other users can write to"));
    EXPECT_THAT(exposed->fix, HasSubstr("chmod -R go-w"));
  }
}

TEST(Exposure, AFolderThatOthersCannotEnterProtectsWhatIsBelowIt) {
  TemporaryFolder folder;
  fs::create_directories(folder / "top/below");
  fs::permissions(folder / "top", fs::perms(0700));
  fs::permissions(folder / "top/below", fs::perms(0777));
  EXPECT_FALSE(exposure_of(folder / "top/below", folder / "top"));
  EXPECT_TRUE(exposure_of(folder / "top/below")) << "what is above is asked about only on request";
  EXPECT_FALSE(exposure_of(folder / "top/below", folder / "top/below", Above::Counts));
}

TEST(Exposure, ALinkLeadsToWhereItPoints) {
  TemporaryFolder folder;
  fs::create_directories(folder / "real");
  fs::permissions(folder / "real", fs::perms(0777));
  fs::create_directory_symlink("real", folder / "link");
  auto exposed = exposure_of(folder / "link");
  ASSERT_TRUE(exposed);
  EXPECT_EQ(exposed->path, folder / "real");
}

TEST(Exposure, WhatAnotherUserOwnsIsExposed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  TemporaryFolder folder;
  fs::create_directories(folder / "top/below");
  ASSERT_EQ(::chown((folder / "top/below").c_str(), 65534, 65534), 0);
  auto exposed = exposure_of(folder / "top/below", folder / "top");
  ASSERT_TRUE(exposed);
  EXPECT_THAT(exposed->why, HasSubstr("user 65534 owns"));
  fs::create_directories(folder / "other");
  fs::create_directory_symlink("../other", folder / "top/link");
  ASSERT_EQ(::lchown((folder / "top/link").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(exposure_of(folder / "top/link", folder / "top"))
      << "a link that somebody else put there";
}

}  // namespace
}  // namespace kiln::sys
