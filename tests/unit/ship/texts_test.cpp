// SPDX-License-Identifier: Apache-2.0
// Do the header, the stub, the package and the metadata say what the ops and pyproject.toml say?
#include <gmock/gmock.h>

#include "ship/c_header.h"
#include "ship/python_package.h"
#include "ship/python_tools.h"
#include "ship/wheel.h"

namespace kiln::ship {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ParameterFacts parameter(std::string name, uint32_t type) {
  ParameterFacts out;
  out.name = std::move(name);
  out.type = type;
  return out;
}

LibraryFacts two_ops() {
  OpFacts add{"my_add",
              "",
              "my_add(Tensor a, Tensor? b, float alpha=1.0) -> Tensor",
              "like(a)",
              "Sum */ of two.",
              {},
              {}};
  add.parameters = {parameter("a", KILN_TYPE_TENSOR), parameter("b", KILN_TYPE_TENSOR),
                    parameter("alpha", KILN_TYPE_FLOAT)};
  add.parameters[1].optional = true;
  add.parameters[2].has_default = true;
  add.parameters[2].keyword_only = true;
  add.results = {parameter("", KILN_TYPE_TENSOR)};
  OpFacts fill{"fill", "int", "fill.int(Tensor(a!) x, SymInt class_) -> ()", "", "", {}, {}};
  fill.parameters = {parameter("x", KILN_TYPE_TENSOR), parameter("class", KILN_TYPE_INT)};
  fill.parameters[0].written = true;
  OpFacts other = fill;
  other.overload = "float";
  other.parameters[1].type = KILN_TYPE_FLOAT;
  return {"my_ext", {add, fill, other}};
}

TEST(CHeader, HasAFunctionForEachOverload) {
  std::string text = c_header(two_ops());
  EXPECT_THAT(text, HasSubstr("int my_ext_my_add(const KilnTensor* a, const KilnTensor* b, double "
                              "alpha, KilnTensor** result) {"));
  EXPECT_THAT(text, HasSubstr("if (b) {"));  // an optional that was left out is no tensor
  EXPECT_THAT(text, HasSubstr("int my_ext_fill_int(KilnTensor* x, int64_t class_) {"));
  EXPECT_THAT(text, HasSubstr("int my_ext_fill_float(KilnTensor* x, double class_) {"));
  EXPECT_THAT(text, HasSubstr("->call(2, arguments, 2, results)"));
  EXPECT_THAT(text, HasSubstr("Sum * / of two."));  // the comment does not end early
}

TEST(Package, HasEachOpOnceAndTypesForEachOverload) {
  std::string module = ops_module(two_ops()), stub = ops_stub(two_ops());
  EXPECT_THAT(module, HasSubstr("__all__ = [\"my_add\", \"fill\"]"));
  EXPECT_THAT(module, HasSubstr("libmy_ext.so"));
  EXPECT_THAT(stub, HasSubstr("def __call__(self, a: Tensor, b: Optional[Tensor], *, alpha: float "
                              "= ...) -> Tensor: ..."));
  EXPECT_THAT(stub,
              HasSubstr("    @overload\n    def __call__(self, x: Tensor, class: float) -> None"));
  EXPECT_THAT(init_module(two_ops(), "say \"\"\" and \\", "1.0"),
              HasSubstr("\"\"\"say ''' and \\\\\"\"\""));
}

TEST(Metadata, NamesWhatIsNeeded) {
  project::Distribution about;
  about.name = "My.Ext";
  about.version = "1.2";
  about.authors = {"Ada <ada@x.org>", "Bob"};
  about.dependencies = {"torch>=2.7"};
  about.extras = {{"cpu", {"kiln-cuda>=0.1", "x; python_version < '3.10'"}}};
  about.readme = "# Hello\n";
  about.readme_type = "text/markdown";
  std::string text = metadata_text(about);
  EXPECT_THAT(text, HasSubstr("Metadata-Version: 2.1\nName: My.Ext\nVersion: 1.2\n"));
  EXPECT_THAT(text, HasSubstr("Author: Bob\nAuthor-email: Ada <ada@x.org>\n"));
  EXPECT_THAT(text, HasSubstr("Requires-Dist: kiln-cuda>=0.1; extra == \"cpu\"\n"));
  EXPECT_THAT(text,
              HasSubstr("Requires-Dist: x; (python_version < '3.10') and extra == \"cpu\"\n"));
  EXPECT_THAT(text, HasSubstr("\n\n# Hello\n"));
  EXPECT_EQ(about.file_name(), "my_ext");
  about.license = "MIT";
  EXPECT_THAT(metadata_text(about), HasSubstr("Metadata-Version: 2.4\n"));
}

TEST(Tools, NoNetworkIsToldAsSuch) {
  EXPECT_THAT(network_trouble("... [Errno -3] Temporary failure in name resolution ..."),
              HasSubstr("no network"));
  EXPECT_EQ(network_trouble("ERROR: No matching distribution found for torch==9"), "");
}

}  // namespace
}  // namespace kiln::ship
