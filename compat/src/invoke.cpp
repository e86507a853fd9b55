// SPDX-License-Identifier: Apache-2.0
#include "invoke.h"

#include "call.h"
#include "convert.h"
#include "front.h"

namespace kiln::compat {

namespace {

// Kernels of this call may touch them; the first on a GPU tells where it runs.
void join(const Value& value, const at::Tensor*& on_gpu) {
  if (value.kind == Value::Kind::tensor) {
    auto* rep = reinterpret_cast<kiln::detail::TensorRep*>(value.tensor.unsafe_rep());
    kiln::detail::join_call(static_cast<kiln::detail::Rep*>(rep));
    if (!on_gpu && rep->device.type == kiln::DeviceType::cuda) on_gpu = &value.tensor;
  }
  for (const Value& one : value.list) join(one, on_gpu);
}

}  // namespace

// A tensor on a GPU sends launches to it. Without one they go where the process would put them: a
// function over CPU tensors may have no kernels at all, so those are not an error where there is a
// GPU.
void invoke(const Function& function, const char* named, Value* arguments, Value& result) {
  kiln::detail::OpRecord record = {};
  record.function = named;
  kiln::detail::Call call(&record, true);
  const at::Tensor* found = nullptr;
  for (int i = 0; i < function.parameter_count; i++) join(arguments[i], found);
  using kiln::detail::Backend;
  if (found)
    call.place_on({kiln::DeviceType::cuda, found->unsafe_rep()->device_index}, Backend::real);
  else
    call.place_on({kiln::DeviceType::cpu, 0}, kiln::detail::default_backend());
  function.invoke(function.data, arguments, result);
  call.finish();
}

}  // namespace kiln::compat
