// SPDX-License-Identifier: Apache-2.0
// Does a template become files with its name in them, and is nothing overwritten unasked?
#include "project/scaffold.h"

#include <gmock/gmock.h>

#include "sys/fake_files.h"

namespace kiln::project {
namespace {

using ::testing::HasSubstr;

sys::FakeFiles with_template() {
  sys::FakeFiles files;
  files.add("/t/NAME.cu", "// SPDX-License-Identifier: Apache-2.0\nKILN_OP(NAME)\n")
      .add("/t/tests/test_NAME.py", "NAME.NAME\n");
  files.add("/t/dot-gitignore", "/build/\n");
  return files;
}

TEST(Scaffold, PutsTheNameInPathsAndContents) {
  sys::FakeFiles files = with_template();
  auto scaffold = read_scaffold(files, "/t", "add");
  ASSERT_TRUE(scaffold);
  ASSERT_TRUE(write_scaffold(files, "/p", *scaffold, false));
  EXPECT_EQ(*files.read("/p/add.cu"), "KILN_OP(add)\n");
  EXPECT_EQ(*files.read("/p/tests/test_add.py"), "add.add\n");
  EXPECT_TRUE(files.has("/p/.gitignore"));
}

// pip leaves such folders beside the templates of an installed wheel.
TEST(Scaffold, CompiledPythonStaysBehind) {
  sys::FakeFiles files = with_template();
  files.add("/t/tests/__pycache__/test_NAME.cpython-311.pyc", "bytes");
  auto scaffold = read_scaffold(files, "/t", "add");
  ASSERT_TRUE(scaffold);
  ASSERT_TRUE(write_scaffold(files, "/p", *scaffold, false));
  EXPECT_FALSE(files.has("/p/tests/__pycache__/test_add.cpython-311.pyc"));
  EXPECT_TRUE(files.has("/p/tests/test_add.py"));
}

TEST(Scaffold, OverwritesOnlyByForce) {
  sys::FakeFiles files = with_template();
  files.add("/p/tests/test_add.py", "mine");
  auto scaffold = read_scaffold(files, "/t", "add");
  Status status = write_scaffold(files, "/p", *scaffold, false);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("/p/tests/test_add.py"));
  EXPECT_FALSE(files.has("/p/add.cu")) << "nothing is written when one file is in the way";
  EXPECT_TRUE(write_scaffold(files, "/p", *scaffold, true));
}

TEST(Scaffold, AMissingTemplateIsToldAsABrokenInstallation) {
  auto scaffold = read_scaffold(sys::FakeFiles(), "/t", "add");
  ASSERT_FALSE(scaffold);
  EXPECT_EQ(scaffold.error().fault, Fault::Environment);
}

}  // namespace
}  // namespace kiln::project
