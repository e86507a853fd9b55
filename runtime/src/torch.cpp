// SPDX-License-Identifier: Apache-2.0
// How does a call of torch reach an op, and come back? Arguments come out of the boxed stack of
// libtorch's C shim, results go back into it; tensors that the op makes are torch's.
#include "torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <new>

#include "autograd.h"
#include "dynamic.h"
#include "front.h"
#include "kiln/abi.h"
#include "math_bits.h"
#include "registry.h"
#include "torch_shim.h"

namespace kiln::detail {
namespace {

[[noreturn]] void shim_failed(const char* what) {
  Text text;
  if (current_op_name()) text.add(current_op_name()).add(": ");
  text.addf("torch refused to %s", what);
  throw_text(static_cast<Text&&>(text));
}

// Each question to torch costs some nanoseconds, and a call asks them of every tensor: no more than
// needed, numel is computed.
Rep* adopt(void* handle) {
  const Shim& t = bridge().shim;
  int64_t ndim = 0;
  if (t.dim(handle, &ndim)) {
    t.delete_tensor(handle);
    shim_failed("report a tensor's dimensions");
  }
  Rep* rep = new_rep(Rep::Memory::of_torch, static_cast<int>(ndim));
  rep->handle = handle;
  int32_t dtype = 0, type = 0, index = 0;
  int failed = t.data_ptr(handle, &rep->data) |
               t.sizes(handle, const_cast<int64_t**>(&rep->sizes)) |
               t.strides(handle, const_cast<int64_t**>(&rep->strides)) | t.dtype(handle, &dtype) |
               t.device_type(handle, &type);
  if (type != static_cast<int32_t>(DeviceType::cpu)) failed |= t.device_index(handle, &index);
  rep->dtype = static_cast<Dtype>(dtype);
  rep->device = {static_cast<DeviceType>(type), index};
  if (failed) {
    release(rep);
    shim_failed("describe a tensor (is it a dense one?)");
  }
  set_metadata(rep);
  return rep;
}

// Slots of the arguments or of the results. Most ops have few: theirs are on the stack.
class SlotRoom {
 public:
  explicit SlotRoom(int count)
      : slots_(count <= kFew
                   ? reinterpret_cast<Slot*>(few_)
                   : static_cast<Slot*>(malloc(sizeof(Slot) * static_cast<size_t>(count)))) {
    if (!slots_) throw std::bad_alloc();
  }
  ~SlotRoom() {
    if (slots_ != reinterpret_cast<Slot*>(few_)) free(slots_);
  }
  SlotRoom(const SlotRoom&) = delete;
  Slot* slots() { return slots_; }

 private:
  static constexpr int kFew = 12;
  alignas(Slot) char few_[sizeof(Slot) * kFew];
  Slot* slots_;
};

// A list as torch hands it over, with the items that nobody has taken out of it.
class List {
 public:
  List(void* handle, uint8_t kind) : handle_(handle), kind_(kind) {
    if (bridge().shim.list_size(handle_, &size_)) {
      bridge().shim.delete_list(handle_);
      shim_failed("report the length of a list");
    }
  }
  ~List() {
    uint64_t item = 0;
    if (kind_ == kTensorList)
      while (next_ < size_ && !bridge().shim.list_get(handle_, next_++, &item))
        bridge().shim.delete_tensor(reinterpret_cast<void*>(item));
    bridge().shim.delete_list(handle_);
  }
  List(const List&) = delete;
  size_t size() const { return size_; }
  uint64_t take() {
    uint64_t item = 0;
    if (bridge().shim.list_get(handle_, next_++, &item)) shim_failed("return an item of a list");
    return item;
  }

 private:
  void* handle_;
  uint8_t kind_;
  size_t size_ = 0;
  size_t next_ = 0;
};

// The arguments of one call, out of torch's stack. They are ours from here: each handle is deleted
// with its tensor, and those that were not reached because an earlier one threw are deleted too.
class Arguments {
 public:
  Arguments(const OpRecord* op, const uint64_t* stack, Slot* slots)
      : op_(op), stack_(stack), slots_(slots) {}
  ~Arguments() {
    for (int i = 0; i < made_; i++) {
      const uint8_t kind = op_->parameter_kinds[i] & kBaseMask;
      if (kind == kTensorList) {
        auto* tensors = static_cast<const Tensor*>(slots_[i].list.data);
        for (size_t k = 0; k < slots_[i].list.count; k++) tensors[k].~Tensor();
      }
      if (kind >= kTensorList) free(const_cast<void*>(slots_[i].list.data));
      if (kind == kStr && strings_) bridge().shim.delete_string(strings_[i]);
      slots_[i].~Slot();
    }
    for (int i = made_; i < op_->parameter_count; i++) drop(op_->parameter_kinds[i], stack_[i]);
    free(strings_);
  }
  Arguments(const Arguments&) = delete;

  void take() {
    for (int i = 0; i < op_->parameter_count; i++) {
      new (&slots_[i]) Slot;
      made_++;
      uint64_t raw = stack_[i];
      const uint8_t kind = op_->parameter_kinds[i];
      if (kind & kOptional) {
        auto* box = reinterpret_cast<uint64_t*>(raw);
        slots_[i].present = box != nullptr;
        if (!box) {
          slots_[i].list = {nullptr, 0};
          continue;
        }
        raw = *box;
        operator delete(box);  // torch made it with new
      }
      take_one(i, kind & kBaseMask, raw);
      if (slots_[i].tensor.defined()) name(slots_[i].tensor, i);
    }
  }

  bool require_gradient() const { return require_gradient_; }  // some tensor does
  bool have_tangent() const { return have_tangent_; }

 private:
  void name(const Tensor& tensor, int i) {
    Rep* rep = static_cast<Rep*>(tensor.rep());
    rep->name = parameter_name(op_, i);
    rep->writable = op_->parameter_kinds[i] & kMutable;
    RequiresGradient* const ask = bridge().shim.requires_gradient;
    if (ask && ask(tensor_of_torch(rep->handle))) require_gradient_ = true;
    ForwardGradient* const tangent = bridge().shim.forward_gradient;
    if (tangent &&
        *tangent(tensor_of_torch(rep->handle), 0, rep->handle) != bridge().shim.undefined_tensor)
      have_tangent_ = true;
  }

  static void drop(uint8_t kind, uint64_t raw) {
    if (kind & kOptional) {
      auto* box = reinterpret_cast<uint64_t*>(raw);
      if (!box) return;
      raw = *box;
      operator delete(box);
    }
    void* handle = reinterpret_cast<void*>(raw);
    kind &= kBaseMask;
    if (kind == kTensor) bridge().shim.delete_tensor(handle);
    if (kind == kStr) bridge().shim.delete_string(handle);
    if (kind >= kTensorList) List(handle, kind);
  }

  void take_one(int i, uint8_t kind, uint64_t raw) {
    Slot& slot = slots_[i];
    switch (kind) {
      case kTensor:
        slot.tensor = Tensor::adopt(adopt(reinterpret_cast<void*>(raw)));
        break;
      case kInt:
        slot.i = static_cast<int64_t>(raw);
        break;
      case kBool:
        slot.i = static_cast<uint8_t>(raw) != 0;
        break;
      case kDtype:
        slot.i = static_cast<int32_t>(raw);
        break;
      case kFloat:
        memcpy(&slot.f, &raw, sizeof raw);
        break;
      case kDevice: {
        // Before 2.10 a c10::Device as it is in memory, {int8 type, int8 index}, and garbage
        // above it.
        const bool packed = bridge().shim.implement_2_10 != nullptr;
        const int32_t index = packed ? static_cast<int32_t>(raw) : static_cast<int8_t>(raw >> 8);
        slot.device = {static_cast<DeviceType>(packed ? raw >> 32 : raw & 0xff),
                       index < 0 ? 0 : index};
        break;
      }
      case kStr:
        take_string(i, reinterpret_cast<void*>(raw));
        break;
      default:
        take_list(i, kind, reinterpret_cast<void*>(raw));
        break;
    }
  }

  void take_string(int i, void* handle) {
    const Shim& t = bridge().shim;
    if (!strings_)
      strings_ =
          static_cast<void**>(calloc(static_cast<size_t>(op_->parameter_count), sizeof(void*)));
    if (!strings_) {
      t.delete_string(handle);
      throw std::bad_alloc();
    }
    strings_[i] = handle;
    const char* text = nullptr;
    size_t size = 0;
    if (t.string_text(handle, &text) | t.string_length(handle, &size))
      shim_failed("return a string");
    slots_[i].list = {text, size};
  }

  void take_list(int i, uint8_t kind, void* handle) {
    List list(handle, kind);
    auto* values = static_cast<uint64_t*>(
        calloc(list.size() + 1, 8));  // int64_t, double or Tensor: 8 bytes each
    if (!values) throw std::bad_alloc();
    static_assert(sizeof(Tensor) == 8);
    slots_[i].list = {values, 0};
    for (size_t k = 0; k < list.size(); k++) {
      const uint64_t item = list.take();
      if (kind == kTensorList) {
        auto* tensor = new (&values[k]) Tensor(Tensor::adopt(adopt(reinterpret_cast<void*>(item))));
        name(*tensor, i);
      } else {
        values[k] = item;
      }
      slots_[i].list.count++;
    }
  }

  const OpRecord* op_;
  const uint64_t* stack_;
  Slot* slots_;
  int made_ = 0;
  bool require_gradient_ = false;
  bool have_tangent_ = false;
  void** strings_ = nullptr;
};

uint64_t give_tensor(Tensor& tensor, const OpRecord* op, int index) {
  if (!tensor.defined()) {
    Text text;
    text.addf("%s: result %d is an undefined tensor", op->state->info.name, index);
    throw_text(static_cast<Text&&>(text));
  }
  Rep* rep = static_cast<Rep*>(tensor.rep());
  void* handle = rep->handle;
  if (__atomic_load_n(&rep->references, __ATOMIC_RELAXED) == 1)
    rep->handle = nullptr;  // passes to torch
  else if (bridge().shim.new_handle(rep->handle, &handle))
    shim_failed("share a tensor");
  return reinterpret_cast<uint64_t>(handle);
}

uint64_t give(Slot& slot, uint8_t kind, const OpRecord* op, int index) {
  const Shim& t = bridge().shim;
  uint64_t raw = 0;
  switch (kind) {
    case kTensor:
      return give_tensor(slot.tensor, op, index);
    case kInt:
      return static_cast<uint64_t>(slot.i);
    case kBool:
      return slot.i != 0;
    case kFloat:
      memcpy(&raw, &slot.f, sizeof raw);
      return raw;
    case kTensorList: {
      void* list = nullptr;
      if (t.new_list(slot.tensors->size(), &list)) shim_failed("make a list");
      for (size_t k = 0; k < slot.tensors->size(); k++)
        if (t.list_push(list, give_tensor((*slot.tensors)[k], op, index)))
          shim_failed("fill a list");
      return reinterpret_cast<uint64_t>(list);
    }
  }
  return raw;
}

struct Results {
  Slot* slots;
  int count;
  Results(Slot* s, int n) : slots(s), count(n) {
    for (int i = 0; i < n; i++) new (&slots[i]) Slot;
  }
  ~Results() {
    for (int i = 0; i < count; i++) {
      delete slots[i].tensors;
      slots[i].~Slot();
    }
  }
};

}  // namespace

void call_from_torch(OpRecord* op, uint64_t* stack) {
  // In this order, so that tensors are let go of while the call still stands.
  Call call(op, true);
  try {
    SlotRoom argument_room(op->parameter_count), result_room(op->result_count);
    Arguments arguments(op, stack, argument_room.slots());
    arguments.take();
    const bool recorded = arguments.require_gradient() && torch_records_gradients();
    if (recorded) refuse_to_write(op);
    if (arguments.have_tangent()) refuse_tangents(op);
    call.place(argument_room.slots());
    Results results(result_room.slots(), op->result_count);
    op->invoke(argument_room.slots(), results.slots);
    call.finish();
    if (recorded) refuse_gradients(op, argument_room.slots(), results.slots);
    for (int i = 0; i < op->result_count; i++)
      stack[i] = give(results.slots[i], op->result_kinds[i] & kBaseMask, op, i);
  } catch (const std::exception& e) {
    if (!call.outer) drop_configurations();
    keep_failure(e.what());
    throw;
  } catch (...) {
    if (!call.outer) drop_configurations();
    throw;
  }
}

TensorRep* torch_empty(Span<const int64_t> sizes, Span<const int64_t> strides, Dtype dtype,
                       Device device) {
  void* handle = nullptr;
  if (bridge().shim.empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                                  static_cast<int32_t>(dtype), static_cast<int32_t>(device.type),
                                  device.type == DeviceType::cpu ? -1 : device.index, &handle)) {
    Text text;
    if (current_op_name()) text.add(current_op_name()).add(": ");
    text.addf("torch could not allocate %s", dtype_name(dtype))
        .add_sizes(sizes.data(), sizes.size())
        .add(" on ");
    add_device(text, device);
    throw_text(static_cast<Text&&>(text));
  }
  // What was asked for is known; only the address is torch's to tell.
  Rep* rep = new_rep(Rep::Memory::of_torch_made_here, static_cast<int>(sizes.size()));
  rep->handle = handle;
  rep->dtype = dtype;
  rep->device = device;
  set_dims(rep, sizes, strides);
  set_metadata(rep);
  if (bridge().shim.data_ptr(handle, &rep->data)) {
    release(rep);
    shim_failed("report a tensor's address");
  }
  return rep;
}

void torch_require() {
  static const bool ready = [] {
    Text why;
    if (!bridge().shim.data_ptr && !load_shim(bridge().shim, why))
      throw_text(static_cast<Text&&>(why));
    return true;
  }();
  (void)ready;
}

void* torch_library_of_shim() {
  torch_require();
  return open_mapped("libtorch_cpu.so");
}

namespace {
using StorageFact = int (*)(void*, int64_t*);
// A view's kernel may reach what lies around it: torch does not forbid it.
void set_region(Rep* rep) {
  static const auto size = reinterpret_cast<StorageFact>(
      find_symbol(torch_library_of_shim(), "aoti_torch_get_storage_size"));
  static const auto offset = reinterpret_cast<StorageFact>(
      find_symbol(torch_library_of_shim(), "aoti_torch_get_storage_offset"));
  int64_t bytes = 0, elements = 0;
  if (!size || !offset || size(rep->handle, &bytes) || offset(rep->handle, &elements)) return;
  rep->region = static_cast<char*>(rep->data) - elements * element_bytes(rep->dtype);
  rep->region_bytes = static_cast<uint64_t>(bytes);
}
}  // namespace

Rep* torch_adopt(void* handle) {
  Rep* rep = adopt(handle);
  if (rep->device.type == DeviceType::cpu && rep->data) set_region(rep);
  return rep;
}

Rep* torch_adopt_fake(void* handle, const int64_t* sizes, const int64_t* strides, int ndim) {
  const Shim& t = bridge().shim;
  Rep* rep = new_rep(Rep::Memory::of_torch_made_here, ndim);
  rep->handle = handle;
  for (int d = 0; d < ndim; d++) {
    const_cast<int64_t*>(rep->sizes)[d] = sizes[d];
    const_cast<int64_t*>(rep->strides)[d] = strides[d];
  }
  int32_t dtype = 0, type = 0, index = 0;
  int failed = t.dtype(handle, &dtype) | t.device_type(handle, &type);
  if (type != static_cast<int32_t>(DeviceType::cpu)) failed |= t.device_index(handle, &index);
  rep->dtype = static_cast<Dtype>(dtype);
  rep->device = {static_cast<DeviceType>(type), index};
  if (failed) {
    release(rep);
    shim_failed("describe a fake tensor");
  }
  set_metadata(rep);
  return rep;
}

void torch_describe_again(Rep* rep) {
  if (!rep->data && rep->memory == Rep::Memory::of_torch_made_here) return;
  Rep* fresh = torch_adopt(rep->handle);
  rep->data = fresh->data;
  rep->sizes = fresh->sizes;
  rep->strides = fresh->strides;
  rep->numel = fresh->numel;
  rep->ndim = fresh->ndim;
  rep->dtype = fresh->dtype;
  rep->contiguous = fresh->contiguous;
  rep->memory = fresh->memory;
  rep->region = fresh->region;
  rep->region_bytes = fresh->region_bytes;
  fresh->handle = nullptr;
  release(fresh);
}

void torch_delete(void* handle) { bridge().shim.delete_tensor(handle); }

void* torch_current_stream(int32_t device_index) {
  Shim& t = bridge().shim;
  auto ask = __atomic_load_n(&t.current_cuda_stream, __ATOMIC_RELAXED);
  if (!ask) {
    void* cuda = open_mapped("libtorch_cuda.so");
    if (cuda)
      ask =
          reinterpret_cast<decltype(ask)>(find_symbol(cuda, "aoti_torch_get_current_cuda_stream"));
    if (!ask) shim_failed("report the current CUDA stream (is this a CUDA build of torch?)");
    __atomic_store_n(&t.current_cuda_stream, ask, __ATOMIC_RELAXED);
  }
  void* stream = nullptr;
  if (ask(device_index, &stream)) shim_failed("report the current CUDA stream");
  return stream;
}

}  // namespace kiln::detail
