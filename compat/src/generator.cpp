// SPDX-License-Identifier: Apache-2.0
// Where do kernels get random numbers from? torch's generators are asked through Python; on a
// machine without a GPU the CPU's generator gives the seed, and the offset is counted here.
#include <kiln/compat/generator.h>

#include "convert.h"

namespace at {
inline namespace kc {

using namespace kiln::compat;

struct GeneratorState {
  Ref object;           // torch.Generator
  bool counts = false;  // the object has no offset: a generator of the CPU
  uint64_t seed = 0, offset = 0;

  static std::shared_ptr<CUDAGeneratorImpl> wrap(Ref object, bool counts) {
    auto impl = std::make_shared<CUDAGeneratorImpl>();
    impl->state_ = new GeneratorState;  // as long as the process: its end may come after Python's
    impl->state_->object = static_cast<Ref&&>(object);
    impl->state_->counts = counts;
    return impl;
  }
};

namespace {

uint64_t ask(const GeneratorState& state, const char* method) {
  WithGil gil;
  Ref bound = checked(PyObject_GetAttrString(state.object.get(), method));
  Ref none = checked(PyTuple_New(0));
  Ref number = checked(PyObject_CallObject(bound.get(), none.get()));
  const uint64_t value = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) throw_python_error();
  return value;
}

void tell(const GeneratorState& state, const char* method, uint64_t value) {
  WithGil gil;
  Ref bound = checked(PyObject_GetAttrString(state.object.get(), method));
  Ref arguments = checked(PyTuple_New(1));
  PyTuple_SetItem(arguments.get(), 0, checked(PyLong_FromUnsignedLongLong(value)).take());
  checked(PyObject_CallObject(bound.get(), arguments.get()));
}

// A state of captured graphs lives in device memory that only torch's own code maintains.
void refuse_capture() {
  WithGil gil;
  Ref none = checked(PyTuple_New(0));
  Ref answer = checked(PyObject_CallObject(
      torch_attribute("torch.cuda", "is_current_stream_capturing").get(), none.get()));
  if (PyObject_IsTrue(answer.get()) == 1)
    throw NotImplementedError(
        "kiln's compat headers: random numbers in a captured CUDA graph need torch's own headers "
        "(--compat=never)");
}

}  // namespace

// A new seed of the CPU's generator starts its numbers anew, as torch.manual_seed does for CUDA.
uint64_t CUDAGeneratorImpl::current_seed() const {
  const uint64_t seed = ask(*state_, "initial_seed");
  if (state_->counts && seed != state_->seed) {
    state_->seed = seed;
    state_->offset = 0;
  }
  return seed;
}
void CUDAGeneratorImpl::set_current_seed(uint64_t seed) {
  tell(*state_, "manual_seed", seed);
  state_->offset = 0;
}
uint64_t CUDAGeneratorImpl::seed() { return ask(*state_, "seed"); }
uint64_t CUDAGeneratorImpl::philox_offset_per_thread() const {
  return state_->counts ? state_->offset : ask(*state_, "get_offset");
}
void CUDAGeneratorImpl::set_philox_offset_per_thread(uint64_t offset) {
  if (offset % 4) throw Error("offset must be a multiple of 4");
  state_->offset = offset;
  if (!state_->counts) tell(*state_, "set_offset", offset);
}
Device CUDAGeneratorImpl::device() const {
  WithGil gil;
  Ref device = checked(PyObject_GetAttrString(state_->object.get(), "device"));
  return state_->counts ? Device(kCUDA, 0) : Device(text_of(device.get()));
}

std::pair<uint64_t, uint64_t> CUDAGeneratorImpl::philox_engine_inputs(uint64_t increment) {
  if (!state_->counts) refuse_capture();  // a GPU is in use
  const uint64_t seed = current_seed(), offset = philox_offset_per_thread();
  set_philox_offset_per_thread(offset + (increment + 3) / 4 * 4);
  return {seed, offset};
}

PhiloxCudaState CUDAGeneratorImpl::philox_cuda_state(uint64_t increment) {
  const std::pair<uint64_t, uint64_t> inputs = philox_engine_inputs(increment);
  return {inputs.first, inputs.second};
}

namespace kiln_detail {
Generator generator_of(void* python_object) {
  WithGil gil;
  Ref object = Ref::to(static_cast<PyObject*>(python_object));
  Ref device = checked(PyObject_GetAttrString(object.get(), "device"));
  const bool counts = Device(text_of(device.get())).is_cpu();
  return Generator(GeneratorState::wrap(static_cast<Ref&&>(object), counts));
}
}  // namespace kiln_detail
}  // namespace kc

namespace cuda {
inline namespace kc {
namespace detail {

using namespace kiln::compat;

const Generator& getDefaultCUDAGenerator(DeviceIndex device) {
  static Generator known[64];  // under the GIL
  WithGil gil;
  const Ref& all = torch_attribute("torch.cuda", "default_generators");
  const Py_ssize_t count = PySequence_Size(all.get());
  if (count > 0 && device < 0) device = c10::cuda::current_device();
  const size_t at = count > 0 ? static_cast<size_t>(device) : 0;
  if (at >= 64 || (count > 0 && device >= count)) at::cuda::no_such_device(device);
  if (!known[at].defined()) {
    Ref object = count > 0 ? checked(PySequence_GetItem(all.get(), device))
                           : Ref::to(torch_attribute("torch", "default_generator").get());
    known[at] = Generator(GeneratorState::wrap(static_cast<Ref&&>(object), count <= 0));
  }
  return known[at];
}

Generator createCUDAGenerator(DeviceIndex device) {
  WithGil gil;
  const bool counts =
      PySequence_Size(torch_attribute("torch.cuda", "default_generators").get()) <= 0;
  Ref arguments = checked(PyTuple_New(1));
  const Device where =
      counts ? Device(kCPU) : Device(kCUDA, device < 0 ? c10::cuda::current_device() : device);
  PyTuple_SetItem(arguments.get(), 0, device_object(where).take());
  Ref made =
      checked(PyObject_CallObject(torch_attribute("torch", "Generator").get(), arguments.get()));
  return Generator(GeneratorState::wrap(static_cast<Ref&&>(made), counts));
}

}  // namespace detail
}  // namespace kc
}  // namespace cuda
}  // namespace at
