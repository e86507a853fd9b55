// SPDX-License-Identifier: Apache-2.0
// Do texts mean the same values here as in tests/python/test_one_rule.py? Both read the same cases.
#include "measure/argument_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace kiln::measure {
namespace {

using testing::HasSubstr;

Json cases() {
  std::ifstream file(KILN_TEST_DATA "/unit/host/argument_cases.json");
  return Json::parse(file);
}

// Floats are texts in the answer, because JSON has neither inf nor nan.
Json without_float_texts(const Json& value) {
  if (value.is_array()) {
    Json numbers = Json::array();
    for (const Json& one : value) numbers.push_back(without_float_texts(one));
    return numbers;
  }
  const auto text = value.get<std::string>();
  return text.ends_with("inf") || text == "nan" ? value : Json(std::stod(text));
}

TEST(Arguments, MeanWhatTheSharedCasesSay) {
  size_t seen = 0;
  for (const Json& one : cases()) {
    ++seen;
    const auto text = one.at("text").get<std::string>();
    const Result<Json> found = free_arguments({text});
    if (one.contains("error")) {
      ASSERT_FALSE(found) << text;
      EXPECT_THAT(format(found.error()), HasSubstr(one.at("error").get<std::string>()));
      continue;
    }
    ASSERT_TRUE(found) << text << ": " << format(found.error());
    Json argument = found->at(0);
    EXPECT_EQ(argument.at("name"), one.value("name", "")) << text;
    EXPECT_EQ(argument.at("kind"), one.at("kind")) << text;
    if (argument.at("kind") == "float" || argument.at("kind") == "floats")
      argument["value"] = without_float_texts(argument.at("value"));
    EXPECT_EQ(argument.at("value"), one.at("value")) << text;
  }
  EXPECT_GT(seen, 30u);
}

TEST(Arguments, AreBoundToTheParametersOfAnOp) {
  KilnParameter parameters[3] = {};
  parameters[0] = {"x", KILN_TYPE_TENSOR, 0, {}};
  parameters[1] = {"name", KILN_TYPE_STR, 0, {}};
  parameters[2] = {"dtype", KILN_TYPE_DTYPE, KILN_PARAMETER_HAS_DEFAULT, {}};
  KilnOpInfo op{};
  op.name = "scale";
  op.overload = "named";
  op.schema = "scale.named(Tensor x, str name, ScalarType dtype=float) -> Tensor";
  op.parameters = parameters;
  op.parameter_count = 3;
  const Result<Json> found = bound_arguments({&op, 1}, "scale", {"ones:f32:4", "5", "dtype=bf16"});
  ASSERT_TRUE(found) << format(found.error());
  EXPECT_EQ(found->at(0).at("name"), "");
  EXPECT_EQ(found->at(2).at("name"), "dtype");
  // 5 is a text here, because the parameter is one.
  EXPECT_EQ(found->at(1).at("kind"), "str");
  EXPECT_EQ(found->at(1).at("value"), "5");
  EXPECT_EQ(found->at(2).at("value"), static_cast<int>(KILN_BF16));
  const Result<Json> shorter = bound_arguments({&op, 1}, "scale", {"ones:f32:4", "name=a"});
  ASSERT_TRUE(shorter) << format(shorter.error());
  EXPECT_EQ(shorter->size(), 2u);
  const Result<Json> wrong = bound_arguments({&op, 1}, "scale", {"5", "a"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(format(wrong.error()), HasSubstr("expects Tensor"));
}

}  // namespace
}  // namespace kiln::measure
