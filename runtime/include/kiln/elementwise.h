// SPDX-License-Identifier: Apache-2.0
// How does an author apply a function to every element of tensors? kiln::elementwise<Out,
// In...>(out, f, inputs...): any strides, any alignment, any size, broadcasting; inputs of another
// dtype than In are converted while they are read.
//
//   struct Multiply {
//     template <class T>
//     __device__ T operator()(T a, T b) const { return a * b; }
//   };
//   Tensor out = kiln::empty_broadcast(kiln::result_dtype(a, b), a, b);
//   kiln::dispatch<float, kiln::half>(out.dtype(), [&](auto t) {
//     using T = typename decltype(t)::type;
//     kiln::elementwise<T, T, T>(out, Multiply{}, a, b);
//   });
//
// The functor sees half and bf16 as float (kiln/element.h). Out may be one of the inputs, of the
// same strides.
#pragma once

#include <kiln/elementwise_rows.h>
#include <kiln/elementwise_strided.h>
#include <kiln/launch.h>
#include <kiln/layout.h>
#include <kiln/promote.h>

namespace kiln {
namespace detail {

// Integers of one size have the same bits, whatever their sign.
inline bool same_bits(Dtype a, Dtype b) {
  return a == b || (category_of(a) == Category::integer && category_of(b) == Category::integer &&
                    element_bytes(a) == element_bytes(b));
}

inline void check_convertible(Dtype from, Dtype to) {
  KILN_CHECK(from == to || (category_of(from) <= category_of(to) && !is_float8(from)),
             "an input of ", from, " cannot be read as ", to, "; convert it with .to()");
}

inline unsigned block_count(int64_t elements, int64_t per_block) {
  return static_cast<unsigned>((elements + per_block - 1) / per_block);
}

// One loop with the types of its functor.
template <bool kMayConvert, class F, class Out, class... In>
class ElementwiseLaunch {
 public:
  static constexpr int K = 1 + sizeof...(In);
  static constexpr int N = vector_elements<Out, In...>();

  ElementwiseLaunch(const F& f, const Dtype (&dtypes)[K], bool converts, cudaStream_t stream)
      : f_(f), dtypes_(dtypes), converts_(converts), stream_(stream) {}

  template <bool kShifted>
  void contiguous(const Pointers<K>& p, int64_t n) const {
    constexpr int kTile = kThreads * KILN_ELEMENTWISE_VECTORS * N;
    contiguous_kernel<kShifted, F, Out, In...>
        <<<block_count(n, kTile), kThreads, 0, stream_>>>(f_, p, n);
  }

  // Of the first `operands`: 1 asks for the output alone.
  static bool is_aligned(const Pointers<K>& p, int operands = K) {
    constexpr size_t bytes[K] = {sizeof(BitsOf<Out>), sizeof(BitsOf<In>)...};
    for (int k = 0; k < operands; k++)
      if (reinterpret_cast<uintptr_t>(p.at[k]) % (N * bytes[k])) return false;
    return true;
  }

  void run(Loop& loop) const {
    if (!converts_ && loop.ndim == 1 && steps_by_one(loop)) {
      if (is_aligned(pointers(loop))) return contiguous<false>(pointers(loop), loop.sizes[0]);
      if (is_aligned(pointers(loop), 1)) return contiguous<true>(pointers(loop), loop.sizes[0]);
    }
    if (!fits_31_bits(loop)) {
      Loop rest = split_off_half(loop);
      run(loop);
      return run(rest);
    }
    if constexpr (kMayConvert) {
      if (converts_) return strided<true>(loop);
    }
    if (suits_rows(loop)) return rows(loop);
    // One input and an output made for it are in the same order; two inputs may be turned against
    // each other.
    if constexpr (sizeof...(In) > 1 && sizeof(TileMemory<In...>) <= 48 * 1024) {
      const int other = turned_dimension(loop);
      if (other > 0) return tiles(loop, other);
    }
    strided<false>(loop);
  }

 private:
  static bool steps_by_one(const Loop& loop) {
    for (int k = 0; k < K; k++)
      if (loop.strides[k][0] != 1) return false;
    return true;
  }
  static Pointers<K> pointers(const Loop& loop) {
    Pointers<K> p;
    for (int k = 0; k < K; k++) p.at[k] = loop.data[k];
    return p;
  }
  // The dimensions of `loop` but for `skip` of them, marked in `taken`.
  static void fill_outer(Outer<K>& outer, const Loop& loop, uint32_t taken) {
    for (int d = 0; d < loop.ndim; d++) {
      if (taken >> d & 1) continue;
      outer.sizes[outer.ndim] = Divider(loop.sizes[d]);
      for (int k = 0; k < K; k++)
        outer.strides[outer.ndim][k] = static_cast<uint32_t>(loop.strides[k][d]);
      outer.ndim++;
    }
  }

  // Rows shorter than a few vectors are mostly heads and tails.
  static bool suits_rows(const Loop& loop) {
    if (loop.strides[0][0] != 1 || loop.sizes[0] < (loop.ndim == 1 ? 1 : 4 * N)) return false;
    for (int k = 1; k < K; k++)
      if (loop.strides[k][0] != 1 && loop.strides[k][0] != 0) return false;
    return true;
  }

  void rows(const Loop& loop) const {
    RowsPlan<K> plan;
    plan.row_elements = static_cast<int>(loop.sizes[0]);
    plan.has_heads = reinterpret_cast<uintptr_t>(loop.data[0]) % (N * sizeof(BitsOf<Out>)) != 0;
    for (int d = 1; d < loop.ndim; d++) plan.has_heads |= loop.strides[0][d] % N != 0;
    for (int k = 0; k < K; k++) {
      plan.spread[k] = loop.strides[k][0] == 0;
      plan.begin[k] = loop.data[k];
      plan.end[k] = loop.data[k] + (loop.last_offset(k) + 1) * loop.element_bytes[k];
    }
    const int64_t per_row = (loop.sizes[0] + (plan.has_heads ? N - 1 : 0) + N - 1) / N;
    const int64_t chunks = per_row * (loop.numel() / loop.sizes[0]);
    plan.chunks_per_row = Divider(per_row);
    plan.chunks = static_cast<uint32_t>(chunks);
    fill_outer(plan.outer, loop, 1);
    rows_kernel<F, Out, In...>
        <<<block_count(chunks, kThreads * KILN_ELEMENTWISE_ROW_VECTORS), kThreads, 0, stream_>>>(
            f_, pointers(loop), plan);
  }

  // The dimension along which an input is contiguous while the output is along dimension 0; 0 if
  // there is none worth a tile.
  static int turned_dimension(const Loop& loop) {
    if (loop.strides[0][0] != 1 || loop.sizes[0] < kTileSide / 2) return 0;
    for (int d = 1; d < loop.ndim; d++)
      for (int k = 1; k < K; k++)
        if (loop.strides[k][d] == 1 && loop.strides[k][0] > 1 && loop.sizes[d] >= kTileSide / 2)
          return d;
    return 0;
  }

  void tiles(const Loop& loop, int other) const {
    TilesPlan<K> plan;
    const int dimensions[2] = {0, other};
    int64_t blocks = loop.numel() / (loop.sizes[0] * loop.sizes[other]);
    for (int i = 0; i < 2; i++) {
      const int d = dimensions[i];
      const int64_t along = (loop.sizes[d] + kTileSide - 1) / kTileSide;
      plan.sizes[i] = static_cast<int>(loop.sizes[d]);
      plan.tiles[i] = Divider(along);
      blocks *= along;
      for (int k = 0; k < K; k++) plan.strides[i][k] = static_cast<uint32_t>(loop.strides[k][d]);
    }
    for (int k = 0; k < K; k++)
      plan.turned[k] = loop.strides[k][other] == 1 && loop.strides[k][0] > 1;
    fill_outer(plan.outer, loop, 1u | 1u << other);
    tiles_kernel<F, Out, In...>
        <<<static_cast<unsigned>(blocks), dim3(kTileSide, kTileRows), 0, stream_>>>(
            f_, pointers(loop), plan);
  }

  template <bool kConvert>
  void strided(const Loop& loop) const {
    StridedPlan<K> plan;
    plan.elements = static_cast<uint32_t>(loop.numel());
    fill_outer(plan.all, loop, 0);
    for (int k = 0; k < K; k++) {
      plan.dtypes[k] = dtypes_[k];
      plan.element_bytes[k] = loop.element_bytes[k];
    }
    strided_kernel<kConvert, F, Out, In...>
        <<<block_count(plan.elements, kThreads * KILN_ELEMENTWISE_STRIDED), kThreads, 0, stream_>>>(
            f_, pointers(loop), plan);
  }

  const F& f_;
  const Dtype (&dtypes_)[K];
  bool converts_;
  cudaStream_t stream_;
};

}  // namespace detail

namespace detail {

template <bool kMayConvert, class Out, class... In, class F, class... T>
void run_elementwise(Tensor& out, const F& f, const T&... inputs) {
  static_assert(sizeof...(In) == sizeof...(T),
                "elementwise<Out, In...>: the types do not fit the tensors. Give one In for each "
                "input tensor");
  static_assert(1 + sizeof...(In) <= kMostOperands,
                "elementwise: too many inputs. It takes at most 7");
  constexpr int K = 1 + sizeof...(In);
  KILN_CHECK(same_bits(out.dtype(), dtype_of<Out>), "the output is ", out.dtype(),
             " and the function gives ", dtype_of<Out>);
  (check_convertible(inputs.dtype(), dtype_of<In>), ...);
  if (out.numel() == 0) return;
  const Dtype dtypes[K] = {out.dtype(), inputs.dtype()...};
  const bool converts = !(same_bits(inputs.dtype(), dtype_of<In>) && ...);
  KILN_CHECK(kMayConvert || !converts,
             "an input's dtype differs from what the function takes; convert it with .to()");
  const ElementwiseLaunch<kMayConvert, F, Out, In...> launch(f, dtypes, converts, stream(out));
  // The common case, decided in a few comparisons: a small op is paid for by its host code.
  const Pointers<K> p{
      {static_cast<char*>(out.raw()), static_cast<char*>(const_cast<void*>(inputs.raw()))...}};
  if (!converts && out.is_contiguous() && (inputs.is_contiguous() && ...) &&
      ((inputs.sizes() == out.sizes()) && ...) && launch.is_aligned(p))
    return launch.template contiguous<false>(p, out.numel());
  const Tensor* const all[] = {&inputs...};
  Loop loop = make_loop(out, all, sizeof...(T));
  launch.run(loop);
}

}  // namespace detail

template <class Out, class... In, class F, class... T>
void elementwise(Tensor& out, const F& f, const T&... inputs) {
  detail::run_elementwise<true, Out, In...>(out, f, inputs...);
}

// The same for inputs whose dtypes are In already; one kernel less to compile.
template <class Out, class... In, class F, class... T>
void elementwise_exact(Tensor& out, const F& f, const T&... inputs) {
  detail::run_elementwise<false, Out, In...>(out, f, inputs...);
}

}  // namespace kiln
