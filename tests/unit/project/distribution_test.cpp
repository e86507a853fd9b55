// SPDX-License-Identifier: Apache-2.0
// Is a pyproject.toml read, and what PyPI would refuse refused here?
#include "project/distribution.h"

#include <gmock/gmock.h>

#include "project/package_name.h"
#include "sys/fake_files.h"

namespace kiln::project {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Distribution> read(const std::string& text) {
  sys::FakeFiles files;
  files.add("/p/pyproject.toml", text).add("/p/README.md", "# Read me\n").add("/p/LICENSE", "free");
  return read_distribution(files, "/p", "my_ext");
}

TEST(Distribution, HasDefaultsWithoutAFile) {
  sys::FakeFiles files;
  files.add_directory("/p");
  auto about = read_distribution(files, "/p", "my_ext");
  ASSERT_TRUE(about) << format(about.error());
  EXPECT_EQ(about->name, "my_ext");
  EXPECT_EQ(about->version, "0.1.0");
  EXPECT_THAT(about->dependencies, ElementsAre("torch>=2.7"));
  EXPECT_FALSE(about->from_file);
}

TEST(Distribution, ReadsTheProjectTable) {
  auto about = read(R"(
[project]
name = "My-Ext"
version = "1.0rc1"
description = "Fast"
readme = "README.md"
license = "MIT"
authors = [{name = "Ada", email = "ada@x.org"}]
dependencies = ["torch>=2.8"]
urls = { Home = "https://x.org" }
[project.optional-dependencies]
plot = ["matplotlib"]
[project.scripts]
my-ext = "my_ext:main"
)");
  ASSERT_TRUE(about) << format(about.error());
  EXPECT_EQ(about->name, "My-Ext");
  EXPECT_EQ(about->readme, "# Read me\n");
  EXPECT_EQ(about->readme_type, "text/markdown");
  EXPECT_THAT(about->authors, ElementsAre("Ada <ada@x.org>"));
  EXPECT_THAT(about->license_files, ElementsAre("LICENSE"));
  EXPECT_EQ(about->entry_points, "[console_scripts]\nmy-ext = my_ext:main\n");
  EXPECT_TRUE(about->from_file);
}

TEST(Distribution, TellsWhatIsWrong) {
  EXPECT_THAT(read("[project]\nname = 3\n").error().why, HasSubstr("not a string"));
  EXPECT_THAT(read("[project]\nname = \"a\"\nversion = \"one\"\n").error().what,
              HasSubstr("invalid version 'one'"));
  EXPECT_THAT(read("[project]\nname = \"a\"\ndynamic = [\"version\"]\n").error().why,
              HasSubstr("dynamic"));
  EXPECT_THAT(read("[project]\nname = \"a\"\ndescription = \"two\\nlines\"\n").error().why,
              HasSubstr("line break"));
  EXPECT_THAT(read("[project]\nname = \"a\"\nreadme = \"gone.md\"\n").error().why,
              HasSubstr("gone.md"));
  EXPECT_THAT(read("[project\n").error().what, HasSubstr("pyproject.toml:1"));
}

TEST(Distribution, RefusesNamesThatPypiRefuses) {
  for (const char* bad :
       {"", "-a", "a_", "a b", "json", "Asyncio", "torch", "kiln", "requirements.txt"})
    EXPECT_NE(name_refused(bad), "") << bad;
  for (const char* good : {"my_ext", "a", "flash-attn", "x2.y"})
    EXPECT_EQ(name_refused(good), "") << good;
}

TEST(Distribution, KnowsVersions) {
  for (const char* good :
       {"1", "1.0", "2026.11.15", "1.0a1", "1.0rc2.post1.dev3", "1!2.0", "1.0+cu130"})
    EXPECT_TRUE(is_version(good)) << good;
  for (const char* bad : {"", "v1.0", "1.", "1.0-beta", "1.0rc", "1.0+", "1..0", "one"})
    EXPECT_FALSE(is_version(bad)) << bad;
}

}  // namespace
}  // namespace kiln::project
