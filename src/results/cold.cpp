// SPDX-License-Identifier: Apache-2.0
#include "results/cold.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, ColdStage& stage) {
  field("name", stage.name);
  field("median_ns", stage.median_ns);
  field.maybe("low_ns", stage.low_ns);
  field.maybe("high_ns", stage.high_ns);
  field.maybe("why", stage.why);
}

template <class Fields>
static void describe(Fields& field, ColdKind& kind) {
  field("kind", kind.kind);
  field("runs", kind.runs);
  field("stages", kind.stages);
  field("total_ns", kind.total_ns);
}

template <class Fields>
static void describe(Fields& field, ColdResult& result) {
  field("format", result.format);
  field("title", result.title);
  field("kinds", result.kinds);
  field("advice", result.advice);
}

Json to_json(const ColdResult& result) { return write(result); }

Result<ColdResult> read_cold(const Json& json, std::string_view source) {
  return read<ColdResult>(json, source);
}

}  // namespace kiln::results
