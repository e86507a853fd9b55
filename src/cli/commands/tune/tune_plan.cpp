// SPDX-License-Identifier: Apache-2.0
// What is to be tuned?
#include "cli/commands/tune/tune_plan.h"

#include <fmt/format.h>

#include "base/text.h"
#include "host/tensor_spec.h"

namespace kiln::cli {
namespace {

struct Table {
  const std::string& source;
  std::string where;
  Error wrong(std::string why) const {
    return {Fault::Usage, fmt::format("{}: {}", source, where), std::move(why),
            "op, args, check_args, vary, where, defines, against, expect, rtol, atol, kernel, "
            "shared_bytes, threads, max_spill_bytes, max_registers, min_blocks: "
            "see kiln docs reference/tune"};
  }
};

struct Key {
  const char* name;
  // False: the value is of another type.
  bool (*read)(const Json& value, TuneWords& to);
};

bool text_of(const Json& value, std::string& to) {
  if (!value.is_string() && !value.is_number()) return false;
  to = plain_text(value);
  return true;
}
bool texts_of(const Json& value, std::vector<std::string>& to) {
  if (!value.is_array()) return false;
  for (const Json& one : value) to.push_back(plain_text(one));
  return true;
}
template <class T>
bool number_of(const Json& value, std::optional<T>& to) {
  if (!value.is_number()) return false;
  to = value.get<T>();
  return true;
}

constexpr Key kPlanKeys[] = {
    {"op", [](const Json& v, TuneWords& w) { return text_of(v, w.op); }},
    {"args", [](const Json& v, TuneWords& w) { return texts_of(v, w.arguments); }},
    {"check_args", [](const Json& v, TuneWords& w) { return texts_of(v, w.check); }},
    {"defines", [](const Json& v, TuneWords& w) { return texts_of(v, w.defines); }},
    {"against", [](const Json& v, TuneWords& w) { return text_of(v, w.against); }},
    {"expect", [](const Json& v, TuneWords& w) { return text_of(v, w.expect); }},
    {"kernel", [](const Json& v, TuneWords& w) { return text_of(v, w.kernel); }},
    {"shared_bytes", [](const Json& v, TuneWords& w) { return text_of(v, w.shared_bytes); }},
    {"threads", [](const Json& v, TuneWords& w) { return text_of(v, w.threads); }},
    {"rtol", [](const Json& v, TuneWords& w) { return number_of(v, w.rtol); }},
    {"atol", [](const Json& v, TuneWords& w) { return number_of(v, w.atol); }},
    {"max_spill_bytes",
     [](const Json& v, TuneWords& w) { return number_of(v, w.max_spill_bytes); }},
    {"max_registers", [](const Json& v, TuneWords& w) { return number_of(v, w.max_registers); }},
    {"min_blocks", [](const Json& v, TuneWords& w) { return number_of(v, w.min_blocks); }},
};

Result<TuneWords> words_of(const Json& json, const Table& table) {
  TuneWords words;
  if (!json.is_object()) return table.wrong("it must be a table");
  std::vector<std::string> names = {"vary", "where"};
  for (const Key& key : kPlanKeys) names.emplace_back(key.name);
  for (const auto& [name, value] : json.items()) {
    if (name == "vary" || name == "where") continue;
    const Key* known = nullptr;
    for (const Key& key : kPlanKeys)
      if (name == key.name) known = &key;
    if (!known) {
      const auto meant = text::closest(name, names);
      return table.wrong(fmt::format("unknown key '{}'{}", name,
                                     meant ? fmt::format("; did you mean {}?", *meant) : ""));
    }
    if (!known->read(value, words))
      return table.wrong(fmt::format("'{}' is {}", name, dump(value)));
  }
  return words;
}

Result<std::optional<tune::Expression>> expression(const std::string& text) {
  if (text.empty()) return std::optional<tune::Expression>();
  TRY(tune::Expression made, tune::Expression::parse(text));
  return std::optional(std::move(made));
}

template <class T>
void prefer(T& said, const T& written) {
  if (said == T()) said = written;
}

// The keys of the release before, under the names of their options.
Json with_new_names(Json table, const std::string& source, const std::string& name,
                    std::vector<std::string>& notes) {
  constexpr std::pair<const char*, const char*> kOld[] = {
      {"params", "vary"}, {"reference", "against"}, {"check", "check_args"}};
  if (!table.is_object()) return table;
  for (const auto& [old_name, now] : kOld) {
    if (!table.contains(old_name) || table.contains(now)) continue;
    table[now] = table[old_name];
    table.erase(old_name);
    notes.push_back(fmt::format("note: {}: tune.{}.{} is now {} (works until the next release)",
                                source, name, old_name, now));
  }
  return table;
}

}  // namespace

Result<TunePlan> tune_plan(const TuneWords& said, const Json& tables, const std::string& source) {
  TunePlan plan;
  plan.name = said.name;
  TuneWords words = said;
  Json vary, where = Json::array();
  if (tables.is_object() && tables.contains(said.name)) {
    const Json json = with_new_names(tables[said.name], source, said.name, plan.notes);
    TRY(const TuneWords written, words_of(json, {source, "tune." + said.name}));
    for (auto member : {&TuneWords::op, &TuneWords::against, &TuneWords::expect, &TuneWords::kernel,
                        &TuneWords::shared_bytes, &TuneWords::threads})
      prefer(words.*member, written.*member);
    for (auto member : {&TuneWords::check, &TuneWords::defines})
      prefer(words.*member, written.*member);
    // Results of other arguments are not those of the table's.
    if (words.arguments.empty())
      words.arguments = written.arguments;
    else if (said.check.empty())
      words.check.clear();
    prefer(words.rtol, written.rtol);
    prefer(words.atol, written.atol);
    for (auto member :
         {&TuneWords::max_spill_bytes, &TuneWords::max_registers, &TuneWords::min_blocks})
      prefer(words.*member, written.*member);
    if (json.contains("vary")) vary = json["vary"];
    if (json.contains("where")) where = json["where"];
  }
  if (said.vary.empty() && vary.is_null())
    return Error{Fault::Usage, fmt::format("nothing to tune for {}", said.name),
                 tables.empty()
                     ? "no values were given for any define"
                     : fmt::format("no --vary was given, and {} has no [tune.{}] with vary", source,
                                   said.name),
                 "--vary BLOCK=64,128,256"};
  if (!said.vary.empty()) {
    // A constraint of the table names axes that may not be there any more.
    TRY(plan.space, tune::Space::from_flags(said.vary, said.where));
    where = said.where;
  } else {
    for (const std::string& more : said.where) where.push_back(more);
    TRY(plan.space, tune::Space::from_json(vary, where));
  }
  plan.where = where;
  plan.op = words.op.empty() ? said.name : words.op;
  plan.arguments = words.arguments;
  plan.check = words.check.empty() ? words.arguments : words.check;
  plan.against = words.against;
  plan.expect = words.expect;
  plan.rtol = words.rtol;
  plan.atol = words.atol;
  plan.defines = words.defines;
  plan.rules.kernel = words.kernel;
  TRY(plan.rules.shared, expression(words.shared_bytes));
  TRY(plan.rules.threads, expression(words.threads));
  plan.rules.most_spill_bytes = words.max_spill_bytes.value_or(0);
  plan.rules.most_registers = words.max_registers.value_or(0);
  plan.rules.least_blocks = words.min_blocks.value_or(1);
  return plan;
}

std::vector<std::string> argument_kinds(const std::vector<std::string>& arguments) {
  std::vector<std::string> kinds;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const bool named = equals != std::string::npos &&
                       text::is_identifier(argument.substr(0, equals)) &&
                       !host::looks_like_tensor(argument);
    const std::string name = named ? argument.substr(0, equals + 1) : "";
    const std::string value = argument.substr(name.size());
    const auto spec = host::looks_like_tensor(value) ? host::parse_tensor_spec(value)
                                                     : Result<host::TensorSpec>(Error{});
    const host::DType* type = spec && spec->has_dtype ? host::find_dtype(spec->dtype) : nullptr;
    kinds.push_back(
        name + (type ? fmt::format("{} {}", type->name, host::shape_text(spec->sizes)) : value));
  }
  return kinds;
}

}  // namespace kiln::cli
