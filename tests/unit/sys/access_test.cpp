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
  EXPECT_THAT(may_write(real_files(), folder / "file/below").error().why, HasSubstr("is a file, not a folder"));
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

}  // namespace
}  // namespace kiln::sys
