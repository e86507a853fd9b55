// SPDX-License-Identifier: Apache-2.0
#include "host/op_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "host/generate.h"
#include "host/random.h"

namespace kiln::host {
namespace {

// Of larger arguments no copy is kept to compare with: it would cost seconds, and memory that may
// not be there.
constexpr size_t kMostBytesKept = size_t{64} << 20;

KilnValue value_of(const Scalar& scalar) {
  KilnValue value{};
  value.type = scalar.type;
  switch (scalar.type) {
    case KILN_TYPE_FLOAT:
      value.as.f = scalar.number;
      break;
    case KILN_TYPE_STR:
      value.count = static_cast<uint32_t>(scalar.string.size());
      value.as.s = scalar.string.c_str();
      break;
    case KILN_TYPE_DEVICE:
      value.as.device = {scalar.device.type, scalar.device.index};
      break;
    case KILN_TYPE_INT_LIST:
      value.count = static_cast<uint32_t>(scalar.integers.size());
      value.as.ints = scalar.integers.data();
      break;
    case KILN_TYPE_FLOAT_LIST:
      value.count = static_cast<uint32_t>(scalar.numbers.size());
      value.as.floats = scalar.numbers.data();
      break;
    default:
      value.as.i = scalar.integer;
  }
  return value;
}

Scalar scalar_of(const KilnValue& value) {
  Scalar scalar;
  scalar.type = value.type;
  switch (value.type) {
    case KILN_TYPE_FLOAT:
      scalar.number = value.as.f;
      break;
    case KILN_TYPE_STR:
      scalar.string.assign(value.as.s ? value.as.s : "", value.as.s ? value.count : 0);
      break;
    case KILN_TYPE_DEVICE:
      scalar.device = {value.as.device.type, value.as.device.index};
      break;
    case KILN_TYPE_INT_LIST:
      scalar.integers.assign(value.as.ints, value.as.ints + value.count);
      break;
    case KILN_TYPE_FLOAT_LIST:
      scalar.numbers.assign(value.as.floats, value.as.floats + value.count);
      break;
    default:
      scalar.integer = value.as.i;
  }
  return scalar;
}

void release(KilnTensor* tensor) {
  if (tensor && tensor->release) tensor->release(tensor);
}

}  // namespace

Result<OpCall> OpCall::prepare(const OpLibrary& library, const BoundCall& bound, Device device,
                               uint64_t seed, ArrayMemory* memory) {
  OpCall call(library, bound.op);
  const KilnOpInfo& op = call.op();
  for (size_t i = 0; i < bound.arguments.size(); ++i)
    CHECK_OK(call.add_argument(op.parameters[i], bound.arguments[i], {device, seed, memory}));
  for (Tensor& tensor : call.tensors_)
    if (std::find(call.devices_.begin(), call.devices_.end(), tensor.tensor.device()) ==
        call.devices_.end())
      call.devices_.push_back(tensor.tensor.device());
  if (call.devices_.empty()) call.devices_.push_back(device);
  call.results_.resize(op.result_count, KilnValue{});
  return call;
}

Status OpCall::add_tensor(std::string name, bool writable, const TensorSpec& spec,
                          const Making& making) {
  const uint64_t seed = seed_for_argument(making.seed, tensors_.size());
  Array array;
  if (const auto known =
          making.memory ? making.memory->find({spec.text, seed}) : ArrayMemory::iterator();
      making.memory && known != making.memory->end()) {
    array = known->second;
  } else {
    TRY(array, make_array(spec, seed));
    if (making.memory) making.memory->emplace(std::pair(spec.text, seed), array);
  }
  TRY(DeviceTensor tensor,
      DeviceTensor::upload(library_, array, spec.device.value_or(making.device)));
  if (writable || array.storage.size() > kMostBytesKept) array.storage = {};
  tensors_.push_back({std::move(name), writable, std::move(array.storage), std::move(tensor)});
  return {};
}

Status OpCall::add_argument(const KilnParameter& parameter, const Argument& argument,
                            const Making& making) {
  if (argument.is_default) {
    arguments_.push_back(parameter.default_value);
    return {};
  }
  const bool writable = parameter.flags & KILN_PARAMETER_MUTABLE;
  KilnValue value{};
  value.type = argument.scalar.type;
  if (value.type == KILN_TYPE_TENSOR) {
    CHECK_OK(add_tensor(parameter.name, writable, argument.tensors.front(), making));
    value.as.tensor = tensors_.back().tensor.view();
  } else if (value.type == KILN_TYPE_TENSOR_LIST) {
    std::vector<KilnTensor*>& list = lists_.emplace_back();
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
      CHECK_OK(add_tensor(fmt::format("{}[{}]", parameter.name, i), writable, argument.tensors[i],
                          making));
      list.push_back(tensors_.back().tensor.view());
    }
    value.count = static_cast<uint32_t>(list.size());
    value.as.tensors = list.data();
  } else {
    value = value_of(scalars_.emplace_back(argument.scalar));
  }
  arguments_.push_back(value);
  return {};
}

OpCall::~OpCall() { release_results(); }

void OpCall::release_results() {
  for (KilnValue& value : results_) {
    if (value.type == KILN_TYPE_TENSOR) release(value.as.tensor);
    if (value.type == KILN_TYPE_TENSOR_LIST) {
      for (uint32_t i = 0; i < value.count; ++i) release(value.as.tensors[i]);
      std::free(const_cast<KilnTensor**>(value.as.tensors));
    }
    value = KilnValue{};
  }
}

Status OpCall::call() {
  release_results();
  if (library_.table().call(index_, arguments_.data(), static_cast<uint32_t>(arguments_.size()),
                            results_.data())) {
    Error error = library_.last_error(fmt::format("{} failed", full_name(op())));
    std::fill(results_.begin(), results_.end(),
              KilnValue{});  // what a failed call left there is nobody's
    return error;
  }
  return {};
}

Status OpCall::synchronize() {
  for (Device device : devices_)
    if (library_.table().synchronize(device.type, device.index))
      return library_.last_error(
          fmt::format("{} failed on {}", full_name(op()), device_text(device)));
  return {};
}

// What did the op change? Its results, and every argument it may write that is not itself a result:
// an op that works in place would otherwise show nothing.
Result<std::vector<Output>> OpCall::outputs() const {
  std::vector<Output> outputs;
  std::vector<const void*> returned;
  auto is_argument = [&](const void* data) {
    return data && std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& argument) {
             return argument.tensor.view()->data == data;
           });
  };
  auto add_tensor_result = [&](std::string name, const KilnTensor* tensor) -> Status {
    Output output{std::move(name), false, {}, std::nullopt};
    if (tensor) {
      TRY(Array array, download(library_, *tensor, output.name));
      output.scalar.type = KILN_TYPE_TENSOR;
      output.array = std::move(array);
      output.in_place = is_argument(tensor->data);
      returned.push_back(tensor->data);
    }
    outputs.push_back(std::move(output));
    return {};
  };
  for (size_t i = 0; i < results_.size(); ++i) {
    const KilnValue& value = results_[i];
    const char* own_name = op().results ? op().results[i].name : nullptr;
    std::string name = results_.size() == 1 ? "result" : fmt::format("result {}", i);
    if (own_name && *own_name) name = own_name;
    if (value.type == KILN_TYPE_TENSOR) {
      CHECK_OK(add_tensor_result(name, value.as.tensor));
    } else if (value.type == KILN_TYPE_TENSOR_LIST) {
      for (uint32_t k = 0; k < value.count; ++k)
        CHECK_OK(add_tensor_result(fmt::format("{}[{}]", name, k), value.as.tensors[k]));
    } else {
      outputs.push_back({std::move(name), false, scalar_of(value), std::nullopt});
    }
  }
  for (const Tensor& argument : tensors_) {
    if (!argument.writable) continue;
    if (std::find(returned.begin(), returned.end(), argument.tensor.view()->data) != returned.end())
      continue;
    TRY(Array array, argument.tensor.download());
    Output output{argument.name, true, {}, std::move(array)};
    output.scalar.type = KILN_TYPE_TENSOR;
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Result<std::vector<std::string>> OpCall::overwritten_inputs() const {
  std::vector<std::string> names;
  for (const Tensor& argument : tensors_) {
    if (argument.sent.empty()) continue;
    TRY(const Array now, argument.tensor.download());
    if (now.storage != argument.sent) names.push_back(argument.name);
  }
  return names;
}

namespace {

// A broadcast row is read once from memory.
double distinct_bytes(const KilnTensor& tensor) {
  const DType* type = find_dtype(tensor.dtype);
  double bytes = type ? type->bytes : 0;
  for (int32_t d = 0; d < tensor.ndim; ++d)
    if (tensor.strides[d] != 0) bytes *= static_cast<double>(tensor.sizes[d]);
  return bytes;
}

}  // namespace

double OpCall::moved_bytes() const {
  double bytes = 0;
  for (const Tensor& argument : tensors_)
    bytes += distinct_bytes(*argument.tensor.view()) * (argument.writable ? 2 : 1);
  const auto add = [&](const KilnTensor* result) {
    const bool is_argument = std::any_of(
        tensors_.begin(), tensors_.end(),
        [&](const Tensor& argument) { return argument.tensor.view()->data == result->data; });
    if (!is_argument) bytes += distinct_bytes(*result);
  };
  for (const KilnValue& value : results_) {
    if (value.type == KILN_TYPE_TENSOR && value.as.tensor) add(value.as.tensor);
    if (value.type == KILN_TYPE_TENSOR_LIST)
      for (uint32_t i = 0; i < value.count; ++i) add(value.as.tensors[i]);
  }
  return bytes;
}

std::vector<std::string> OpCall::tensor_arguments() const {
  std::vector<std::string> texts;
  for (const Tensor& argument : tensors_) {
    const KilnTensor& view = *argument.tensor.view();
    texts.push_back(fmt::format("{}: {} {}", argument.name, dtype_name(view.dtype),
                                shape_text({view.sizes, view.sizes + view.ndim})));
  }
  return texts;
}

}  // namespace kiln::host
