// SPDX-License-Identifier: Apache-2.0
// What must be known of a library's ops to write files about them?
#include "ship/op_facts.h"

#include <fmt/format.h>

namespace kiln::ship {

namespace {

// 2.0 and not 2: it is a float.
std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

template <class T, class Write>
std::string list_text(const T* values, uint32_t count, Write write) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i) text += (i ? ", " : "") + write(values[i]);
  return text + "]";
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out + "\"";
}

std::string default_text(const KilnValue& value) {
  switch (value.type) {
    case KILN_TYPE_INT:
    case KILN_TYPE_DTYPE:
      return std::to_string(value.as.i);
    case KILN_TYPE_BOOL:
      return value.as.i ? "True" : "False";
    case KILN_TYPE_FLOAT:
      return float_text(value.as.f);
    case KILN_TYPE_STR:
      return quoted({value.as.s, value.count});
    case KILN_TYPE_INT_LIST:
      return list_text(value.as.ints, value.count, [](int64_t i) { return std::to_string(i); });
    case KILN_TYPE_FLOAT_LIST:
      return list_text(value.as.floats, value.count, float_text);
    case KILN_TYPE_NONE:
      return "None";
    default:
      return "...";
  }
}

ParameterFacts facts_of(const KilnParameter& from) {
  ParameterFacts out;
  out.name = from.name;
  out.type = from.type;
  out.optional = from.flags & KILN_PARAMETER_OPTIONAL;
  out.written = from.flags & KILN_PARAMETER_MUTABLE;
  out.keyword_only = from.flags & KILN_PARAMETER_KEYWORD_ONLY;
  out.has_default = from.flags & KILN_PARAMETER_HAS_DEFAULT;
  if (out.has_default) out.default_text = default_text(from.default_value);
  return out;
}

}  // namespace

LibraryFacts read_facts(const host::OpLibrary& library) {
  LibraryFacts out{library.table().name, {}};
  for (const KilnOpInfo& op : library.ops()) {
    OpFacts facts{op.name, op.overload, op.schema, op.fake, op.doc, {}, {}};
    for (uint32_t i = 0; i < op.parameter_count; ++i)
      facts.parameters.push_back(facts_of(op.parameters[i]));
    for (uint32_t i = 0; i < op.result_count; ++i) facts.results.push_back(facts_of(op.results[i]));
    out.ops.push_back(std::move(facts));
  }
  return out;
}

}  // namespace kiln::ship
