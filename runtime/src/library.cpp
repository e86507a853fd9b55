// SPDX-License-Identifier: Apache-2.0
// What does a library show to callers without torch? kiln/abi.h, filled in here. Nothing is thrown
// across it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <new>

#include "call.h"
#include "dynamic.h"
#include "front.h"
#include "kiln/abi.h"
#include "memory.h"
#include "registry.h"
#include "torch.h"

namespace kiln::detail {
namespace {

thread_local char* t_error = nullptr;

void set_error(const char* text) {
  free(t_error);
  t_error = strdup(text);
}

const char* last_error() { return t_error ? t_error : ""; }

template <class F>
int guarded(F&& f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    if (!current_call()) drop_configurations();
    set_error(e.what());
  } catch (...) {
    if (!current_call()) drop_configurations();
    set_error("error: an exception that is not a std::exception");
  }
  return 1;
}

Tensor borrow(const KilnTensor* from, const char* name, bool writable) {
  Rep* rep = new_rep(Rep::Memory::borrowed, from->ndim);
  Tensor tensor = Tensor::adopt(rep);
  for (int d = 0; d < from->ndim; d++) {
    const_cast<int64_t*>(rep->sizes)[d] = from->sizes[d];
    const_cast<int64_t*>(rep->strides)[d] = from->strides[d];
  }
  rep->data = from->data;
  rep->dtype = static_cast<Dtype>(from->dtype);
  rep->device = {static_cast<DeviceType>(from->device_type), from->device_index};
  rep->name = name;
  rep->writable = writable;
  set_metadata(rep);
  return tensor;
}

// A result that the caller owns: the C struct with the Tensor behind it.
struct Given {
  KilnTensor c;
  Tensor tensor;
};

void release_given(KilnTensor* c) { delete reinterpret_cast<Given*>(c); }

KilnTensor* give(Tensor tensor) {
  if (!tensor.defined()) {
    Text text;
    text.add(current_op_name()).add(": a result is an undefined tensor");
    throw_text(static_cast<Text&&>(text));
  }
  auto* given = new Given;
  given->tensor = static_cast<Tensor&&>(tensor);
  const TensorRep* rep = given->tensor.rep();
  given->c = {rep->data,
              rep->sizes,
              rep->strides,
              rep->ndim,
              static_cast<int32_t>(rep->dtype),
              static_cast<int32_t>(rep->device.type),
              rep->device.index,
              release_given,
              nullptr};
  return &given->c;
}

class HostCall {
 public:
  explicit HostCall(OpRecord* op) : op_(op), call_(op, false) {
    arguments_ = new Slot[static_cast<size_t>(op->parameter_count) + 1];
    results_ = new Slot[static_cast<size_t>(op->result_count) + 1];
    lists_ = static_cast<Tensor**>(
        calloc(static_cast<size_t>(op->parameter_count) + 1, sizeof(Tensor*)));
  }
  ~HostCall() {
    for (int i = 0; i < op_->result_count; i++) delete results_[i].tensors;
    for (int i = 0; i < op_->parameter_count; i++) delete[] lists_[i];
    free(lists_);
    delete[] arguments_;
    delete[] results_;
  }

  void run(const KilnValue* values, uint32_t count, KilnValue* results) {
    if (count != static_cast<uint32_t>(op_->parameter_count)) {
      Text text;
      text.addf("error: %s takes %d arguments and got %u", op_->state->info.name,
                op_->parameter_count, count);
      throw_text(static_cast<Text&&>(text));
    }
    for (int i = 0; i < op_->parameter_count; i++) take(i, values[i]);
    call_.place(arguments_);
    op_->invoke(arguments_, results_);
    call_.finish();
    for (int i = 0; i < op_->result_count; i++) put(i, results[i]);
  }

 private:
  // Values come from another compiler's struct, perhaps from another version of kiln: the type is
  // checked before the bytes are believed.
  void take(int i, const KilnValue& value) {
    Slot& slot = arguments_[i];
    const KilnParameter& p = op_->state->info.parameters[i];
    if (value.type == KILN_TYPE_NONE && (p.flags & KILN_PARAMETER_OPTIONAL)) {
      slot.present = false;
      slot.list = {nullptr, 0};
      return;
    }
    if (value.type != p.type) {
      Text text;
      text.addf("error: argument %s of %s has the wrong type\n  why: expected KilnType %u, got %u",
                p.name, op_->state->info.name, p.type, value.type);
      throw_text(static_cast<Text&&>(text));
    }
    switch (value.type) {
      case KILN_TYPE_TENSOR:
        slot.tensor = borrow(value.as.tensor, p.name, p.flags & KILN_PARAMETER_MUTABLE);
        break;
      case KILN_TYPE_FLOAT:
        slot.f = value.as.f;
        break;
      case KILN_TYPE_DEVICE:
        slot.device = {static_cast<DeviceType>(value.as.device.type), value.as.device.index};
        break;
      case KILN_TYPE_STR:
        slot.list = {value.as.s, value.count};
        break;
      case KILN_TYPE_INT_LIST:
        slot.list = {value.as.ints, value.count};
        break;
      case KILN_TYPE_FLOAT_LIST:
        slot.list = {value.as.floats, value.count};
        break;
      case KILN_TYPE_TENSOR_LIST:
        lists_[i] = new Tensor[value.count + 1];
        for (uint32_t k = 0; k < value.count; k++)
          lists_[i][k] = borrow(value.as.tensors[k], p.name, false);
        slot.list = {lists_[i], value.count};
        break;
      default:
        slot.i = value.as.i;
        break;
    }
  }

  void put(int i, KilnValue& value) {
    Slot& slot = results_[i];
    value.type = op_->result_kinds[i] & kBaseMask;
    value.count = 0;
    switch (value.type) {
      case KILN_TYPE_TENSOR:
        value.as.tensor = give(static_cast<Tensor&&>(slot.tensor));
        break;
      case KILN_TYPE_FLOAT:
        value.as.f = slot.f;
        break;
      case KILN_TYPE_TENSOR_LIST: {
        value.count = static_cast<uint32_t>(slot.tensors->size());
        auto** tensors = static_cast<KilnTensor**>(malloc((value.count + 1) * sizeof(KilnTensor*)));
        for (uint32_t k = 0; k < value.count; k++)
          tensors[k] = give(static_cast<Tensor&&>((*slot.tensors)[k]));
        value.as.tensors = tensors;
        break;
      }
      default:
        value.as.i = slot.i;
        break;
    }
  }

  OpRecord* op_;
  Call call_;
  Slot* arguments_;
  Slot* results_;
  Tensor** lists_;
};

int call(uint32_t op, const KilnValue* arguments, uint32_t count, KilnValue* results) {
  return guarded([&] {
    const Registry& all = registry();
    KILN_CHECK(op < all.count, "no op has the number ", op);
    HostCall(all.records[op]).run(arguments, count, results);
  });
}

int default_device(int32_t* type, int32_t* index) {
  *type = default_backend() == Backend::real ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU;
  *index = 0;
  return 0;
}

Device device_of(int32_t type, int32_t index) { return {static_cast<DeviceType>(type), index}; }

int allocate(int32_t type, int32_t index, size_t bytes, void** data) {
  return guarded([&] { *data = memory_allocate(device_of(type, index), bytes); });
}
int deallocate(int32_t type, int32_t index, void* data) {
  return guarded([&] { memory_free(device_of(type, index), data); });
}
int copy(void* to, int32_t to_type, const void* from, int32_t from_type, size_t bytes) {
  return guarded([&] {
    memory_copy(to, static_cast<DeviceType>(to_type), from, static_cast<DeviceType>(from_type),
                bytes);
  });
}
int synchronize(int32_t type, int32_t index) {
  return guarded([&] { memory_synchronize(device_of(type, index)); });
}

int use_stream_of_caller(void* stream) {
  use_stream(static_cast<cudaStream_t>(stream));
  return 0;
}

char* g_torch_status = nullptr;

int register_torch() {
  Text why;
  const bool good = torch_register(why);
  free(g_torch_status);
  g_torch_status = good ? nullptr : why.take();
  if (!good) set_error(g_torch_status);
  return good ? 0 : 1;
}

const char* torch_status() {
  if (torch_is_registered()) return "";
  return g_torch_status
             ? g_torch_status
             : "not registered: torch was not in the process when this library was loaded";
}

const KilnLibrary* describe_library() {
  static const KilnLibrary library = [] {
    const Registry& all = registry();
    KilnLibrary made = {};
    made.abi_version = KILN_ABI_VERSION;
    made.struct_bytes = sizeof(KilnLibrary);
    made.kiln_version = KILN_VERSION_STRING;
    made.name = all.library;
    made.op_count = all.count;
    made.ops = all.infos;
    made.call = call;
    made.last_error = last_error;
    made.default_device = default_device;
    made.allocate = allocate;
    made.deallocate = deallocate;
    made.copy = copy;
    made.synchronize = synchronize;
    made.register_torch = register_torch;
    made.torch_status = torch_status;
    made.use_stream = use_stream_of_caller;
    return made;
  }();
  return &library;
}

// The archive stands last on the link line: all ops have registered themselves when this runs.
__attribute__((constructor)) void on_load() {
  if (!registry().count && !registry().fault.size()) return;  // a program
  if (!open_mapped("libtorch_cpu.so")) return;
  // A constructor has nobody to tell but the terminal; kiln.load reads torch_status().
  if (register_torch()) fprintf(stderr, "%s\n", torch_status());
}

}  // namespace
}  // namespace kiln::detail

extern "C" __attribute__((visibility("default"))) const KilnLibrary* kiln_library(void) {
  const KilnLibrary* library = kiln::detail::describe_library();
  // No ops, and here is why: the caller has nothing else to ask.
  if (const auto& fault = kiln::detail::registry().fault; fault.size())
    kiln::detail::set_error(fault.c_str());
  return library;
}

// For a newer build of the same library in the same process.
extern "C" __attribute__((visibility("default"))) int kiln_unregister_torch(void) {
  kiln::detail::torch_unregister();
  return 0;
}
