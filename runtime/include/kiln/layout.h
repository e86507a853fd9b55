// SPDX-License-Identifier: Apache-2.0
// In which order, and with which strides, does an elementwise loop run? Host code: broadcast
// shapes, the output layout that torch's TensorIterator would choose, and the loop itself with its
// dimensions sorted and merged.
#pragma once

#include <kiln/tensor.h>

namespace kiln {

// The common shape; a dimension of size 1, or one that is missing on the left, follows the others.
inline Sizes broadcast_sizes(Span<const int64_t> a, Span<const int64_t> b) {
  const size_t ndim = a.size() > b.size() ? a.size() : b.size();
  KILN_CHECK(ndim <= Sizes::kMost, "a tensor of ", ndim, " dimensions: at most ", int(Sizes::kMost),
             " are supported");
  Sizes shape;
  for (size_t d = 0; d < ndim; d++) {
    const int64_t size_a = d + a.size() < ndim ? 1 : a[d + a.size() - ndim];
    const int64_t size_b = d + b.size() < ndim ? 1 : b[d + b.size() - ndim];
    KILN_CHECK(size_a == size_b || size_a == 1 || size_b == 1, "shapes ", a, " and ", b,
               " do not broadcast: they differ in dimension ", d, " (", size_a, " and ", size_b,
               ")");
    shape.push(size_a == 1 ? size_b : size_a);
  }
  return shape;
}

namespace detail {

constexpr int kMostOperands = 8;  // the output among them

// The strides of a tensor seen as `shape`: 0 where it is broadcast.
inline void expanded_strides(const Tensor& t, Span<const int64_t> shape, int64_t* strides) {
  const int missing = static_cast<int>(shape.size()) - t.ndim();
  const Span<const int64_t> sizes = t.sizes(), given = t.strides();
  for (int d = 0; d < static_cast<int>(shape.size()); d++)
    strides[d] = d < missing || (sizes[d - missing] == 1 && shape[d] != 1) ? 0 : given[d - missing];
}

inline bool broadcasts_to(Span<const int64_t> sizes, Span<const int64_t> shape) {
  if (sizes.size() > shape.size() || shape.size() > Sizes::kMost) return false;
  for (size_t d = 0; d < sizes.size(); d++)
    if (sizes[d] != 1 && sizes[d] != shape[d + shape.size() - sizes.size()]) return false;
  return true;
}

inline bool is_channels_last(const Tensor& t) {
  if (t.ndim() != 4) return false;
  int64_t expected = 1;
  constexpr int kOrder[] = {1, 3, 2, 0};
  for (int d : kOrder) {
    if (t.size(d) == 1) continue;
    if (t.stride(d) != expected) return false;
    expected *= t.size(d);
  }
  return true;
}

// Every element has an address of its own and there is no gap between them, in some order of the
// dimensions.
inline bool is_dense(const Tensor& t) {
  int order[Sizes::kMost];
  const int ndim = t.ndim();
  int used = 0;
  for (int d = 0; d < ndim; d++) {
    if (t.size(d) < 2) continue;
    int at = used++;
    for (; at > 0 && t.stride(order[at - 1]) > t.stride(d); at--) order[at] = order[at - 1];
    order[at] = d;
  }
  int64_t expected = 1;
  for (int i = 0; i < used; i++) {
    if (t.stride(order[i]) != expected) return false;
    expected *= t.size(order[i]);
  }
  return true;
}

// Whether dimension d0 belongs outside of d1 (1), inside (-1), or either: the first operand with an
// opinion decides.
inline int order_of(int d0, int d1, const Sizes& shape, const int64_t (*strides)[Sizes::kMost],
                    int operands) {
  for (int k = 0; k < operands; k++) {
    const int64_t s0 = strides[k][d0], s1 = strides[k][d1];
    if (s0 == 0 || s1 == 0) continue;
    if (s0 != s1) return s0 < s1 ? -1 : 1;
    if (shape[d0] > shape[d1]) return 1;
  }
  return 0;
}

// The dimensions from the innermost to the outermost; an insertion sort, since order_of is not a
// total order.
inline void sort_dimensions(int* order, const Sizes& shape, const int64_t (*strides)[Sizes::kMost],
                            int operands) {
  const int ndim = shape.size();
  for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
  for (int i = 1; i < ndim; i++) {
    int at = i;
    for (int before = i - 1; before >= 0; before--) {
      const int comparison = order_of(order[before], order[at], shape, strides, operands);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      const int swap = order[before];
      order[before] = order[at];
      order[at] = swap;
      at = before;
    }
  }
}

inline bool same_shape(const Tensor* const* inputs, int count) {
  for (int k = 1; k < count; k++)
    if (inputs[k]->sizes() != inputs[0]->sizes()) return false;
  return true;
}

template <class P>
bool all_of(const Tensor* const* inputs, int count, P predicate) {
  for (int k = 0; k < count; k++)
    if (!predicate(*inputs[k])) return false;
  return true;
}

inline Tensor empty_for(Dtype dtype, const Tensor* const* inputs, int count) {
  const Tensor& first = *inputs[0];
  for (int k = 1; k < count; k++)
    KILN_CHECK(inputs[k]->device() == first.device(), "tensors on two devices: ", first.device(),
               " and ", inputs[k]->device(), "; move one with .to()");
  KILN_CHECK(all_of(inputs, count, [](const Tensor& t) { return t.ndim() <= Sizes::kMost; }),
             "at most ", int(Sizes::kMost), " dimensions are supported");
  if (same_shape(inputs, count)) {
    if (all_of(inputs, count, [](const Tensor& t) { return t.is_contiguous(); }))
      return empty(first.sizes(), dtype, first.device());
    if (all_of(inputs, count, is_channels_last)) {
      const int64_t c = first.size(1), h = first.size(2), w = first.size(3);
      return empty_strided(first.sizes(), {h * w * c, 1, w * c, c}, dtype, first.device());
    }
    if (all_of(inputs, count, is_dense) &&
        all_of(inputs, count, [&](const Tensor& t) { return t.strides() == first.strides(); }))
      return empty_strided(first.sizes(), first.strides(), dtype, first.device());
  }
  Sizes shape = first.sizes();
  for (int k = 1; k < count; k++) shape = broadcast_sizes(shape, inputs[k]->sizes());
  int64_t strides[kMostOperands][Sizes::kMost];
  for (int k = 0; k < count; k++) expanded_strides(*inputs[k], shape, strides[k]);
  int order[Sizes::kMost];
  sort_dimensions(order, shape, strides, count);
  bool plain = true;
  Sizes dense = shape;
  int64_t next = 1;
  for (int i = 0; i < shape.size(); i++) {
    plain &= order[i] == shape.size() - 1 - i;
    dense[order[i]] = next;
    next *= shape[order[i]];
  }
  if (plain) return empty(shape, dtype, first.device());
  return empty_strided(shape, dense, dtype, first.device());
}

// An elementwise loop: operand 0 is the output; dimension 0 is the innermost. Strides are in
// elements.
struct Loop {
  int ndim = 0;
  int operands = 0;
  int64_t sizes[Sizes::kMost];
  int64_t strides[kMostOperands][Sizes::kMost];
  char* data[kMostOperands];
  int element_bytes[kMostOperands];

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= sizes[d];
    return n;
  }
  // The offset of an operand's last element; the first has 0.
  int64_t last_offset(int operand) const {
    int64_t offset = 0;
    for (int d = 0; d < ndim; d++) offset += (sizes[d] - 1) * strides[operand][d];
    return offset;
  }
};

// Sorts the dimensions by the output's strides, drops those of size 1, merges neighbours that every
// operand steps through as one.
inline Loop make_loop(const Tensor& out, const Tensor* const* inputs, int count) {
  Loop loop;
  loop.operands = count + 1;
  const Span<const int64_t> shape = out.sizes();
  int64_t strides[kMostOperands][Sizes::kMost];
  for (int k = 0; k <= count; k++) {
    const Tensor& t = k == 0 ? out : *inputs[k - 1];
    loop.data[k] = static_cast<char*>(const_cast<void*>(t.raw()));
    loop.element_bytes[k] = static_cast<int>(element_bytes(t.dtype()));
    KILN_CHECK(
        reinterpret_cast<uintptr_t>(loop.data[k]) % static_cast<unsigned>(loop.element_bytes[k]) ==
            0,
        "the data of a tensor of ", t.dtype(),
        " is not aligned to its elements; copy it with .clone()");
    KILN_CHECK(broadcasts_to(t.sizes(), shape), "an input of shape ", t.sizes(),
               " does not broadcast to the output's ", shape);
    expanded_strides(t, shape, strides[k]);
  }
  int order[Sizes::kMost];
  sort_dimensions(order, Sizes(shape), strides, count + 1);
  for (int i = 0; i < static_cast<int>(shape.size()); i++) {
    const int d = order[i], last = loop.ndim - 1;
    if (shape[d] == 1) continue;
    bool merges = last >= 0;
    for (int k = 0; k <= count && merges; k++)
      merges = strides[k][d] == loop.sizes[last] * loop.strides[k][last];
    if (merges) {
      loop.sizes[last] *= shape[d];
      continue;
    }
    for (int k = 0; k <= count; k++) loop.strides[k][loop.ndim] = strides[k][d];
    loop.sizes[loop.ndim++] = shape[d];
  }
  if (loop.ndim == 0) {  // one element
    loop.ndim = 1;
    loop.sizes[0] = 1;
    for (int k = 0; k <= count; k++) loop.strides[k][0] = 1;
  }
  return loop;
}

// Whether every index and every offset fits in 31 bits, as the division below needs.
inline bool fits_31_bits(const Loop& loop) {
  if (loop.numel() > 0x7fffffff) return false;
  for (int k = 0; k < loop.operands; k++)
    if (loop.last_offset(k) > 0x7fffffff) return false;
  return true;
}

// Halves the dimension through which the operands step furthest: the first half stays in `loop`,
// the second is returned.
inline Loop split_off_half(Loop& loop) {
  int widest = -1;
  int64_t most = -1;
  for (int d = 0; d < loop.ndim; d++) {
    int64_t reach = loop.sizes[d] > 1 ? 0 : -1;
    for (int k = 0; k < loop.operands && reach >= 0; k++) {
      const int64_t bytes = (loop.sizes[d] - 1) * loop.strides[k][d] * loop.element_bytes[k];
      reach = bytes > reach ? bytes : reach;
    }
    if (reach > most) most = reach, widest = d;
  }
  Loop rest = loop;
  const int64_t half = loop.sizes[widest] / 2;
  loop.sizes[widest] = half;
  rest.sizes[widest] -= half;
  for (int k = 0; k < loop.operands; k++)
    rest.data[k] += half * loop.strides[k][widest] * loop.element_bytes[k];
  return rest;
}

}  // namespace detail

// A new tensor for the result of an elementwise operation on these tensors: their common shape, on
// their device, with the strides that torch would give it. (In a fake rule: broadcast(a, b).)
template <class... T>
Tensor empty_broadcast(Dtype dtype, const T&... inputs) {
  const Tensor* const all[] = {&inputs...};
  return detail::empty_for(dtype, all, sizeof...(T));
}

}  // namespace kiln
