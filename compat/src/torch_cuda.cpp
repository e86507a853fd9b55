// SPDX-License-Identifier: Apache-2.0
// Who answers for torch/cuda.h? Python's torch and torch.cuda: seeds reach the generators that the
// user's own code draws from, and the GPUs are those that torch sees.
#include <kiln/compat/torch_cuda.h>

#include "convert.h"

namespace torch {
inline namespace kc {

namespace {

using namespace kiln::compat;

Ref call_torch(const char* module, const char* function, const uint64_t* argument = nullptr) {
  if (!has_python())
    throw c10::Error(c10::str("error: cannot call ", module, ".", function,
                              "\n  why: a library built with kiln's compat headers asks Python, "
                              "and there is none in this process\n  fix: kiln build "
                              "--compat=never"));
  Ref arguments = checked(PyTuple_New(argument ? 1 : 0));
  if (argument)
    PyTuple_SetItem(arguments.get(), 0, checked(PyLong_FromUnsignedLongLong(*argument)).take());
  return checked(PyObject_CallObject(torch_attribute(module, function).get(), arguments.get()));
}

void tell_torch(const char* module, const char* function, const uint64_t* argument) {
  WithGil gil;
  call_torch(module, function, argument);
}

}  // namespace

void manual_seed(uint64_t seed) { tell_torch("torch", "manual_seed", &seed); }

namespace cuda {
size_t device_count() {
  WithGil gil;
  return PyLong_AsUnsignedLongLong(call_torch("torch.cuda", "device_count").get());
}
bool cudnn_is_available() {
  if (!is_available()) return false;
  WithGil gil;
  return PyObject_IsTrue(call_torch("torch.backends.cudnn", "is_available").get()) == 1;
}
void manual_seed(uint64_t seed) { tell_torch("torch.cuda", "manual_seed", &seed); }
void manual_seed_all(uint64_t seed) { tell_torch("torch.cuda", "manual_seed_all", &seed); }
void synchronize(int64_t device_index) {
  TORCH_CHECK(is_available(), "No CUDA GPUs are available");
  const uint64_t device = static_cast<uint64_t>(device_index);
  tell_torch("torch.cuda", "synchronize", device_index < 0 ? nullptr : &device);
}
}  // namespace cuda
}  // namespace kc
}  // namespace torch
