// SPDX-License-Identifier: Apache-2.0
// How does an op become torch.ops.<library>.<op>? libtorch exports a C shim (torch/csrc/inductor/aoti_torch/c/shim.h
// and torch/csrc/stable/c/shim.h). Nothing in it was removed from 2.5 to 2.15; what came later than our floor, 2.7, is
// optional here.
#include "torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "dynamic.h"
#include "kiln/abi.h"
#include "registry.h"

extern "C" __attribute__((visibility("default"))) const KilnLibrary* kiln_library(void);

namespace kiln::detail {
namespace {

constexpr uint64_t kShim210 =
    (2ull << 56) | (10ull << 48);  // the conventions that this file follows, as torch encodes versions

using Boxed = void (*)(uint64_t*, uint64_t, uint64_t);

// X(member, symbol, type): every function of the shim that is used. REQUIRED ones are in torch 2.7.
#define SHIM_REQUIRED(X)                                                                                         \
  X(data_ptr, "aoti_torch_get_data_ptr", int (*)(void*, void**))                                                 \
  X(dim, "aoti_torch_get_dim", int (*)(void*, int64_t*))                                                         \
  X(sizes, "aoti_torch_get_sizes", int (*)(void*, int64_t**))                                                    \
  X(strides, "aoti_torch_get_strides", int (*)(void*, int64_t**))                                                \
  X(dtype, "aoti_torch_get_dtype", int (*)(void*, int32_t*))                                                     \
  X(device_type, "aoti_torch_get_device_type", int (*)(void*, int32_t*))                                         \
  X(device_index, "aoti_torch_get_device_index", int (*)(void*, int32_t*))                                       \
  X(delete_tensor, "aoti_torch_delete_tensor_object", int (*)(void*))                                            \
  X(new_handle, "aoti_torch_new_tensor_handle", int (*)(void*, void**))                                          \
  X(empty_strided, "aoti_torch_empty_strided",                                                                   \
    int (*)(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, void**))                         \
  X(init_fragment, "aoti_torch_library_init_fragment", int (*)(const char*, const char*, uint32_t, void**))      \
  X(init_impl, "aoti_torch_library_init_impl", int (*)(const char*, const char*, const char*, uint32_t, void**)) \
  X(define, "aoti_torch_library_def", int (*)(void*, const char*))                                               \
  X(implement, "aoti_torch_library_impl", int (*)(void*, const char*, Boxed))                                    \
  X(delete_library, "aoti_torch_delete_library_object", int (*)(void*))
#define SHIM_SINCE_2_10(X)                                                              \
  X(implement_2_10, "torch_library_impl", int (*)(void*, const char*, Boxed, uint64_t)) \
  X(new_list, "torch_new_list_reserve_size", int (*)(size_t, void**))                   \
  X(list_size, "torch_list_size", int (*)(void*, size_t*))                              \
  X(list_get, "torch_list_get_item", int (*)(void*, size_t, uint64_t*))                 \
  X(list_push, "torch_list_push_back", int (*)(void*, uint64_t))                        \
  X(delete_list, "torch_delete_list", int (*)(void*))                                   \
  X(string_length, "torch_string_length", int (*)(void*, size_t*))                      \
  X(string_text, "torch_string_c_str", int (*)(void*, const char**))                    \
  X(delete_string, "torch_delete_string", int (*)(void*))

struct Shim {
#define X(member, symbol, ...) decltype(static_cast<__VA_ARGS__>(nullptr)) member = nullptr;
  SHIM_REQUIRED(X)
  SHIM_SINCE_2_10(X)
#undef X
  int (*current_cuda_stream)(int32_t, void**) = nullptr;  // of libtorch_cuda.so
};

struct Bridge {
  Shim shim;
  bool registered = false;
  void* definitions = nullptr;
  void* implementations[3] = {};
};
Bridge& bridge() {
  static Bridge the;  // constant from the start, so no guard; never destroyed
  return the;
}

bool load_shim(Shim& shim, Text& why) {
  void* cpu = open_mapped("libtorch_cpu.so");
  if (!cpu) {
    add_error(why, "torch is not in this process", "libtorch_cpu.so is not loaded", "import torch first");
    return false;
  }
  const char* missing = nullptr;
#define X(member, symbol, ...)                                                     \
  shim.member = reinterpret_cast<decltype(shim.member)>(find_symbol(cpu, symbol)); \
  if (!shim.member && !missing) missing = symbol;
  SHIM_REQUIRED(X)
#undef X
#define X(member, symbol, ...) shim.member = reinterpret_cast<decltype(shim.member)>(find_symbol(cpu, symbol));
  SHIM_SINCE_2_10(X)
#undef X
  if (!missing) return true;
  Text reason;
  reason.addf("libtorch_cpu.so has no %s; kiln needs torch 2.7 or newer", missing);
  add_error(why, "this torch is too old", reason.c_str(), "pip install 'torch>=2.7'");
  return false;
}

[[noreturn]] void shim_failed(const char* what) {
  Text text;
  if (current_op_name()) text.add(current_op_name()).add(": ");
  text.addf("torch refused to %s", what);
  throw_text(static_cast<Text&&>(text));
}

// Each question to torch costs some nanoseconds, and a call asks them of every tensor: no more than needed, numel is
// computed.
Rep* adopt(void* handle) {
  const Shim& t = bridge().shim;
  int64_t ndim = 0;
  if (t.dim(handle, &ndim)) shim_failed("tell a tensor's dimensions");
  Rep* rep = new_rep(Rep::Memory::of_torch, static_cast<int>(ndim));
  rep->handle = handle;
  int32_t dtype = 0, type = 0, index = 0;
  int failed = t.data_ptr(handle, &rep->data) | t.sizes(handle, const_cast<int64_t**>(&rep->sizes)) |
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

// The arguments of one call, out of torch's stack. They are ours from here: each handle is deleted with its tensor.
class Arguments {
 public:
  Arguments(const OpRecord* op, Slot* slots) : op_(op), slots_(slots) {}
  ~Arguments() {
    for (int i = 0; i < made_; i++) {
      const uint8_t kind = op_->parameter_kinds[i] & kBaseMask;
      if (kind == kTensorList) {
        auto* tensors = static_cast<const Tensor*>(slots_[i].list.data);
        for (size_t k = 0; k < slots_[i].list.count; k++) tensors[k].~Tensor();
      }
      if (kind >= kTensorList) free(const_cast<void*>(slots_[i].list.data));
      if (kind == kStr && strings_[i]) bridge().shim.delete_string(strings_[i]);
      slots_[i].~Slot();
    }
    free(strings_);
  }

  void take(const uint64_t* stack) {
    for (int i = 0; i < op_->parameter_count; i++) {
      new (&slots_[i]) Slot;
      made_++;
      uint64_t raw = stack[i];
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

 private:
  void name(const Tensor& tensor, int i) {
    Rep* rep = static_cast<Rep*>(tensor.rep());
    rep->name = parameter_name(op_, i);
    rep->writable = op_->parameter_kinds[i] & kMutable;
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
        // Before 2.10 a c10::Device as it lies in memory, {int8 type, int8 index}, and garbage above it.
        const bool packed = bridge().shim.implement_2_10 != nullptr;
        const int32_t index = packed ? static_cast<int32_t>(raw) : static_cast<int8_t>(raw >> 8);
        slot.device = {static_cast<DeviceType>(packed ? raw >> 32 : raw & 0xff), index < 0 ? 0 : index};
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
    if (!strings_) strings_ = static_cast<void**>(calloc(static_cast<size_t>(op_->parameter_count), sizeof(void*)));
    strings_[i] = handle;
    const char* text = nullptr;
    size_t size = 0;
    if (t.string_text(handle, &text) | t.string_length(handle, &size)) shim_failed("give a string");
    slots_[i].list = {text, size};
  }

  void take_list(int i, uint8_t kind, void* handle) {
    const Shim& t = bridge().shim;
    size_t size = 0;
    if (t.list_size(handle, &size)) shim_failed("tell the length of a list");
    auto* values = static_cast<uint64_t*>(calloc(size + 1, 8));  // int64_t, double or Tensor: 8 bytes each
    static_assert(sizeof(Tensor) == 8);
    slots_[i].list = {values, 0};
    for (size_t k = 0; k < size; k++) {
      uint64_t item = 0;
      if (t.list_get(handle, k, &item)) shim_failed("give an item of a list");
      if (kind == kTensorList) {
        auto* tensor = new (&values[k]) Tensor(Tensor::adopt(adopt(reinterpret_cast<void*>(item))));
        name(*tensor, i);
      } else {
        values[k] = item;
      }
      slots_[i].list.count++;
    }
    t.delete_list(handle);
  }

  const OpRecord* op_;
  Slot* slots_;
  int made_ = 0;
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
        if (t.list_push(list, give_tensor((*slot.tensors)[k], op, index))) shim_failed("fill a list");
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
  alignas(Slot) char argument_memory[sizeof(Slot) * static_cast<size_t>(op->parameter_count + 1)];
  alignas(Slot) char result_memory[sizeof(Slot) * static_cast<size_t>(op->result_count + 1)];
  Arguments arguments(op, reinterpret_cast<Slot*>(argument_memory));
  arguments.take(stack);
  call.place(reinterpret_cast<Slot*>(argument_memory));
  Results results(reinterpret_cast<Slot*>(result_memory), op->result_count);
  op->invoke(reinterpret_cast<Slot*>(argument_memory), results.slots);
  call.finish();
  for (int i = 0; i < op->result_count; i++) stack[i] = give(results.slots[i], op->result_kinds[i] & kBaseMask, op, i);
}

TensorRep* torch_empty(Span<const int64_t> sizes, Span<const int64_t> strides, Dtype dtype, Device device) {
  void* handle = nullptr;
  if (bridge().shim.empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                                  static_cast<int32_t>(dtype), static_cast<int32_t>(device.type),
                                  device.type == DeviceType::cpu ? -1 : device.index, &handle)) {
    Text text;
    if (current_op_name()) text.add(current_op_name()).add(": ");
    text.addf("torch could not allocate %s", dtype_name(dtype)).add_sizes(sizes.data(), sizes.size()).add(" on ");
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
    shim_failed("tell a tensor's address");
  }
  return rep;
}

void torch_require() {
  static const bool ready = [] {
    Text why;
    if (!bridge().shim.data_ptr && !load_shim(bridge().shim, why)) throw_text(static_cast<Text&&>(why));
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
  static const auto size =
      reinterpret_cast<StorageFact>(find_symbol(torch_library_of_shim(), "aoti_torch_get_storage_size"));
  static const auto offset =
      reinterpret_cast<StorageFact>(find_symbol(torch_library_of_shim(), "aoti_torch_get_storage_offset"));
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

void torch_describe_again(Rep* rep) {
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
  if (!t.current_cuda_stream) {
    void* cuda = open_mapped("libtorch_cuda.so");
    if (cuda)
      t.current_cuda_stream =
          reinterpret_cast<decltype(t.current_cuda_stream)>(find_symbol(cuda, "aoti_torch_get_current_cuda_stream"));
    if (!t.current_cuda_stream) shim_failed("tell the current CUDA stream (is this a CUDA build of torch?)");
  }
  void* stream = nullptr;
  if (t.current_cuda_stream(device_index, &stream)) shim_failed("tell the current CUDA stream");
  return stream;
}

namespace {

// An earlier build of this library in the same process: its definitions stay, its kernels go.
struct Earlier {
  const Registry* mine;
  const char** defined;  // schemas that need no definition any more
  Text* why;
  bool fits;
};

bool same_name(const KilnOpInfo& a, const KilnOpInfo& b) {
  return !strcmp(a.name, b.name) && !strcmp(a.overload, b.overload);
}

constexpr int kMostSiblings = 256;

bool is_earlier(const Sibling& other, const Registry& mine) {
  return other.abi_version == KILN_ABI_VERSION && other.library != &kiln_library &&
         !strcmp(other.library()->name, mine.library) &&
         strncmp(other.library()->torch_status(), "error:", 6);  // one that was refused has defined nothing
}

void compare_with(const KilnLibrary* other, Earlier& earlier) {
  for (uint32_t i = 0; i < earlier.mine->count; i++)
    for (uint32_t k = 0; k < other->op_count; k++) {
      const KilnOpInfo &mine = earlier.mine->infos[i], &theirs = other->ops[k];
      if (!same_name(mine, theirs)) continue;
      if (strcmp(mine.schema, theirs.schema)) {
        Text what;
        what.addf("%s::%s has another schema than before in this process", earlier.mine->library, mine.name);
        Text reason;
        reason.addf("it was %s and is %s; torch keeps the first as long as the process lives", theirs.schema,
                    mine.schema);
        add_error(*earlier.why, what.c_str(), reason.c_str(),
                  "give the op or the library a new name, or start a new process");
        earlier.fits = false;
        return;
      }
      earlier.defined[i] = mine.schema;
    }
}

int implement(const Shim& t, void* library, const char* name, Boxed boxed) {
  return t.implement_2_10 ? t.implement_2_10(library, name, boxed, kShim210) : t.implement(library, name, boxed);
}

bool refused(Text& why, const char* what, const char* name) {
  Text text;
  text.addf("torch refused to %s %s::%s", what, registry().library, name);
  add_error(why, text.c_str(), "its reason stands above; another library may own that name",
            "give the library another name: kiln build --name, or name= in kiln.toml");
  return false;
}

bool register_all(Bridge& b, const char* const* defined, Text& why) {
  const Registry& all = registry();
  const Shim& t = b.shim;
  static const char* const kKeys[3] = {"CPU", "CUDA", "CompositeExplicitAutograd"};
  if (!b.definitions && t.init_fragment(all.library, "kiln", 0, &b.definitions))
    return refused(why, "open the namespace", "");
  for (uint32_t i = 0; i < all.count; i++)
    if (!defined[i] && t.define(b.definitions, all.infos[i].schema)) return refused(why, "define", all.infos[i].name);
  for (uint32_t i = 0; i < all.count; i++) {
    const OpState* state = all.records[i]->state;
    Text name;
    name.add(state->info.name);
    if (*state->info.overload) name.add(".").add(state->info.overload);
    // An op without a tensor among its arguments dispatches on no device.
    const int from = state->has_tensor ? 0 : 2, to = state->has_tensor ? 2 : 3;
    for (int key = from; key < to; key++) {
      void*& library = b.implementations[key];
      if (!library && t.init_impl(all.library, kKeys[key], "kiln", 0, &library))
        return refused(why, "open", kKeys[key]);
      if (implement(t, library, name.c_str(), all.records[i]->boxed)) return refused(why, "implement", name.c_str());
    }
  }
  return true;
}

}  // namespace

bool torch_is_registered() { return bridge().registered; }

bool torch_register(Text& why) {
  Bridge& b = bridge();
  if (b.registered) return true;
  const Registry& all = registry();
  if (all.fault.size()) {
    why.add(all.fault.c_str());
    return false;
  }
  if (!load_shim(b.shim, why)) return false;
  if (all.count == 0) return b.registered = true;
  auto* defined = static_cast<const char**>(calloc(all.count, sizeof(char*)));
  Earlier earlier{&all, defined, &why, true};
  Sibling siblings[kMostSiblings];
  const int count = find_siblings(siblings, kMostSiblings);
  for (int i = 0; i < count; i++)
    if (earlier.fits && is_earlier(siblings[i], all)) compare_with(siblings[i].library(), earlier);
  bool good = earlier.fits;
  if (good && b.definitions)  // taken back by a later build and asked for again: our own definitions stand
    for (uint32_t i = 0; i < all.count; i++) defined[i] = all.infos[i].schema;
  if (good) {
    for (int i = 0; i < count; i++)
      if (is_earlier(siblings[i], all)) siblings[i].unregister_torch();
    good = register_all(b, defined, why);
  }
  free(defined);
  return b.registered = good;
}

void torch_unregister() {
  Bridge& b = bridge();
  if (!b.registered) return;
  for (void*& library : b.implementations) {
    if (library) b.shim.delete_library(library);
    library = nullptr;
  }
  b.registered = false;
}

}  // namespace kiln::detail
