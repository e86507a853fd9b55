// SPDX-License-Identifier: Apache-2.0
// How is an op called with values of the C ABI? They become slots, the op runs, and its results
// become values again, or lie in the memory that the caller gave for them.
#include "host_call.h"

#include <stdlib.h>

#include "call.h"
#include "registry.h"
#include "result_buffers.h"

namespace kiln::detail {
namespace {

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

  void run(const KilnValue* values, uint32_t count, KilnValue* results, ResultBuffers* buffers) {
    if (count != static_cast<uint32_t>(op_->parameter_count)) {
      Text text;
      text.addf("error: %s takes %d arguments and got %u", op_->state->info.name,
                op_->parameter_count, count);
      throw_text(static_cast<Text&&>(text));
    }
    for (int i = 0; i < op_->parameter_count; i++) take(i, values[i]);
    call_.place(arguments_);
    if (buffers) buffers->prepare(call_);
    op_->invoke(arguments_, results_);
    call_.finish();
    if (buffers) buffers->fill(op_, results_);
    for (int i = 0; i < op_->result_count; i++) put(i, results[i], buffers != nullptr);
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

  void put(int i, KilnValue& value, bool in_buffers) {
    Slot& slot = results_[i];
    value.type = op_->result_kinds[i] & kBaseMask;
    value.count = 0;
    if (in_buffers && value.type == KILN_TYPE_TENSOR) {
      value.type = KILN_TYPE_NONE;  // the caller has it
      return;
    }
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

}  // namespace

void call_op(OpRecord* op, const KilnValue* values, uint32_t count, KilnValue* results) {
  HostCall(op).run(values, count, results, nullptr);
}

void call_op_into(OpRecord* op, const KilnValue* values, uint32_t count, KilnValue* results,
                  const KilnTensor* buffers, int buffer_count) {
  HostCall call(op);
  ResultBuffers given(buffers, buffer_count);
  call.run(values, count, results, &given);
}

}  // namespace kiln::detail
