// SPDX-License-Identifier: Apache-2.0
// Which mistakes that people make in ops must be found, with their cause? Each op has one, and
// works as people write ops: tensors, Views, one launch. `expect RULE #NAME` stands in the line of
// the mistake, `call OP ARGUMENTS` says how it is called (rules.md).
#include <kiln/op.h>

#define EACH(x) <<<kiln::blocks_for((x).numel(), 128), 128, 0, kiln::stream(x)>>>

using kiln::Tensor;
using kiln::View;

namespace {

Tensor like(const Tensor& x) { return kiln::empty_like(x); }

// ---- Addresses

__global__ void no_guard_k(const float* x, float* y) {
  const int64_t i = kiln::global_thread();
  y[i] = x[i] * 2;  // expect out-of-bounds #no-guard
}
__global__ void guard_off_by_one_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i <= n) y[i] = x[i] * 2;  // expect out-of-bounds #guard-off-by-one
}
__global__ void stencil_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) y[i] = x[i] + x[i + 1];  // expect out-of-bounds #stencil
}
__global__ void shared_too_small_k(const float* x, float* y, int64_t n) {
  __shared__ float tile[64];
  const int64_t i = kiln::global_thread();
  tile[threadIdx.x] = i < n ? x[i] : 0;  // expect out-of-bounds #shared-too-small
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x % 64];
}
__global__ void shared_not_requested_k(const float* x, float* y, int64_t n) {
  extern __shared__ float room[];
  const int64_t i = kiln::global_thread();
  room[threadIdx.x] = 1;  // expect out-of-bounds #shared-not-requested
  if (i < n) y[i] = x[i];
}
__global__ void row_end_k(View<const float, 2> x, View<float, 2> y) {
  const int64_t row = blockIdx.x, column = threadIdx.x;
  if (column < x.size(1))
    y(row, column) = x(row, column + 1);  // expect index-out-of-bounds #row-end
}
__global__ void rows_and_columns_k(View<const float, 2> x, View<float, 2> y) {
  const int64_t row = blockIdx.x, column = threadIdx.x;
  if (column < x.size(1)) y(row, column) = x(column, row);  // expect index-out-of-bounds #swapped
}
__global__ void negative_index_k(View<const float, 1> x, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  if (i < x.size(0)) y(i) = x(i - 1);  // expect index-out-of-bounds #negative-index
}
__global__ void past_allocation_k(View<const float, 1> x, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  y(i) = x(i);  // expect index-out-of-bounds #past-allocation
}
__global__ void gather_k(View<const float, 1> x, View<const int32_t, 1> at, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  if (i < y.size(0)) y(i) = x(at(i));  // expect index-out-of-bounds #gather
}
__global__ void vector_load_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (4 * i + 3 < n)
    reinterpret_cast<float4*>(y)[i] =
        *reinterpret_cast<const float4*>(x + 4 * i);  // expect misaligned #vector-load
}
__global__ void write_input_k(float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) {
    y[i] = x[i];
    x[i] = 0;  // expect write-to-input #write-input
  }
}
__global__ void int_overflow_k(const float* x, float* y, int n, int scale) {
  const int i = static_cast<int>(kiln::global_thread());
  if (i < n) y[i] = x[i * scale];  // expect out-of-bounds #int-overflow
}
__global__ void local_array_k(const float* x, float* y, int64_t n, int at) {
  float own[4] = {1, 2, 3, 4};
  const int64_t i = kiln::global_thread();
  own[at % 4] = 5;
  if (i < n) y[i] = x[i] + own[at];  // expect out-of-bounds #local-array
}
__global__ void null_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) y[i] = x[i];  // expect out-of-bounds #null
}

// ---- Barriers and lanes

__global__ void barrier_in_branch_k(const float* x, float* y, int64_t n) {
  __shared__ float tile[128];
  const int64_t i = kiln::global_thread();
  if (threadIdx.x < 100) {
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();  // expect divergent-barrier #barrier-in-branch
    if (i < n) y[i] = tile[threadIdx.x];
  }
}
__global__ void barrier_after_return_k(const float* x, float* y, int64_t n) {
  __shared__ float tile[128];
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  tile[threadIdx.x] = x[i];
  __syncthreads();  // expect divergent-barrier #barrier-after-return
  y[i] = tile[threadIdx.x];
}
__global__ void other_barriers_k(float* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 128;" ::: "memory");  // expect deadlock #other-barriers
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory");  // expect deadlock #other-barriers
  }
  y[threadIdx.x] = 1;
}
__global__ void shuffle_after_return_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  y[i] = x[i] + __shfl_down_sync(0xffffffffu, x[i], 1);  // expect inactive-source #shuffle-return
}
__global__ void shuffle_in_branch_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  const float v = i < n ? x[i] : 0;
  float sum = v;
  if (threadIdx.x % 32 < 16) {
    sum += 1;
    sum *= __shfl_xor_sync(0xffffffffu, v, 1);  // expect missing-member #shuffle-in-branch
  } else {
    sum += 2;
    sum -= __shfl_xor_sync(0xffffffffu, v, 2);  // expect missing-member #shuffle-other-branch
  }
  if (i < n) y[i] = sum;
}

// ---- Races

__global__ void tree_k(const float* x, float* y) {
  __shared__ float sums[128];
  sums[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = 64; half; half /= 2)
    if (threadIdx.x < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];  // expect shared-race #tree
  if (threadIdx.x == 0) y[0] = sums[0];
}
__global__ void reuse_k(const float* x, float* y) {
  __shared__ float first;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) first = x[round];  // expect shared-race #reuse
    __syncthreads();
    y[threadIdx.x] = first;  // expect shared-race #reuse
  }
}
__global__ void shift_k(const float* x, float* y) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];                        // expect shared-race #shift
  y[threadIdx.x] = threadIdx.x ? tile[threadIdx.x - 1] : 0;  // expect shared-race #shift
}
__global__ void chain_k(float* y) {
  if (threadIdx.x) return;
  y[blockIdx.x] = (blockIdx.x ? y[blockIdx.x - 1] : 0) + 1;  // expect global-race #chain
}
__global__ void sum_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) *y += x[i];  // expect global-race #sum
}
__global__ void histogram_k(const int32_t* x, int32_t* bins, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) bins[x[i] & 3] += 1;  // expect global-race #histogram
}
__global__ void overlap_k(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * 100 + threadIdx.x;
  if (i < n) y[i] = x[i] + static_cast<float>(blockIdx.x);  // expect global-race #overlap
}
__global__ void last_block_k(const float* x, float* parts, unsigned* done, float* y) {
  if (threadIdx.x) return;
  parts[blockIdx.x] = x[blockIdx.x];  // expect global-race #last-block
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += parts[b];  // expect global-race #last-block
  y[0] = sum;
}

}  // namespace

#define ELEMENTWISE(name)                                                \
  Tensor name(const Tensor& x) {                                         \
    Tensor y = like(x);                                                  \
    name##_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel()); \
    return y;                                                            \
  }                                                                      \
  KILN_OP(name, "x")

Tensor no_guard(const Tensor& x) {  // call no_guard randn:f32:100
  Tensor y = like(x);
  no_guard_k EACH(x)(x.data<const float>(), y.data<float>());
  return y;
}
KILN_OP(no_guard, "x");
ELEMENTWISE(guard_off_by_one);      // call guard_off_by_one randn:f32:100
ELEMENTWISE(stencil);               // call stencil randn:f32:100
ELEMENTWISE(shared_too_small);      // call shared_too_small randn:f32:100
ELEMENTWISE(shared_not_requested);  // call shared_not_requested randn:f32:100
ELEMENTWISE(barrier_in_branch);     // call barrier_in_branch randn:f32:128
ELEMENTWISE(barrier_after_return);  // call barrier_after_return randn:f32:100
ELEMENTWISE(shuffle_after_return);  // call shuffle_after_return randn:f32:100
ELEMENTWISE(shuffle_in_branch);     // call shuffle_in_branch randn:f32:128

Tensor row_end(const Tensor& x) {  // call row_end randn:f32:4x5
  Tensor y = like(x);
  row_end_k<<<4, 32, 0, kiln::stream(x)>>>(x.view<const float, 2>(), y.view<float, 2>());
  return y;
}
KILN_OP(row_end, "x");

Tensor rows_and_columns(const Tensor& x) {  // call rows_and_columns randn:f32:4x5
  Tensor y = like(x);
  rows_and_columns_k<<<4, 32, 0, kiln::stream(x)>>>(x.view<const float, 2>(), y.view<float, 2>());
  return y;
}
KILN_OP(rows_and_columns, "x");

Tensor negative_index(const Tensor& x) {  // call negative_index randn:f32:100
  Tensor y = like(x);
  negative_index_k EACH(x)(x.view<const float, 1>(), y.view<float, 1>());
  return y;
}
KILN_OP(negative_index, "x");

Tensor past_allocation(const Tensor& x) {  // call past_allocation randn:f32:100
  Tensor y = like(x);
  past_allocation_k EACH(x)(x.view<const float, 1>(), y.view<float, 1>());
  return y;
}
KILN_OP(past_allocation, "x");

Tensor gather(const Tensor& x, const Tensor& at) {  // call gather randn:f32:10 arange:i32:20
  Tensor y = kiln::empty(at.sizes(), x.dtype(), x.device());
  gather_k EACH(at)(x.view<const float, 1>(), at.view<const int32_t, 1>(), y.view<float, 1>());
  return y;
}
KILN_OP(gather, "x, at");

Tensor vector_load(const Tensor& x) {  // call vector_load randn:f32:64:offset=1
  Tensor y = like(x);
  vector_load_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(vector_load, "x");

Tensor write_input(const Tensor& x) {  // call write_input randn:f32:100
  Tensor y = like(x);
  write_input_k EACH(x)(const_cast<float*>(x.data<const float>()), y.data<float>(), x.numel());
  return y;
}
KILN_OP(write_input, "x");

Tensor int_overflow(const Tensor& x) {  // call int_overflow randn:f32:100
  Tensor y = like(x);
  int_overflow_k EACH(x)(x.data<const float>(), y.data<float>(), 100, 1 << 26);
  return y;
}
KILN_OP(int_overflow, "x");

Tensor local_array(const Tensor& x) {  // call local_array randn:f32:100
  Tensor y = like(x);
  local_array_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel(), 4000);
  return y;
}
KILN_OP(local_array, "x");

Tensor null(const Tensor& x) {  // call null randn:f32:100
  Tensor y = like(x);
  null_k EACH(x)(nullptr, y.data<float>(), x.numel());
  return y;
}
KILN_OP(null, "x");

Tensor other_barriers(const Tensor& x) {  // call other_barriers randn:f32:128
  Tensor y = like(x);
  other_barriers_k<<<1, 128, 0, kiln::stream(x)>>>(y.data<float>());
  return y;
}
KILN_OP(other_barriers, "x");

#define OF_128(name)                                                                  \
  Tensor name(const Tensor& x) {                                                      \
    Tensor y = kiln::zeros(x.sizes(), x.dtype(), x.device());                         \
    name##_k<<<1, 128, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>()); \
    return y;                                                                         \
  }                                                                                   \
  KILN_OP(name, "x")
OF_128(tree);   // call tree randn:f32:128
OF_128(reuse);  // call reuse randn:f32:128
OF_128(shift);  // call shift randn:f32:128

Tensor chain(const Tensor& x) {  // call chain randn:f32:8
  Tensor y = kiln::zeros(x.sizes(), x.dtype(), x.device());
  chain_k<<<8, 32, 0, kiln::stream(x)>>>(y.data<float>());
  return y;
}
KILN_OP(chain, "x");

Tensor sum(const Tensor& x) {  // call sum randn:f32:1000
  Tensor y = kiln::zeros({1}, x.dtype(), x.device());
  sum_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(sum, "x");

Tensor histogram(const Tensor& x) {  // call histogram arange:i32:1000
  Tensor y = kiln::zeros({4}, x.dtype(), x.device());
  histogram_k EACH(x)(x.data<const int32_t>(), y.data<int32_t>(), x.numel());
  return y;
}
KILN_OP(histogram, "x");

Tensor overlap(const Tensor& x) {  // call overlap randn:f32:1000
  Tensor y = like(x);
  overlap_k<<<10, 128, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(overlap, "x");

Tensor last_block(const Tensor& x) {  // call last_block randn:f32:8
  Tensor y = kiln::zeros({1}, x.dtype(), x.device());
  Tensor parts = like(x), done = kiln::zeros({1}, kiln::Dtype::i32, x.device());
  last_block_k<<<8, 32, 0, kiln::stream(x)>>>(x.data<const float>(), parts.data<float>(),
                                              reinterpret_cast<unsigned*>(done.data<int32_t>()),
                                              y.data<float>());
  return y;
}
KILN_OP(last_block, "x");
