// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/call_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "host/summary.h"

namespace kiln::cli {

using host::number_text;

namespace {

// What is left of the strides after torch would have said "contiguous".
std::string strides_note(const host::Layout& layout) {
  if (host::is_contiguous(layout)) return {};
  return fmt::format(" strides ({})", fmt::join(layout.strides, ", "));
}

bool has_mean(const host::Summary& summary) {
  return summary.nan_count + summary.infinite_count < summary.count;
}

std::string range_text(const host::DType& type, const host::Summary& summary) {
  std::vector<std::string> parts;
  if (summary.has_range) {
    parts.push_back("min " + element_text(type, summary.least, type.print_digits));
    parts.push_back("max " + element_text(type, summary.greatest, type.print_digits));
  }
  if (has_mean(summary)) {
    std::string mean = number_text(summary.mean.real(), 6);
    if (type.kind == host::Kind::Complex)
      mean += (summary.mean.imag() < 0 ? "" : "+") + number_text(summary.mean.imag(), 6) + "j";
    parts.push_back("mean " + mean);
  }
  if (summary.nan_count) parts.push_back(fmt::format("nan {}", summary.nan_count));
  if (summary.infinite_count) parts.push_back(fmt::format("inf {}", summary.infinite_count));
  return text::join(parts, "  ");
}

Json scalar_json(const host::Scalar& scalar) {
  switch (scalar.type) {
    case KILN_TYPE_NONE:
      return nullptr;
    case KILN_TYPE_INT:
      return scalar.integer;
    case KILN_TYPE_FLOAT:
      return scalar.number;
    case KILN_TYPE_BOOL:
      return scalar.integer != 0;
    case KILN_TYPE_STR:
      return scalar.string;
    case KILN_TYPE_INT_LIST:
      return scalar.integers;
    case KILN_TYPE_FLOAT_LIST:
      return scalar.numbers;
    default:
      return host::scalar_text(scalar);
  }
}

// Exact for integers, whatever their size.
Json element_json(const host::DType& type, const host::Element& element) {
  switch (element.kind) {
    case host::Kind::Bool:
      return element.integer != 0;
    case host::Kind::Unsigned:
      return element.integer;
    case host::Kind::Signed:
      return static_cast<int64_t>(element.integer);
    case host::Kind::Float:
      return element.number.real();
    case host::Kind::Complex:
      break;
  }
  return element_text(type, element, 0);
}

Json parameter_json(const KilnParameter& parameter) {
  Json json{{"name", parameter.name}, {"type", host::type_name(parameter)}};
  if (parameter.flags & KILN_PARAMETER_MUTABLE) json["mutable"] = true;
  if (parameter.flags & KILN_PARAMETER_KEYWORD_ONLY) json["keyword_only"] = true;
  if (parameter.flags & KILN_PARAMETER_HAS_DEFAULT) json["has_default"] = true;
  return json;
}

}  // namespace

std::string ops_text(const host::OpLibrary& library) {
  const KilnLibrary& table = library.table();
  if (!table.op_count)
    return fmt::format("no ops in {} (kiln {}): KILN_OP(function, \"a, b\") makes one\n",
                       library.path().string(), table.kiln_version);
  std::string out =
      fmt::format("{}: {} op{} in {} (kiln {})\n", table.name, table.op_count,
                  table.op_count == 1 ? "" : "s", library.path().string(), table.kiln_version);
  for (const KilnOpInfo& op : library.ops()) {
    out += fmt::format("  {}\n", op.schema);
    if (op.doc && *op.doc)
      for (std::string_view line : text::lines(op.doc)) out += fmt::format("      {}\n", line);
    if (op.file && *op.file) out += fmt::format("      {}:{}\n", op.file, op.line);
  }
  return out;
}

Json ops_json(const host::OpLibrary& library) {
  const KilnLibrary& table = library.table();
  Json ops = Json::array();
  for (const KilnOpInfo& op : library.ops()) {
    Json parameters = Json::array(), results = Json::array();
    for (uint32_t i = 0; i < op.parameter_count; ++i)
      parameters.push_back(parameter_json(op.parameters[i]));
    for (uint32_t i = 0; i < op.result_count; ++i)
      results.push_back(host::type_name(op.results[i]));
    ops.push_back({{"name", host::full_name(op)},
                   {"schema", op.schema},
                   {"doc", op.doc},
                   {"fake", op.fake},
                   {"file", op.file},
                   {"line", op.line},
                   {"parameters", parameters},
                   {"results", results}});
  }
  return {{"library", library.path().string()},
          {"name", table.name},
          {"kiln_version", table.kiln_version},
          {"ops", ops}};
}

std::string call_text(const host::OpCall& call, const CallTimes& times) {
  std::string devices;
  for (host::Device device : call.devices())
    devices += (devices.empty() ? "" : ", ") + device_label(device);
  const auto time_text = [](double seconds) { return kiln::time_text(seconds * 1e9); };
  std::string line = fmt::format("{}({}) on {}: {}", host::full_name(call.op()),
                                 text::join(call.tensor_arguments(), ", "), devices,
                                 time_text(times.first_seconds));
  if (!times.later_seconds.empty())
    line += fmt::format(
        " the first time, then {} calls: min {}, median {}", times.later_seconds.size(),
        time_text(*std::min_element(times.later_seconds.begin(), times.later_seconds.end())),
        time_text(median(times.later_seconds)));
  return line + "\n";
}

std::string output_text(const host::Output& output, int64_t edge) {
  const std::string label = output.name + (output.in_place ? " (in place)" : "");
  if (!output.array) return fmt::format("{}: {}\n", label, host::scalar_text(output.scalar));
  const host::Array& array = *output.array;
  const host::DType& type = array.type();
  const host::Summary summary = host::summarise(array);
  std::string out = fmt::format("{}: {} {}{}\n", label, type.name,
                                host::shape_text(array.layout.sizes), strides_note(array.layout));
  if (const std::string range = range_text(type, summary); !range.empty())
    out += "  " + range + "\n";
  if (edge > 0) out += "  " + host::elements_text(array, edge, "  ") + "\n";
  return out;
}

Json output_json(const host::Output& output) {
  Json json{{"name", output.name}, {"in_place", output.in_place}};
  if (!output.array) {
    json["value"] = scalar_json(output.scalar);
    return json;
  }
  const host::Array& array = *output.array;
  const host::DType& type = array.type();
  const host::Summary summary = host::summarise(array);
  json["dtype"] = type.name;
  json["shape"] = array.layout.sizes;
  json["strides"] = array.layout.strides;
  json["nan"] = summary.nan_count;
  json["inf"] = summary.infinite_count;
  json["min"] = summary.has_range ? element_json(type, summary.least) : Json();
  json["max"] = summary.has_range ? element_json(type, summary.greatest) : Json();
  json["mean"] = nullptr;
  if (has_mean(summary) && type.kind == host::Kind::Complex)
    json["mean"] = {{"real", summary.mean.real()}, {"imag", summary.mean.imag()}};
  else if (has_mean(summary))
    json["mean"] = summary.mean.real();
  return json;
}

std::string device_label(host::Device device) {
  if (device.type == KILN_DEVICE_CPU) return "engine (CPU)";
  const std::string name = host::gpu_name(device.index);
  return fmt::format("{} ({})", name.empty() ? "GPU" : name, host::device_text(device));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string mismatch_text(const Expectation& expectation) {
  const host::Comparison& c = expectation.comparison;
  if (!c.unlike.empty()) return c.unlike;
  return fmt::format(
      "{} of {} elements differ by more than rtol {} atol {}; the first at {}: got {}, expected "
      "{}; "
      "greatest error {} "
      "absolute, "
      "{} relative",
      c.mismatches, c.count, number_text(expectation.tolerance.rtol, 3),
      number_text(expectation.tolerance.atol, 3), host::coordinate_text(c.first), c.first_seen,
      c.first_wanted, number_text(c.max_absolute, 3), number_text(c.max_relative, 3));
}

Json expectation_json(const Expectation& expectation) {
  const host::Comparison& c = expectation.comparison;
  Json json{{"expected", expectation.source}, {"output", expectation.output}, {"equal", c.equal}};
  if (!c.note.empty()) json["note"] = c.note;
  if (!c.unlike.empty()) {
    json["unlike"] = c.unlike;
    return json;
  }
  json["rtol"] = expectation.tolerance.rtol;
  json["atol"] = expectation.tolerance.atol;
  json["count"] = c.count;
  json["mismatches"] = c.mismatches;
  json["max_absolute_error"] = c.max_absolute;
  json["max_relative_error"] = c.max_relative;
  if (!c.equal)
    json["first_mismatch"] = {
        {"index", c.first}, {"seen", c.first_seen}, {"wanted", c.first_wanted}};
  return json;
}

}  // namespace kiln::cli
