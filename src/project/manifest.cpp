// SPDX-License-Identifier: Apache-2.0
// What does a kiln.toml say?
#include "project/manifest.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <functional>
#include <optional>

#include "base/text.h"
#include "project/arch.h"

namespace kiln::project {

namespace {

// Where in which file a complaint belongs.
struct Place {
  std::string_view path;
  Error error(const toml::source_region& at, std::string_view what, std::string why,
              std::string fix) const {
    return {Fault::Usage, fmt::format("{}:{}:{}: {}", path, at.begin.line, at.begin.column, what),
            std::move(why), std::move(fix)};
  }
};

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

Error wrong_type(const Place& place, std::string_view key, const toml::node& node,
                 std::string_view wanted) {
  return place.error(node.source(), fmt::format("'{}' is {}", key, type_name(node)),
                     fmt::format("it must be {}", wanted),
                     "correct the line; kiln docs build shows every key");
}

Result<std::string> string_of(const Place& place, std::string_view key, const toml::node& node) {
  if (auto value = node.value_exact<std::string>()) return *value;
  return wrong_type(place, key, node, "a string");
}

Result<std::vector<std::string>> strings_of(const Place& place, std::string_view key,
                                            const toml::node& node) {
  std::vector<std::string> out;
  const toml::array* array = node.as_array();
  if (!array) return wrong_type(place, key, node, "an array of strings");
  for (const toml::node& item : *array) {
    TRY(std::string value, string_of(place, fmt::format("{}[{}]", key, out.size()), item));
    out.push_back(std::move(value));
  }
  return out;
}

// A scalar as nvcc's -D takes it.
std::optional<std::string> define_value(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto integer = node.value_exact<int64_t>()) return std::to_string(*integer);
  if (auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (auto truth = node.value_exact<bool>()) return *truth ? "1" : "0";
  return std::nullopt;
}

// {BLOCK = 128} or ["BLOCK=128", "FAST"]
Result<std::vector<std::string>> defines_of(const Place& place, std::string_view key,
                                            const toml::node& node) {
  const toml::table* table = node.as_table();
  if (!table) return strings_of(place, key, node);
  std::vector<std::string> out;
  for (const auto& [name, value] : *table) {
    auto text = define_value(value);
    if (!text)
      return wrong_type(place, fmt::format("{}.{}", key, name.str()), value,
                        "a string, number or boolean");
    out.push_back(fmt::format("{}={}", name.str(), *text));
  }
  return out;
}

Result<std::string> arch_of(const Place& place, std::string_view key, const toml::node& node) {
  std::string text;
  if (node.is_array()) {
    TRY(std::vector<std::string> list, strings_of(place, key, node));
    text = text::join(list, ";");
  } else {
    TRY(text, string_of(place, key, node));
  }
  if (text.empty() || text == "native") return text;
  if (auto list = parse_arch_list(text); !list)
    return place.error(node.source(), list.error().what, list.error().why, "write arch = \"9.0\"");
  return text;
}

Json to_json(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    Json out = Json::object();
    for (const auto& [key, value] : *table) out[std::string(key.str())] = to_json(value);
    return out;
  }
  if (const toml::array* array = node.as_array()) {
    Json out = Json::array();
    for (const toml::node& item : *array) out.push_back(to_json(item));
    return out;
  }
  if (auto truth = node.value_exact<bool>()) return *truth;
  if (auto integer = node.value_exact<int64_t>()) return *integer;
  if (auto number = node.value_exact<double>()) return *number;
  return node.value_or(std::string());
}

template <class T>
Status put(T& to, Result<T> from) {
  TRY(to, std::move(from));
  return {};
}

struct Key {
  const char* name;
  Status (*read)(const Place&, std::string_view key, const toml::node&, Manifest&);
};

constexpr Key kKeys[] = {
    {"name", [](auto& p, auto k, auto& n, Manifest& m) { return put(m.name, string_of(p, k, n)); }},
    {"sources",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.sources, strings_of(p, k, n)); }},
    {"arch", [](auto& p, auto k, auto& n, Manifest& m) { return put(m.arch, arch_of(p, k, n)); }},
    {"include",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.include, strings_of(p, k, n)); }},
    {"defines",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.defines, defines_of(p, k, n)); }},
    {"cuda_flags",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.cuda_flags, strings_of(p, k, n)); }},
    {"cflags",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.cflags, strings_of(p, k, n)); }},
    {"ldflags",
     [](auto& p, auto k, auto& n, Manifest& m) { return put(m.ldflags, strings_of(p, k, n)); }},
    {"fast_math",
     [](auto& p, auto k, auto& n, Manifest& m) -> Status {
       auto value = n.template value_exact<bool>();
       if (!value) return wrong_type(p, k, n, "a boolean");
       m.fast_math = *value;
       return {};
     }},
    {"findings",
     [](auto& p, auto k, auto& n, Manifest& m) -> Status {
       auto value = n.template value_exact<std::string>();
       if (!value || (*value != "error" && *value != "warning"))
         return p.error(n.source(), fmt::format("unknown value '{}'", k),
                        "it must be \"warning\" or \"error\"",
                        "write findings = \"error\" to make a build fail on what ptxas finds");
       m.findings_fail = *value == "error";
       return {};
     }},
    {"tune",
     [](auto& p, auto k, auto& n, Manifest& m) -> Status {
       if (!n.is_table()) return wrong_type(p, k, n, "a table");
       m.tune = to_json(n);
       return {};
     }},
    {"bench",
     [](auto& p, auto k, auto& n, Manifest& m) -> Status {
       if (!n.is_table()) return wrong_type(p, k, n, "a table");
       m.bench = to_json(n);
       return {};
     }},
};

Error unknown_key(const Place& place, const toml::key& key) {
  std::vector<std::string> names;
  for (const Key& known : kKeys) names.emplace_back(known.name);
  auto meant = text::closest(key.str(), names);
  return place.error(
      key.source(), fmt::format("unknown key '{}'", key.str()),
      "the keys are " + text::join(names, ", "),
      meant ? fmt::format("write {}", *meant) : "leave it out, or write one of these");
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view path) {
  Place place{path};
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& e) {
    return place.error(e.source(), "invalid TOML", std::string(e.description()),
                       "correct the line; strings are \"quoted\" and arrays [\"a.cu\", \"b.cu\"]");
  }
  Manifest manifest;
  for (const auto& [name, value] : table) {
    const Key* known = std::begin(kKeys);
    while (known != std::end(kKeys) && name != known->name) ++known;
    if (known == std::end(kKeys)) return unknown_key(place, name);
    CHECK_OK(known->read(place, name.str(), value, manifest));
  }
  if (!table.contains("name"))
    return Error{Fault::Usage, fmt::format("{}: 'name' is missing", path),
                 "the ops need a namespace, torch.ops.<name>", "add a line: name = \"my_ops\""};
  if (!text::is_identifier(manifest.name))
    return place.error(
        table.get("name")->source(),
        fmt::format("'{}' is not a valid op library name", manifest.name),
        "it becomes torch.ops.<name> and a C++ name: letters, digits and _, but not a keyword",
        fmt::format("name = \"{}\"", text::to_identifier(manifest.name)));
  if (table.contains("sources") && manifest.sources.empty())
    return place.error(table.get("sources")->source(), "'sources' is empty",
                       "there is nothing to compile",
                       "list the sources, or leave the line out for NAME.cu");
  if (manifest.sources.empty()) manifest.sources = {manifest.name + ".cu"};
  return manifest;
}

Result<Manifest> read_manifest(const sys::Files& files, const sys::fs::path& path) {
  TRY(std::string text, files.read(path));
  return parse_manifest(text, path.string());
}

}  // namespace kiln::project
