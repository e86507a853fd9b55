// SPDX-License-Identifier: Apache-2.0
#include "host/device_tensor.h"

#include <fmt/format.h>

namespace kiln::host {
namespace {

Error broken(const std::string& what, std::string why) {
  return {Fault::Work, "cannot read " + what, std::move(why),
          "build the library again; if the error persists, it is a bug in kiln"};
}

Result<Layout> layout_of(const KilnTensor& tensor, const std::string& what) {
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(kMaxDims) ||
      (tensor.ndim > 0 && (!tensor.sizes || !tensor.strides)))
    return broken(what, fmt::format("the op returned a tensor with {} dimensions", tensor.ndim));
  Layout layout{{tensor.sizes, tensor.sizes + tensor.ndim},
                {tensor.strides, tensor.strides + tensor.ndim},
                0};
  if (storage_elements(layout) < 0)
    return broken(what, fmt::format("the op returned a tensor of shape {} and strides {}",
                                    shape_text(layout.sizes), shape_text(layout.strides)));
  return layout;
}

}  // namespace

DeviceTensor::State::~State() {
  if (memory) library.table().deallocate(device.type, device.index, memory);
}

Result<DeviceTensor> DeviceTensor::upload(const OpLibrary& library, const Array& array,
                                          Device device) {
  auto state = std::make_unique<State>(library, device);
  state->bytes = array.storage.size();
  state->dtype = array.dtype;
  state->layout = array.layout;
  const KilnLibrary& table = library.table();
  const std::string what =
      fmt::format("cannot copy a tensor of {} bytes to {}", state->bytes, device_text(device));
  // An empty tensor has memory too: its address then is not null, as for torch's CPU tensors.
  if (table.allocate(device.type, device.index, state->bytes ? state->bytes : 1, &state->memory))
    return library.last_error(what);
  if (state->bytes &&
      table.copy(state->memory, device.type, array.storage.data(), KILN_DEVICE_CPU, state->bytes))
    return library.last_error(what);
  const size_t offset_bytes = static_cast<size_t>(array.layout.offset) * array.type().bytes;
  state->view = {static_cast<char*>(state->memory) + offset_bytes,
                 state->layout.sizes.data(),
                 state->layout.strides.data(),
                 static_cast<int32_t>(state->layout.sizes.size()),
                 array.dtype,
                 device.type,
                 device.index,
                 nullptr,
                 nullptr};
  return DeviceTensor(std::move(state));
}

Result<Array> DeviceTensor::download() const {
  Array array{state_->dtype, state_->layout, {}};
  array.storage.resize(state_->bytes);
  if (state_->bytes &&
      state_->library.table().copy(array.storage.data(), KILN_DEVICE_CPU, state_->memory,
                                   state_->device.type, state_->bytes))
    return state_->library.last_error("cannot read a tensor back from " +
                                      device_text(state_->device));
  return array;
}

Result<Array> download(const OpLibrary& library, const KilnTensor& tensor,
                       const std::string& what) {
  if (!find_dtype(tensor.dtype))
    return broken(what, fmt::format("the op returned an unknown dtype, number {}", tensor.dtype));
  TRY(Layout layout, layout_of(tensor, what));
  TRY(Array array, make_array(tensor.dtype, std::move(layout)));
  if (element_count(array) == 0) return array;
  if (!tensor.data) return broken(what, "the op returned a tensor without memory");
  if (library.table().copy(array.storage.data(), KILN_DEVICE_CPU, tensor.data, tensor.device_type,
                           array.storage.size()))
    return library.last_error(fmt::format("cannot read {} back from {}", what,
                                          device_text({tensor.device_type, tensor.device_index})));
  return array;
}

}  // namespace kiln::host
