// SPDX-License-Identifier: Apache-2.0
#include "result_buffers.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "memory.h"
#include "registry.h"
#include "text.h"

namespace kiln::detail {
namespace {

uint64_t g_copied = 0;

// The bytes from the first to the last element. Strides are not negative here.
struct Extent {
  const char* begin;
  const char* end;
};
Extent extent_of(const void* data, const int64_t* sizes, const int64_t* strides, int ndim,
                 int64_t element) {
  int64_t last = 0;
  for (int d = 0; d < ndim; d++) {
    if (sizes[d] == 0) return {nullptr, nullptr};
    last += (sizes[d] - 1) * strides[d];
  }
  const char* begin = static_cast<const char*>(data);
  return {begin, begin + (last + 1) * element};
}
bool overlap(Extent a, Extent b) { return a.begin < b.end && b.begin < a.end; }

Extent extent_of(const KilnTensor& t) {
  return extent_of(t.data, t.sizes, t.strides, t.ndim, element_bytes(static_cast<Dtype>(t.dtype)));
}
Extent extent_of(const TensorRep* t) {
  return extent_of(t->data, t->sizes, t->strides, t->ndim, element_bytes(t->dtype));
}

// Host memory with strides into host memory without: rows of the last dimension one by one.
void copy_strided(char* to, const char* from, const int64_t* sizes, const int64_t* strides,
                  int ndim, int64_t element) {
  if (ndim == 0) {
    memcpy(to, from, static_cast<size_t>(element));
    return;
  }
  int64_t below = element;
  for (int d = 1; d < ndim; d++) below *= sizes[d];
  for (int64_t i = 0; i < sizes[0]; i++)
    copy_strided(to + i * below, from + i * strides[0] * element, sizes + 1, strides + 1, ndim - 1,
                 element);
}

void add_tensor(Text& text, Dtype dtype, const int64_t* sizes, int ndim) {
  text.add(dtype_name(dtype)).add_sizes(sizes, static_cast<size_t>(ndim));
}

}  // namespace

uint64_t copied_results() { return __atomic_load_n(&g_copied, __ATOMIC_RELAXED); }

ResultBuffers::ResultBuffers(const KilnTensor* buffers, int count)
    : buffers_(buffers), count_(count) {
  // Not new[]: its check of the length raises the floor of libstdc++.
  states_ = static_cast<State*>(calloc(static_cast<size_t>(count) + 1, sizeof(State)));
  if (!states_) throw std::bad_alloc();
}

ResultBuffers::~ResultBuffers() { free(states_); }

void ResultBuffers::prepare(Call& call) {
  for (int i = 0; i < count_; i++) {
    const Extent mine = extent_of(buffers_[i]);
    for (const Rep* rep = call.first; rep; rep = rep->next)
      states_[i].shared |= overlap(mine, extent_of(rep));
    for (int k = 0; k < i; k++)
      if (overlap(mine, extent_of(buffers_[k]))) {
        Text text;
        add_error(text, "two results were given the same memory",
                  "each result of an op needs memory of its own", "pass a separate array for each");
        throw_text(static_cast<Text&&>(text));
      }
    const Device device = {static_cast<DeviceType>(buffers_[i].device_type),
                           buffers_[i].device_index};
    if (device == call.device) continue;
    Text why, text;
    why.add("the arguments are on ");
    add_device(why, call.device);
    why.add(", the memory for the result is on ");
    add_device(why, device);
    add_error(text, "a result was given memory on another device", why.c_str(),
              "pass memory on the device of the arguments");
    throw_text(static_cast<Text&&>(text));
  }
  call.buffers = this;
}

void* ResultBuffers::take(Span<const int64_t> sizes, Span<const int64_t> strides, Dtype dtype,
                          Device device) {
  for (int i = 0; i < count_; i++) {
    const KilnTensor& b = buffers_[i];
    if (states_[i].handed_out || states_[i].shared || !b.data) continue;
    const Device of_buffer = {static_cast<DeviceType>(b.device_type), b.device_index};
    bool fits = static_cast<Dtype>(b.dtype) == dtype && of_buffer == device &&
                static_cast<size_t>(b.ndim) == sizes.size();
    for (size_t d = 0; fits && d < sizes.size(); d++)
      fits = b.sizes[d] == sizes[d] && (sizes[d] <= 1 || b.strides[d] == strides[d]);
    if (!fits) continue;
    states_[i].handed_out = true;
    return b.data;
  }
  return nullptr;
}

void ResultBuffers::check(const OpRecord* op, int at, const Tensor& result) const {
  const KilnTensor& b = buffers_[at];
  bool same = result.dtype() == static_cast<Dtype>(b.dtype) && result.ndim() == b.ndim;
  for (int d = 0; same && d < b.ndim; d++) same = result.size(d) == b.sizes[d];
  if (same) return;
  Text what, why, fix, text;
  what.addf("result %d of %s does not fit the memory given for it", at, op->state->info.name);
  why.add("the result is ");
  add_tensor(why, result.dtype(), result.sizes().data(), result.ndim());
  why.add(", the memory is ");
  add_tensor(why, static_cast<Dtype>(b.dtype), b.sizes, b.ndim);
  fix.addf("the rule of the op gives its sizes and dtype: .fake(\"%s\")", op->fake);
  add_error(text, what.c_str(), why.c_str(), fix.c_str());
  throw_text(static_cast<Text&&>(text));
}

void ResultBuffers::copy(const OpRecord* op, int at, const Tensor& result, void* to) {
  if (result.numel() == 0) return;
  if (result.is_contiguous()) {
    memory_copy_in_order(to, result.raw(), result.device(), static_cast<size_t>(result.nbytes()));
    return;
  }
  if (!result.is_cuda()) {
    copy_strided(static_cast<char*>(to), static_cast<const char*>(result.raw()),
                 result.sizes().data(), result.strides().data(), result.ndim(),
                 element_bytes(result.dtype()));
    return;
  }
  Text what, text;
  what.addf("cannot copy result %d of %s into the memory given for it", at, op->state->info.name);
  add_error(text, what.c_str(), "the result is on a GPU and not contiguous",
            "return a contiguous tensor from the op");
  throw_text(static_cast<Text&&>(text));
}

// A result in the memory of another result has to move before that memory is written: two results
// of equal sizes may have been allocated in either order.
void ResultBuffers::fill(const OpRecord* op, Slot* results) {
  current_call()->buffers = nullptr;
  int at = 0;
  for (int i = 0; i < op->result_count; i++) {
    if ((op->result_kinds[i] & kBaseMask) != kTensor) continue;
    Tensor& result = results[i].tensor;
    KILN_CHECK(result.defined(), "a result is an undefined tensor");
    check(op, at, result);
    for (int k = 0; k < count_; k++) {
      if (k == at || !overlap(extent_of(buffers_[k]), extent_of(result.rep()))) continue;
      Tensor moved = empty(result.sizes(), result.dtype(), result.device());
      copy(op, at, result, moved.raw());
      result = moved;
      break;
    }
    at++;
  }
  at = 0;
  for (int i = 0; i < op->result_count; i++) {
    if ((op->result_kinds[i] & kBaseMask) != kTensor) continue;
    const Tensor& result = results[i].tensor;
    const KilnTensor& buffer = buffers_[at];
    if (result.raw() != buffer.data || !result.is_contiguous()) {
      copy(op, at, result, buffer.data);
      __atomic_add_fetch(&g_copied, 1, __ATOMIC_RELAXED);
    }
    at++;
  }
}

}  // namespace kiln::detail
