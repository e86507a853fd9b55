// SPDX-License-Identifier: Apache-2.0
#include "results/inspect/kernel.h"

namespace kiln::results {
namespace {

Json shape_json(const Shape& shape) {
  return shape[0] ? Json{shape[0], shape[1], shape[2]} : Json(nullptr);
}

Json fit_json(const std::optional<Fit>& fit) {
  if (!fit) return nullptr;
  return {{"block_threads", fit->block_threads},
          {"blocks", fit->blocks},
          {"warps", fit->warps},
          {"fraction", fit->fraction},
          {"limiter", fit->limiter}};
}

}  // namespace

Json to_json(const KernelFacts& kernel) {
  Json parameters = Json::array(), mix = Json::object();
  for (const ParameterFacts& parameter : kernel.parameters)
    parameters.push_back({{"offset", parameter.offset}, {"bytes", parameter.bytes}});
  for (const auto& [kind, count] : kernel.mix) mix[kind] = count;
  return {{"name", kernel.name},
          {"symbol", kernel.symbol},
          {"arch", kernel.arch},
          {"image", kernel.image},
          {"registers", kernel.registers},
          {"shared_bytes", kernel.shared_bytes},
          {"shared_reserved_bytes", kernel.reserved_shared_bytes},
          {"stack_bytes", kernel.stack_bytes},
          {"spill_store_bytes", kernel.spill_store_bytes},
          {"spill_load_bytes", kernel.spill_load_bytes},
          {"spill_stores", kernel.spill_stores},
          {"spill_loads", kernel.spill_loads},
          {"constant_bytes", kernel.constant_bytes},
          {"parameter_bytes", kernel.parameter_bytes},
          {"parameters", std::move(parameters)},
          {"barriers", kernel.barriers},
          {"max_threads", shape_json(kernel.max_threads)},
          {"required_threads", shape_json(kernel.required_threads)},
          {"min_blocks", kernel.min_blocks ? Json(kernel.min_blocks) : Json(nullptr)},
          {"cluster", shape_json(kernel.cluster)},
          {"max_registers", kernel.max_registers},
          {"code_bytes", kernel.code_bytes},
          {"instructions", kernel.instructions},
          {"mix", std::move(mix)},
          {"occupancy", fit_json(kernel.fit)}};
}

}  // namespace kiln::results
