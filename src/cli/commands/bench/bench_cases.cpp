// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench/bench_cases.h"

#include <fmt/format.h>

#include "base/text.h"

namespace kiln::cli {
namespace {

Error wrong(const std::string& source, const std::string& where, std::string why) {
  return {Fault::Usage, fmt::format("{}: {}", source, where), std::move(why),
          "op, args, axes, vary, defines, bytes, flops, against, expect: see kiln docs bench"};
}

const std::vector<std::string> kCaseKeys = {"op",      "args",  "axes",  "vary",  "defines",
                                            "against", "bytes", "flops", "expect"};

// An axis that changes nothing would time the same case again and again.
Status check_used(const BenchPlan& plan) {
  for (const measure::Axis& axis : plan.axes) {
    if (axis.is_define) continue;
    std::string all = plan.bytes + " " + plan.flops;
    bool used = all.find(axis.name) != std::string::npos;
    for (const auto* list : {&plan.arguments, &plan.against, &plan.expect})
      for (const std::string& text : *list)
        used |= text.find("{" + axis.name + "}") != std::string::npos;
    if (!used)
      return Error{Fault::Usage, fmt::format("the axis {} changes nothing", axis.name),
                   fmt::format("no argument contains {{{}}}", axis.name),
                   fmt::format("randn:f32:{{{0}}}; for the values of a define --vary {0}={1}",
                               axis.name, text::join(axis.values, ","))};
  }
  return {};
}

// One value or a list of them, as texts.
std::vector<std::string> texts(const Json& value) {
  std::vector<std::string> out;
  if (!value.is_array()) return {plain_text(value)};
  for (const Json& one : value) out.push_back(plain_text(one));
  return out;
}

Result<std::vector<measure::Axis>> axes_of(const Json& table, bool defines,
                                           const std::string& source, const std::string& where) {
  std::vector<measure::Axis> axes;
  if (!table.is_object())
    return wrong(source, where, "it must be a table: { n = [\"2^20\", \"2^24\"] }");
  for (const auto& [name, values] : table.items()) {
    measure::Axis axis{name, texts(values), defines};
    if (axis.values.empty()) return wrong(source, where + "." + name, "it has no value");
    axes.push_back(std::move(axis));
  }
  return axes;
}

Result<BenchPlan> plan_of(const std::string& name, const Json& table, const std::string& source,
                          std::vector<std::string>& notes) {
  const std::string where = "bench." + name;
  if (!table.is_object()) return wrong(source, where, "it must be a table");
  BenchPlan plan;
  plan.name = name;
  for (const auto& [key, value] : table.items()) {
    if (key == "op")
      plan.op = plain_text(value);
    else if (key == "args")
      plan.arguments = texts(value);
    else if (key == "against")
      plan.against = texts(value);
    else if (key == "expect")
      plan.expect = texts(value);
    else if (key == "bytes")
      plan.bytes = plain_text(value);
    else if (key == "flops")
      plan.flops = plain_text(value);
    else if (key == "defines" && !value.is_object())
      plan.defines = texts(value);
    else if (key == "axes" || key == "vary" || key == "defines") {
      if (key == "defines")
        notes.push_back(
            fmt::format("note: {}: {}.defines = {{...}} is now vary = {{...}} (works "
                        "until the next release)",
                        source, where));
      TRY(const std::vector<measure::Axis> axes,
          axes_of(value, key != "axes", source, where + "." + key));
      plan.axes.insert(plan.axes.end(), axes.begin(), axes.end());
    } else {
      const auto meant = text::closest(key, kCaseKeys);
      return wrong(source, where,
                   fmt::format("unknown key '{}'{}", key,
                               meant ? fmt::format("; did you mean {}?", *meant) : ""));
    }
  }
  if (plan.op.empty()) {
    Error error = wrong(source, where, "it names no op");
    error.fix = fmt::format("add a line below [{}]: op = \"NAME\"", where);
    return error;
  }
  return plan;
}

}  // namespace

Result<std::vector<BenchPlan>> plans_of(const Json& bench, const std::string& source,
                                        std::vector<std::string>& notes) {
  std::vector<BenchPlan> plans;
  for (const auto& [name, table] : bench.items()) {
    TRY(BenchPlan plan, plan_of(name, table, source, notes));
    plans.push_back(std::move(plan));
  }
  return plans;
}

Result<std::vector<BenchCase>> cases_of(const BenchPlan& plan) {
  CHECK_OK(check_used(plan));
  std::vector<BenchCase> cases;
  for (const measure::Values& values : measure::combinations(plan.axes)) {
    BenchCase one;
    one.op = plan.op;
    one.against = plan.against;
    one.defines = plan.defines;
    one.values = values;
    for (const std::string& argument : plan.arguments) {
      TRY(std::string text, measure::substitute(argument, values));
      one.arguments.push_back(std::move(text));
    }
    if (!plan.expect.empty()) {
      TRY(one.expect, measure::substitute(plan.expect.front(), values));
    }
    if (!plan.bytes.empty()) {
      TRY(one.bytes, measure::evaluate(plan.bytes, values));
    }
    if (!plan.flops.empty()) {
      TRY(one.flops, measure::evaluate(plan.flops, values));
    }
    for (const measure::Axis& axis : plan.axes)
      if (axis.is_define) one.defines.push_back(axis.name + "=" + values.at(axis.name));
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace kiln::cli
