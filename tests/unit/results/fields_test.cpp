// SPDX-License-Identifier: Apache-2.0
// Does a result come back from JSON as it was, and is a missing key an error that names it?
#include "results/fields.h"

#include <gmock/gmock.h>

#include "results/build_report.h"

namespace kiln::results {
namespace {

using testing::HasSubstr;

struct Inner {
  double ns = 0;
  int64_t count = 0;
};
struct Outer {
  std::string name;
  bool good = false;
  std::optional<Inner> one;
  std::optional<double> rate;
  std::vector<Inner> list;
  Named<int> counts;
  Json rest;
};

template <class Fields>
void describe(Fields& field, Inner& inner) {
  field("ns", inner.ns);
  field("count", inner.count);
}

template <class Fields>
void describe(Fields& field, Outer& outer) {
  field("name", outer.name);
  field("good", outer.good);
  field("one", outer.one);
  field.maybe("rate", outer.rate);
  field("list", outer.list);
  field("counts", outer.counts);
  field("rest", outer.rest);
}

Outer full() {
  return {"a", true, Inner{1.5, 3}, 7.0, {{1, 1}, {2, 2}}, {{"b", 1}, {"a", 2}}, Json::array({1})};
}

std::string why_not(const Json& json) {
  const auto read_back = read<Outer>(json, "result.json");
  return read_back ? "" : read_back.error().why;
}

TEST(Fields, ThereAndBack) {
  const Json json = write(full());
  EXPECT_EQ(json["counts"].begin().key(), "b");  // the order of the text stays
  const auto back = read<Outer>(json, "result.json");
  ASSERT_TRUE(back) << back.error().why;
  EXPECT_EQ(write(*back), json);
}

TEST(Fields, NothingIsNullOrLeftOut) {
  Outer outer = full();
  outer.one.reset();
  outer.rate.reset();
  const Json json = write(outer);
  EXPECT_TRUE(json.at("one").is_null());
  EXPECT_FALSE(json.contains("rate"));
  const auto back = read<Outer>(json, "result.json");
  ASSERT_TRUE(back) << back.error().why;
  EXPECT_FALSE(back->one || back->rate);
}

TEST(Fields, AMissingKeyIsAnErrorThatNamesFileAndPlace) {
  Json json = write(full());
  json["list"][1].erase("count");
  const auto back = read<Outer>(json, "result.json");
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().what, "cannot read result.json");
  EXPECT_EQ(back.error().why, "list[1] has no key 'count'");
  EXPECT_FALSE(back.error().fix.empty());
  json = write(full());
  json.erase("name");
  EXPECT_EQ(why_not(json), "it has no key 'name'");
  json = write(full());
  json.erase("one");
  EXPECT_EQ(why_not(json), "it has no key 'one'");
}

TEST(Fields, AValueOfAnotherTypeIsAnError) {
  EXPECT_THAT(why_not(Json::array()), HasSubstr("it is of type array; expected an object"));
  Json json = write(full());
  json["one"]["ns"] = "fast";
  EXPECT_EQ(why_not(json), "one.ns is of type string; expected a number");
  json = write(full());
  json["list"][0]["count"] = 1.5;
  EXPECT_EQ(why_not(json), "list[0].count is of type number; expected a whole number");
  json = write(full());
  json["counts"]["a"] = nullptr;
  EXPECT_EQ(why_not(json), "counts.a is null; expected a whole number");
}

TEST(Fields, NumbersAsPythonWritesThem) {
  Json json = write(full());
  json["list"][0]["count"] = 3.0;
  json["one"]["ns"] = nullptr;  // NaN
  const auto back = read<Outer>(json, "result.json");
  ASSERT_TRUE(back) << back.error().why;
  EXPECT_EQ(back->list[0].count, 3);
  EXPECT_TRUE(std::isnan(back->one->ns));
}

TEST(BuildReports, ThereAndBack) {
  BuildReport report;
  report.name = "add";
  report.steps.resize(1);
  report.steps[0].what = "link";
  report.steps[0].commands = {{"ld", 7, 0.5, 0.4, 1000}};
  report.headers = {{"cub.cuh", 0.5}};
  const Json json = to_json(report);
  const auto back = read_build_report(json, "explain.json");
  ASSERT_TRUE(back) << back.error().why;
  EXPECT_EQ(to_json(*back), json);
  Json broken = json;
  broken["steps"][0]["commands"][0].erase("cpu_seconds");
  const auto failed = read_build_report(broken, "explain.json");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().why, "steps[0].commands[0] has no key 'cpu_seconds'");
}

}  // namespace
}  // namespace kiln::results
