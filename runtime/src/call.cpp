// SPDX-License-Identifier: Apache-2.0
// What happens around the author's function? The device is chosen and made current, launches are
// watched, and the first fault is raised when the function has returned.
#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "memory.h"
#include "registry.h"
#include "torch.h"

namespace kiln::detail {
namespace {

thread_local Call* t_call = nullptr;

bool wants_sync() {
  static const bool wanted = [] {
    const char* text = getenv("KILN_SYNC");
    return text && *text && strcmp(text, "0") != 0;
  }();
  return wanted;
}

template <class... A>
int cuda(const char* name, A... arguments) {
  return reinterpret_cast<int (*)(A...)>(real_function(name))(arguments...);
}

// The functions used on each call, found once.
struct DeviceFunctions {
  int (*get)(int*);
  int (*set)(int);
  int count;  // of GPUs: with one there is nothing to switch
};
const DeviceFunctions& device_functions() {
  static const DeviceFunctions found = [] {
    DeviceFunctions made = {reinterpret_cast<int (*)(int*)>(real_function("cudaGetDevice")),
                            reinterpret_cast<int (*)(int)>(real_function("cudaSetDevice")), 2};
    cuda("cudaGetDeviceCount", &made.count);
    return made;
  }();
  return found;
}

[[noreturn]] void two_devices(const OpRecord* op, int first, Device a, int second, Device b) {
  Text text;
  text.add("error: ")
      .add(current_op_name())
      .add(" was called with tensors on two devices\n  why: ");
  text.add(parameter_name(op, first)).add(" is on ");
  add_device(text, a);
  text.add(", ").add(parameter_name(op, second)).add(" is on ");
  add_device(text, b);
  text.add("\n  fix: move one of them with .to()");
  throw_text(static_cast<Text&&>(text));
}

[[noreturn]] void cpu_tensor_beside_gpu(const OpRecord* op, int index, bool from_torch) {
  Text text;
  text.add("error: ")
      .add(current_op_name())
      .add(" was called with a CPU tensor on a machine with a GPU\n  why: ");
  text.add(parameter_name(op, index));
  text.add(" is on cpu; its kernels run on the GPU here\n  fix: ");
  if (from_torch)
    text.add(parameter_name(op, index)).add(".cuda()");
  else
    text.add("pass arrays that are on the GPU (CuPy, JAX, torch)");
  text.add(", or set KILN_DEVICE=engine to run them on the CPU");
  throw_text(static_cast<Text&&>(text));
}

}  // namespace

Call* current_call() { return t_call; }

const char* current_op_name() {
  if (!t_call) return nullptr;
  return t_call->op->state ? t_call->op->state->info.name : t_call->op->function;
}

const char* tensor_name(const TensorRep* rep) { return static_cast<const Rep*>(rep)->name; }

Call::Call(const OpRecord* op_, bool from_torch_)
    : op(op_),
      backend(Backend::engine),
      from_torch(from_torch_),
      outer(t_call),
      first(nullptr),
      failed(false) {
  t_call = this;
}

Call::~Call() {
  for (Rep* rep = first; rep;) {  // a tensor that the author kept outlives the call
    Rep* next = rep->next;
    rep->call = nullptr;
    rep->previous = rep->next = nullptr;
    rep = next;
  }
  if (previous_device_ >= 0) device_functions().set(previous_device_);
  t_call = outer;
}

// Where does the op run? Where its first tensor lies. All others must be there too: a kernel given
// a pointer of another device reads junk or faults, and neither names the argument.
void Call::place(const Slot* slots) {
  arguments = slots;
  int found = -1;
  bool has_device_argument = false;
  for (int i = 0; i < op->parameter_count; i++) {
    const uint8_t kind = op->parameter_kinds[i] & kBaseMask;
    const Tensor* tensors = nullptr;
    size_t count = 0;
    if (kind == kTensor && arguments[i].tensor.defined()) {
      tensors = &arguments[i].tensor;
      count = 1;
    } else if (kind == kTensorList) {
      tensors = static_cast<const Tensor*>(arguments[i].list.data);
      count = arguments[i].list.count;
    } else if (kind == kDevice && found < 0 && arguments[i].present) {
      device = arguments[i].device;
      has_device_argument = true;
    }
    for (size_t k = 0; k < count; k++) {
      const Device at = tensors[k].device();
      if (found < 0) {
        device = at;
        found = i;
      } else if (at != device) {
        two_devices(op, found, device, i, at);
      }
    }
  }
  if (found < 0 && !has_device_argument)
    device = {default_backend() == Backend::real ? DeviceType::cuda : DeviceType::cpu, 0};
  if (device.type == DeviceType::cpu) {
    backend = Backend::engine;
    // kiln.counters wishes for the engine during its calls alone.
    if (found >= 0 && wished_device() != Wish::engine && machine_has_gpu() &&
        wished_device_now() != Wish::engine)
      cpu_tensor_beside_gpu(op, found, from_torch);
    return;
  }
  if (device.type != DeviceType::cuda) {
    Text text;
    text.add("error: ").add(current_op_name()).add(" was called with a tensor on ");
    add_device(text, device);
    text.add("\n  why: kernels run on CUDA devices, and on the CPU through the engine");
    throw_text(static_cast<Text&&>(text));
  }
  place_on(device, Backend::real);
}

void Call::place_on(Device where, Backend how) {
  device = where;
  backend = how;
  if (how != Backend::real || device.type != DeviceType::cuda) return;
  int current = -1;
  if (device_functions().count > 1 && device_functions().get(&current) == 0 &&
      current != device.index) {
    const int code = device_functions().set(device.index);
    if (code) {
      Text text;
      text.addf("error: cannot make cuda:%d the current device\n  why: ", device.index);
      add_cuda_error(text, code);
      throw_text(static_cast<Text&&>(text));
    }
    previous_device_ = current;
  }
}

void Call::finish() {
  if (!failed && backend == Backend::real && wants_sync()) {
    void* stream = from_torch ? torch_current_stream(device.index) : used_stream();
    const int code = cuda("cudaStreamSynchronize", stream);
    if (code) {
      Text text;
      text.add("error: ").add(current_op_name()).add(" failed on the GPU\n  why: ");
      add_cuda_error(text, code);
      text.add(
          "\n  fix: run it under compute-sanitizer, or on the engine (KILN_DEVICE=engine), which "
          "names the line");
      throw_text(static_cast<Text&&>(text));
    }
  }
  if (!failed) return;
  if (backend == Backend::real)
    cuda("cudaGetLastError");  // else the next call of anybody reports this one's error
  Text text;
  text.add(fault);
  throw_text(static_cast<Text&&>(text));
}

}  // namespace kiln::detail
