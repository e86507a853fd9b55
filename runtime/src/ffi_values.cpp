// SPDX-License-Identifier: Apache-2.0
#include "ffi_values.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "call.h"
#include "registry.h"
#include "text.h"

namespace kiln::detail {
namespace {

using ffi::Any;
using ffi::DlDevice;
using ffi::DlDtype;
using ffi::DlTensor;

struct DtypeRow {
  uint8_t code, bits;
  Dtype dtype;
};
constexpr DtypeRow kDtypes[] = {{ffi::kDlFloat, 32, Dtype::f32},
                                {ffi::kDlFloat, 16, Dtype::f16},
                                {ffi::kDlBfloat, 16, Dtype::bf16},
                                {ffi::kDlFloat, 64, Dtype::f64},
                                {ffi::kDlInt, 8, Dtype::i8},
                                {ffi::kDlInt, 16, Dtype::i16},
                                {ffi::kDlInt, 32, Dtype::i32},
                                {ffi::kDlInt, 64, Dtype::i64},
                                {ffi::kDlUint, 8, Dtype::u8},
                                {ffi::kDlUint, 16, Dtype::u16},
                                {ffi::kDlUint, 32, Dtype::u32},
                                {ffi::kDlUint, 64, Dtype::u64},
                                {ffi::kDlBool, 8, Dtype::bool8},
                                {ffi::kDlComplex, 32, Dtype::c32},
                                {ffi::kDlComplex, 64, Dtype::c64},
                                {ffi::kDlComplex, 128, Dtype::c128},
                                {ffi::kDlFloat8E5M2, 8, Dtype::f8e5m2},
                                {ffi::kDlFloat8E4M3Fn, 8, Dtype::f8e4m3}};

bool read_dtype(DlDtype from, int32_t& to) {
  for (const DtypeRow& row : kDtypes)
    if (row.code == from.code && row.bits == from.bits && from.lanes == 1) {
      to = static_cast<int32_t>(row.dtype);
      return true;
    }
  return false;
}

DlDtype write_dtype(int32_t dtype) {
  for (const DtypeRow& row : kDtypes)
    if (static_cast<int32_t>(row.dtype) == dtype) return {row.code, row.bits, 1};
  return {};
}

// Pinned host memory is host memory; managed memory is the GPU's too.
bool read_device(DlDevice from, int32_t& type, int32_t& index) {
  const bool host = from.type == ffi::kDlCpu || from.type == ffi::kDlCudaHost;
  if (!host && from.type != ffi::kDlCuda && from.type != ffi::kDlCudaManaged) return false;
  type = host ? KILN_DEVICE_CPU : KILN_DEVICE_CUDA;
  index = host ? 0 : from.index;
  return true;
}

const DlTensor* tensor_of(const Any& any) {
  if (any.type == ffi::kDlTensorPointer) return static_cast<const DlTensor*>(any.pointer);
  if (any.type == ffi::kTensor)
    return &reinterpret_cast<const ffi::TensorObject*>(any.object)->tensor;
  return nullptr;
}

const char* kind_name(int32_t type) {
  switch (type) {
    case ffi::kNone:
      return "None";
    case ffi::kInt:
      return "an int";
    case ffi::kBool:
      return "a bool";
    case ffi::kFloat:
      return "a float";
    case ffi::kDtype:
      return "a dtype";
    case ffi::kDevice:
      return "a device";
    case ffi::kDlTensorPointer:
    case ffi::kTensor:
      return "a tensor";
    case ffi::kRawString:
    case ffi::kSmallString:
    case ffi::kString:
      return "a string";
    case ffi::kShape:
    case ffi::kArray:
    case ffi::kList:
      return "a list";
  }
  return "an object of another kind";
}

const char* wanted_name(uint32_t type) {
  constexpr const char* kNames[] = {"None",           "a tensor",        "an int",
                                    "a float",        "a bool",          "a string",
                                    "a dtype",        "a device",        "a list of tensors",
                                    "a list of ints", "a list of floats"};
  return type < sizeof kNames / sizeof *kNames ? kNames[type] : "another type";
}

[[noreturn]] void refuse_tensor(const OpRecord* op, const char* name, const char* why,
                                const char* fix) {
  Text what, text;
  what.addf("cannot pass %s to %s", name, op->state->info.name);
  add_error(text, what.c_str(), why, fix);
  throw_text(static_cast<Text&&>(text));
}

}  // namespace

struct FfiValues::List {
  List* next;
};

FfiValues::FfiValues(const OpRecord* op, int most_tensors) : op_(op) {
  const size_t values = static_cast<size_t>(op->parameter_count + op->result_count) + 1;
  const size_t tensors = static_cast<size_t>(most_tensors) + 1;
  // One piece of memory for all: a call of three arrays takes a microsecond, malloc included.
  auto* room = static_cast<char*>(
      malloc(values * sizeof(KilnValue) + tensors * (sizeof(KilnTensor) + sizeof(Held))));
  if (!room) throw std::bad_alloc();
  values_ = reinterpret_cast<KilnValue*>(room);
  memset(values_, 0, values * sizeof(KilnValue));
  buffers_ = reinterpret_cast<KilnTensor*>(values_ + values);
  held_ = reinterpret_cast<Held*>(buffers_ + tensors);
}

FfiValues::~FfiValues() {
  free(values_);
  while (List* list = lists_) {
    lists_ = list->next;
    free(list);
  }
}

void* FfiValues::keep(size_t bytes) {
  auto* list = static_cast<List*>(malloc(sizeof(List) + bytes));
  if (!list) throw std::bad_alloc();
  list->next = lists_;
  lists_ = list;
  return list + 1;
}

const char* FfiValues::name_of(int parameter) const {
  return op_->state->info.parameters[parameter].name;
}

void FfiValues::refuse(int parameter, const Any& from) const {
  const KilnParameter& p = op_->state->info.parameters[parameter];
  Text what, why, text;
  what.addf("argument %s of %s has the wrong type", p.name, op_->state->info.name);
  why.addf("expected %s, got %s", wanted_name(p.type), kind_name(from.type));
  Text fix;
  fix.addf("the schema is %s", op_->state->info.schema);
  add_error(text, what.c_str(), why.c_str(), fix.c_str());
  throw_text(static_cast<Text&&>(text));
}

void FfiValues::read(const DlTensor& from, const char* name, bool written, Held& to) {
  KilnTensor& t = to.tensor;
  t = {};
  Text why;
  if (!read_dtype(from.dtype, t.dtype)) {
    why.addf("its DLPack dtype (code %d, %d bits, %d lanes) is none that kernels of kiln know",
             from.dtype.code, from.dtype.bits, from.dtype.lanes);
    refuse_tensor(op_, name, why.c_str(), "convert it to a dtype of torch, such as float32");
  }
  if (!read_device(from.device, t.device_type, t.device_index)) {
    why.addf("it is on a device of DLPack's kind %d", from.device.type);
    refuse_tensor(op_, name, why.c_str(), "pass memory of the CPU or of a CUDA device");
  }
  if (from.ndim < 0 || from.ndim > Sizes::kMost) {
    why.addf("it has %d dimensions", from.ndim);
    refuse_tensor(op_, name, why.c_str(), "pass at most 16 dimensions");
  }
  t.data = from.data ? static_cast<char*>(from.data) + from.byte_offset : nullptr;
  t.ndim = from.ndim;
  t.sizes = from.sizes;
  t.strides = from.strides ? from.strides : to.strides;
  int64_t dense = 1;
  for (int d = from.ndim - 1; d >= 0; d--) {
    if (!from.strides) to.strides[d] = dense;
    dense *= from.sizes[d] > 1 ? from.sizes[d] : 1;
    if (t.strides[d] >= 0 || from.sizes[d] <= 1) continue;
    refuse_tensor(op_, name, "it has a negative stride, which torch's tensors never have",
                  "pass a copy: np.ascontiguousarray(x)");
  }
  for (int d = 0; written && d < from.ndim; d++)
    if (from.sizes[d] > 1 && t.strides[d] == 0)
      refuse_tensor(op_, name, "the op writes to it, and several elements share one address",
                    "pass an array with memory for each element");
  if (has_device_) return;
  device_ = {static_cast<DeviceType>(t.device_type), t.device_index};
  has_device_ = true;
}

bool FfiValues::take_tensor(int parameter, const Any& from, KilnValue& to) {
  const DlTensor* tensor = tensor_of(from);
  if (!tensor) return false;
  Held& held = held_[held_count_++];
  const bool written = op_->state->info.parameters[parameter].flags & KILN_PARAMETER_MUTABLE;
  read(*tensor, name_of(parameter), written, held);
  to.as.tensor = &held.tensor;
  return true;
}

// As Python and torch have it: a bool is an int, an int is a float.
bool FfiValues::take_number(uint32_t type, const Any& from, KilnValue& to) const {
  const bool whole = from.type == ffi::kInt || from.type == ffi::kBool;
  if (type == KILN_TYPE_FLOAT) {
    to.as.f = whole ? static_cast<double>(from.i) : from.f;
    return whole || from.type == ffi::kFloat;
  }
  to.as.i = from.i;
  if (type == KILN_TYPE_BOOL) return from.type == ffi::kBool;
  return whole;
}

bool FfiValues::take_text(const Any& from, KilnValue& to) const {
  if (from.type == ffi::kRawString) {
    to.as.s = from.s;
    to.count = static_cast<uint32_t>(strlen(from.s));
  } else if (from.type == ffi::kSmallString) {
    to.as.s = from.bytes;
    to.count = from.small_size;
  } else if (from.type == ffi::kString) {
    const auto* run = reinterpret_cast<const ffi::Run*>(from.object);
    to.as.s = static_cast<const char*>(run->data);
    to.count = static_cast<uint32_t>(run->count);
  } else {
    return false;
  }
  return true;
}

bool FfiValues::take_numbers(const Any& from, KilnValue& to) {
  if (from.type == ffi::kShape && to.type == KILN_TYPE_INT_LIST) {
    const auto* run = reinterpret_cast<const ffi::Run*>(from.object);
    to.as.ints = static_cast<const int64_t*>(run->data);
    to.count = static_cast<uint32_t>(run->count);
    return true;
  }
  if (from.type != ffi::kArray && from.type != ffi::kList) return false;
  const auto* array = reinterpret_cast<const ffi::ArrayObject*>(from.object);
  to.count = static_cast<uint32_t>(array->count);
  const bool ints = to.type == KILN_TYPE_INT_LIST;
  KilnValue number = {};
  auto* room = static_cast<char*>(keep(8 * (to.count + 1u)));
  for (uint32_t k = 0; k < to.count; k++) {
    if (!take_number(ints ? KILN_TYPE_INT : KILN_TYPE_FLOAT, array->items[k], number)) return false;
    memcpy(room + 8 * k, &number.as, 8);
  }
  to.as.ints = reinterpret_cast<const int64_t*>(room);
  return true;
}

bool FfiValues::take_tensors(int parameter, const Any& from, KilnValue& to) {
  if (from.type != ffi::kArray && from.type != ffi::kList) return false;
  const auto* array = reinterpret_cast<const ffi::ArrayObject*>(from.object);
  to.count = static_cast<uint32_t>(array->count);
  auto* held = static_cast<Held*>(keep(sizeof(Held) * (to.count + 1u)));
  auto** tensors = static_cast<KilnTensor**>(keep(sizeof(KilnTensor*) * (to.count + 1u)));
  for (uint32_t k = 0; k < to.count; k++) {
    const DlTensor* tensor = tensor_of(array->items[k]);
    if (!tensor) return false;
    read(*tensor, name_of(parameter), false, held[k]);
    tensors[k] = &held[k].tensor;
  }
  to.as.tensors = tensors;
  return true;
}

void FfiValues::take_default(int parameter) {
  const KilnParameter& p = op_->state->info.parameters[parameter];
  if (p.flags & KILN_PARAMETER_HAS_DEFAULT) values_[parameter] = p.default_value;
}

void FfiValues::take(int parameter, const Any& from) {
  const KilnParameter& p = op_->state->info.parameters[parameter];
  KilnValue& to = values_[parameter];
  if (from.type == ffi::kLeftOut) return take_default(parameter);
  if (from.type == ffi::kNone && (p.flags & KILN_PARAMETER_OPTIONAL)) return;
  to.type = p.type;
  bool fits = false;
  int32_t dtype = 0;
  switch (p.type) {
    case KILN_TYPE_TENSOR:
      fits = take_tensor(parameter, from, to);
      break;
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
      fits = take_number(p.type, from, to);
      break;
    case KILN_TYPE_STR:
      fits = take_text(from, to);
      break;
    case KILN_TYPE_DTYPE:
      fits = from.type == ffi::kDtype && read_dtype(from.dtype, dtype);
      to.as.i = dtype;
      break;
    case KILN_TYPE_DEVICE:
      fits = from.type == ffi::kDevice &&
             read_device(from.device, to.as.device.type, to.as.device.index);
      break;
    case KILN_TYPE_INT_LIST:
    case KILN_TYPE_FLOAT_LIST:
      fits = take_numbers(from, to);
      break;
    case KILN_TYPE_TENSOR_LIST:
      fits = take_tensors(parameter, from, to);
      break;
  }
  if (!fits) refuse(parameter, from);
}

void FfiValues::take_buffer(int result, const Any& from) {
  Text name;
  name.addf("the memory for result %d", result);
  const DlTensor* tensor = tensor_of(from);
  if (!tensor) {
    Text why;
    why.addf("expected a tensor, got %s", kind_name(from.type));
    refuse_tensor(op_, name.c_str(), why.c_str(), "pass a tensor for each result, after the rest");
  }
  Held& held = held_[held_count_++];
  read(*tensor, name.c_str(), true, held);
  buffers_[result] = held.tensor;
  if (is_contiguous(held.tensor.sizes, held.tensor.strides, held.tensor.ndim)) return;
  refuse_tensor(op_, name.c_str(), "it is not contiguous", "pass contiguous memory");
}

namespace {

// A tensor that the caller owns: it keeps the library's tensor until the last reference goes.
struct GivenTensor {
  ffi::TensorObject tensor;
  KilnTensor* owner;
};

void destroy_tensor(void* self, int flags) {
  auto* given = static_cast<GivenTensor*>(self);
  if (flags & ffi::kDestroyContent) given->owner->release(given->owner);
  if (flags & ffi::kFreeMemory) free(given);
}

constexpr uint64_t kOneReference = (uint64_t{1} << 32) | 1;

Any give_tensor(KilnTensor* tensor) {
  auto* given = static_cast<GivenTensor*>(malloc(sizeof(GivenTensor)));
  if (!given) throw std::bad_alloc();
  const bool gpu = tensor->device_type == KILN_DEVICE_CUDA;
  given->owner = tensor;
  given->tensor = {{kOneReference, ffi::kTensor, 0, destroy_tensor},
                   {tensor->data,
                    {gpu ? ffi::kDlCuda : ffi::kDlCpu, tensor->device_index},
                    tensor->ndim,
                    write_dtype(tensor->dtype),
                    const_cast<int64_t*>(tensor->sizes),
                    const_cast<int64_t*>(tensor->strides),
                    0}};
  Any any = {};
  any.type = ffi::kTensor;
  any.object = &given->tensor.object;
  return any;
}

void drop(const Any& any) {
  if (any.type < ffi::kObjects) return;
  // Made here and given to nobody yet, or the last one's: both counts are one.
  any.object->destroy(any.object, ffi::kDestroyContent | ffi::kFreeMemory);
}

void release_reference(const Any& any) {
  if (any.type < ffi::kObjects) return;
  ffi::Object* object = any.object;
  const uint64_t before = __atomic_fetch_sub(&object->references, 1, __ATOMIC_ACQ_REL);
  if (before == kOneReference) {
    drop(any);
  } else if ((before & 0xffffffffu) == 1) {
    object->destroy(object, ffi::kDestroyContent);
    if (__atomic_sub_fetch(&object->references, uint64_t{1} << 32, __ATOMIC_ACQ_REL) == 0)
      object->destroy(object, ffi::kFreeMemory);
  }
}

void destroy_array(void* self, int flags) {
  auto* array = static_cast<ffi::ArrayObject*>(self);
  if (flags & ffi::kDestroyContent)
    for (int64_t i = 0; i < array->count; i++) release_reference(array->items[i]);
  if (flags & ffi::kFreeMemory) free(array);
}

ffi::ArrayObject* new_array(size_t count) {
  auto* array =
      static_cast<ffi::ArrayObject*>(malloc(sizeof(ffi::ArrayObject) + (count + 1) * sizeof(Any)));
  if (!array) throw std::bad_alloc();
  *array = {{kOneReference, ffi::kArray, 0, destroy_array},
            reinterpret_cast<Any*>(array + 1),
            0,
            static_cast<int64_t>(count),
            nullptr};
  return array;
}

Any array_of(ffi::ArrayObject* array) {
  Any any = {};
  any.type = ffi::kArray;
  any.object = &array->object;
  return any;
}

Any give(const KilnValue& value) {
  Any any = {};
  switch (value.type) {
    case KILN_TYPE_NONE:
      break;
    case KILN_TYPE_TENSOR:
      return give_tensor(value.as.tensor);
    case KILN_TYPE_FLOAT:
      any.type = ffi::kFloat;
      any.f = value.as.f;
      break;
    case KILN_TYPE_TENSOR_LIST: {
      ffi::ArrayObject* array = new_array(value.count);
      for (uint32_t k = 0; k < value.count; k++)
        array->items[array->count++] = give_tensor(value.as.tensors[k]);
      free(const_cast<KilnTensor**>(value.as.tensors));
      return array_of(array);
    }
    default:
      any.type = value.type == KILN_TYPE_BOOL ? ffi::kBool : ffi::kInt;
      any.i = value.as.i;
  }
  return any;
}

}  // namespace

void give_results(const OpRecord* op, KilnValue* results, Any* to) {
  int shown = 0, only = 0;
  for (int i = 0; i < op->result_count; i++) {
    if (results[i].type == KILN_TYPE_NONE) continue;
    shown++;
    only = i;
  }
  if (shown == 0) return;
  if (shown == 1 && op->result_count == 1) {
    *to = give(results[only]);
    return;
  }
  ffi::ArrayObject* array = new_array(static_cast<size_t>(shown));
  for (int i = 0; i < op->result_count; i++)
    if (results[i].type != KILN_TYPE_NONE) array->items[array->count++] = give(results[i]);
  *to = array_of(array);
}

}  // namespace kiln::detail
