// SPDX-License-Identifier: Apache-2.0
// Where do an op's tensors live? In torch when torch called, else in memory of the caller or of the
// device.
#include "kiln/tensor.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "call.h"
#include "memory.h"
#include "result_buffers.h"
#include "torch.h"

namespace kiln::detail {

namespace {

// A call makes a few of these and lets them go again; malloc and free would be a third of what the
// runtime adds to a call. So a thread keeps some. The sizes and strides of memory that is ours
// are behind the struct; torch's are torch's.
constexpr int kKeptDims = 6;
constexpr size_t kKeptBytes = sizeof(Rep) + sizeof(int64_t) * 2 * kKeptDims;

struct Kept {
  Rep* first = nullptr;  // linked by next
  int count = 0;
  bool closed = false;  // the thread is ending
  ~Kept() {
    closed = true;
    while (Rep* rep = first) {
      first = rep->next;
      free(rep);
    }
  }
};
thread_local Kept t_kept;
constexpr int kMostKept = 8;

Rep* take_room(int dims) {
  Kept& kept = t_kept;
  if (dims <= kKeptDims && kept.first) {
    Rep* rep = kept.first;
    kept.first = rep->next;
    kept.count--;
    return new (rep) Rep{};
  }
  const size_t bytes = dims <= kKeptDims
                           ? kKeptBytes
                           : sizeof(Rep) + 2 * static_cast<size_t>(dims) * sizeof(int64_t);
  void* room = malloc(bytes);
  if (!room) throw std::bad_alloc();
  return new (room) Rep{};
}

void give_room_back(Rep* rep) {
  Kept& kept = t_kept;
  if (rep->ndim > kKeptDims || kept.count == kMostKept || kept.closed) {
    free(rep);
    return;
  }
  rep->next = kept.first;
  kept.first = rep;
  kept.count++;
}

}  // namespace

void join_call(Rep* rep) {
  Call* call = current_call();
  if (!call || rep->call) return;
  rep->call = call;
  rep->next = call->first;
  if (call->first) call->first->previous = rep;
  call->first = rep;
}

Rep* new_rep(Rep::Memory memory, int ndim) {
  Rep* rep = take_room(ndim);
  rep->memory = memory;
  rep->ndim = ndim;
  rep->references = 1;
  rep->name = "";
  rep->writable = true;
  if (memory != Rep::Memory::of_torch) {
    rep->sizes = reinterpret_cast<int64_t*>(rep + 1);
    rep->strides = rep->sizes + ndim;
  }
  join_call(rep);
  return rep;
}

void retain(TensorRep* rep) { __atomic_add_fetch(&rep->references, 1, __ATOMIC_RELAXED); }

void release(TensorRep* base) {
  if (__atomic_sub_fetch(&base->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  Rep* rep = static_cast<Rep*>(base);
  if (rep->call) {
    if (rep->previous)
      rep->previous->next = rep->next;
    else
      rep->call->first = rep->next;
    if (rep->next) rep->next->previous = rep->previous;
  }
  if (rep->handle) torch_delete(rep->handle);
  if (rep->memory == Rep::Memory::own && rep->allocation)
    memory_free_result(rep->device, rep->allocation, rep->allocation_stream);
  give_room_back(rep);
}

bool is_contiguous(const int64_t* sizes, const int64_t* strides, int ndim) {
  int64_t expected = 1;
  bool fits = true;
  for (int d = ndim - 1; d >= 0; d--) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) {
      fits &= strides[d] == expected;
      expected *= sizes[d];
    }
  }
  return fits;
}

void set_dims(Rep* rep, Span<const int64_t> sizes, Span<const int64_t> strides) {
  for (size_t d = 0; d < sizes.size(); d++) {
    const_cast<int64_t*>(rep->sizes)[d] = sizes[d];
    const_cast<int64_t*>(rep->strides)[d] = strides[d];
  }
}

void set_metadata(Rep* rep) {
  rep->numel = 1;
  for (int d = 0; d < rep->ndim; d++)
    rep->numel *= rep->sizes[d];  // NOLINT(clang-analyzer-core.uninitialized.Assign): set_dims did
  rep->contiguous = is_contiguous(rep->sizes, rep->strides, rep->ndim);
}

namespace {

void check_sizes(const Sizes& sizes, Dtype dtype) {
  int64_t bytes = element_bytes(dtype);
  KILN_CHECK(bytes > 0, "empty: not a dtype: ", static_cast<int>(dtype));
  for (int d = 0; d < sizes.size(); d++) {
    KILN_CHECK(sizes[d] >= 0, "empty: a negative size in ", sizes);
    KILN_CHECK(!__builtin_mul_overflow(bytes, sizes[d], &bytes), "empty: more than 2^63 bytes in ",
               sizes);
  }
}

using Dims = Span<const int64_t>;

Tensor allocate(Dims sizes, Dims strides, Dtype dtype, Device device) {
  const Call* call = current_call();
  if (call && call->from_torch) return Tensor::adopt(torch_empty(sizes, strides, dtype, device));
  void* given =
      call && call->buffers ? call->buffers->take(sizes, strides, dtype, device) : nullptr;
  Rep* rep =
      new_rep(given ? Rep::Memory::borrowed : Rep::Memory::own, static_cast<int>(sizes.size()));
  Tensor tensor = Tensor::adopt(rep);
  set_dims(rep, sizes, strides);
  rep->dtype = dtype;
  rep->device = device;
  set_metadata(rep);
  if (given) {
    rep->data = given;
    return tensor;
  }
  int64_t span = rep->numel ? 1 : 0;  // elements from the first to the last
  for (size_t d = 0; d < sizes.size() && span; d++) span += (sizes[d] - 1) * strides[d];
  if (span) {
    rep->allocation_stream = used_stream();
    rep->data = rep->allocation =
        memory_allocate_result(device, static_cast<size_t>(span * element_bytes(dtype)));
  }
  return tensor;
}

Sizes dense_strides(const Sizes& sizes) {
  Sizes strides = sizes;
  int64_t next = 1;
  for (int d = sizes.size() - 1; d >= 0; d--) {
    strides[d] = next;
    next *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}

// torch's rule for empty_like on a tensor that is not contiguous: without holes or overlap it keeps
// its strides; any other gets dense strides in the order of its own. The order is found as
// TensorIterator does, where a stride of 0 compares with nothing.
Sizes like_strides(const Tensor& like) {
  const int n = like.ndim();
  int order[Sizes::kMost];  // innermost first
  for (int d = 0; d < n; d++) order[d] = n - 1 - d;
  const auto compare = [&](int a, int b) {
    const int64_t sa = like.stride(a), sb = like.stride(b);
    if (sa == 0 || sb == 0) return 0;
    if (sa != sb) return sa < sb ? -1 : 1;
    return like.size(a) > like.size(b) ? 1 : 0;
  };
  for (int i = 1; i < n; i++)
    for (int at = i, below = i - 1; below >= 0; below--) {
      const int result = compare(order[below], order[at]);
      if (result < 0) break;
      if (result > 0) {
        const int swapped = order[below];
        order[below] = order[at];
        order[at] = swapped;
        at = below;
      }
    }
  bool dense = true;
  Sizes strides(like.sizes());
  int64_t next = 1;
  for (int i = 0; i < n; i++) {
    const int d = order[i];
    dense &= like.size(d) == 1 || like.stride(d) == next;
    strides[d] = next;
    next *= like.size(d) > 1 ? like.size(d) : 1;
  }
  return dense ? Sizes(like.strides()) : strides;
}

}  // namespace
}  // namespace kiln::detail

namespace kiln {

Tensor empty_strided(const Sizes& sizes, const Sizes& strides, Dtype dtype, Device device) {
  detail::check_sizes(sizes, dtype);
  KILN_CHECK(sizes.size() == strides.size(), "empty_strided: ", sizes.size(), " sizes and ",
             strides.size(), " strides");
  for (int d = 0; d < strides.size(); d++)
    KILN_CHECK(strides[d] >= 0, "empty_strided: a negative stride in ", strides);
  return detail::allocate(sizes, strides, dtype, device);
}

Tensor empty(const Sizes& sizes, Dtype dtype, Device device) {
  detail::check_sizes(sizes, dtype);
  return detail::allocate(sizes, detail::dense_strides(sizes), dtype, device);
}

Tensor empty_like(const Tensor& like, Dtype dtype) {
  if (like.is_contiguous())
    return detail::allocate(like.sizes(), like.strides(), dtype, like.device());
  KILN_CHECK(like.ndim() <= Sizes::kMost, "empty_like: a tensor of more than 16 dimensions");
  return detail::allocate(like.sizes(), detail::like_strides(like), dtype, like.device());
}

Tensor empty_like(const Tensor& like) { return empty_like(like, like.dtype()); }

Tensor zeros(const Sizes& sizes, Dtype dtype, Device device) {
  Tensor tensor = empty(sizes, dtype, device);
  if (tensor.numel() > 0)
    detail::memory_zero(device, tensor.raw(), static_cast<size_t>(tensor.nbytes()), stream(tensor));
  return tensor;
}

cudaStream_t stream(const Tensor& like) {
  const detail::Call* call = detail::current_call();
  if (!call || !like.is_cuda()) return nullptr;
  if (!call->from_torch) return detail::used_stream();
  return static_cast<cudaStream_t>(detail::torch_current_stream(like.device().index));
}

}  // namespace kiln
