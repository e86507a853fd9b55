// SPDX-License-Identifier: Apache-2.0
#include "results/tune_prediction.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, PredictedVariant& variant) {
  field("defines", variant.defines);
  field("us", variant.us);
  field("bound_us", variant.bound_us);
  field("limited_by", variant.limited_by);
  field("why", variant.why);
}

template <class Fields>
static void describe(Fields& field, TunePrediction& prediction) {
  field("op", prediction.op);
  field("gpu", prediction.gpu);
  field("arguments", prediction.arguments);
  field("variants", prediction.variants);
}

Json to_json(const TunePrediction& prediction) { return write(prediction); }

}  // namespace kiln::results
