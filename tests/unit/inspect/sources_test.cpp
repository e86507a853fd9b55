// SPDX-License-Identifier: Apache-2.0
// Is only that source shown which lies in the project or where the user said?
#include "inspect/sources.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "../sys/temporary_folder.h"

namespace kiln::inspect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class SourcesTest : public testing::Test {
 protected:
  SourcesTest() {
    fs::create_directories(folder_ / "project/src");
    fs::create_directories(folder_ / "elsewhere");
    for (const char* name : {"project/add.cu", "project/src/a.cuh", "project/.env",
                             "elsewhere/secret.h", "elsewhere/key"})
      std::ofstream(folder_ / name) << "first\nsecond\n";
  }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  Sources sources(std::vector<fs::path> named = {}) const {
    return Sources(sys::real_files(), {{folder_ / "project"}, std::move(named)});
  }

  sys::TemporaryFolder folder_;
};

TEST_F(SourcesTest, OfTheProjectByItsWholePathRelativeAndAsKilnCompilesIt) {
  Sources shown = sources();
  for (const std::string& name :
       {at("project/add.cu"), std::string("add.cu"), std::string("/proc/self/cwd/add.cu"),
        std::string("/proc/self/cwd/src/a.cuh"), at("project/src/../add.cu")})
    EXPECT_THAT(shown.of(name).lines, ElementsAre("first", "second")) << name;
  EXPECT_EQ(shown.note(), "");
}

TEST_F(SourcesTest, NotOutsideOfItByAnyWay) {
  fs::create_symlink(folder_ / "elsewhere/secret.h", folder_ / "project/link.h");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "project/folder");
  Sources shown = sources();
  for (const std::string& name :
       {at("elsewhere/secret.h"), at("project/../elsewhere/secret.h"), at("project/link.h"),
        at("project/folder/secret.h"), std::string("../elsewhere/secret.h"),
        std::string("/proc/self/cwd/../elsewhere/secret.h"), std::string("/etc/passwd"),
        std::string("/proc/self/environ"), std::string("/dev/zero"), at("project/.env"),
        "/proc/self/root" + at("project/add.cu")}) {
    EXPECT_FALSE(shown.of(name).shown) << name;
    EXPECT_TRUE(shown.of(name).lines.empty()) << name;
    EXPECT_NE(shown.of(name).why, "") << name;
  }
  EXPECT_THAT(shown.note(), HasSubstr("11 sources are left out"));
  EXPECT_THAT(shown.note(), HasSubstr("--sources DIR"));
}

TEST_F(SourcesTest, APipeADeviceAndAHugeFileAreNotRead) {
  ASSERT_EQ(::mkfifo(at("project/pipe.h").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", at("project/zero.h"));
  std::ofstream(at("project/huge.h"));
  fs::resize_file(at("project/huge.h"), uint64_t{200} << 30);
  Sources shown = sources({folder_ / "project"});
  for (const char* name : {"project/pipe.h", "project/zero.h", "project/huge.h", "project/src"})
    EXPECT_FALSE(shown.of(at(name)).shown) << name;
}

TEST_F(SourcesTest, WhatTheUserNamesIsShownWhateverItsName) {
  Sources shown = sources({folder_ / "elsewhere"});
  EXPECT_TRUE(shown.of(at("elsewhere/secret.h")).shown);
  EXPECT_TRUE(shown.of(at("elsewhere/key")).shown);
  EXPECT_EQ(shown.note(), "");
}

TEST_F(SourcesTest, WithoutAProjectThereIsNothing) {
  Sources none(sys::real_files(), {});
  EXPECT_FALSE(none.of(at("project/add.cu")).shown);
  EXPECT_FALSE(none.of("add.cu").shown);
}

TEST_F(SourcesTest, WhatIsNotOnThisMachineIsNotCalledLeftOut) {
  Sources shown = sources();
  EXPECT_FALSE(shown.of("/build/agent/kernel.cu").shown);
  EXPECT_EQ(shown.note(), "");
}

}  // namespace
}  // namespace kiln::inspect
