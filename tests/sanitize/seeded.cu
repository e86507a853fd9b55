// SPDX-License-Identifier: Apache-2.0
// Which mistakes of ops must kiln.test, kiln call or kiln.load find, and name with their cause?
// Each op has one, as people make them. `here #OP` marks the line that the message must name.
//
//   // test OP(ARGUMENTS) = REFERENCE | WORDS     kiln.test fails, and says WORDS
//   // call [VARIABLE=VALUE] OP ARGUMENTS | WORDS kiln call fails, and says WORDS
//
// ARGUMENTS and REFERENCE are Python; the arguments are x, y and z in the reference. kiln.load and
// backwards are in tests/python/test_seeded.py, which reads these lines.
#include <kiln/op.h>

#define EACH(x) <<<kiln::blocks_for((x).numel(), 128), 128, 0, kiln::stream(x)>>>

using kiln::Tensor;
using kiln::View;

namespace {

// ---- Addresses: raw pointers

__global__ void no_guard_k(const float* x, float* y) {
  const int64_t i = kiln::global_thread();
  y[i] = x[i] * 2;  // here #no_guard
}
__global__ void guard_off_by_one_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i <= n) y[i] = x[i] * 2;  // here #guard_off_by_one
}
__global__ void neighbour_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) y[i] = x[i] + (i + 1 < n + 1 ? x[i + 1] : 0);  // here #neighbour
}
__global__ void column_major_k(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x, column = threadIdx.x;
  y[row * columns + column] = x[column * columns + row];  // here #column_major
}
__global__ void bytes_for_elements_k(const float* x, float* y, int64_t n) {
  for (int64_t i = threadIdx.x; i < n * 4; i += blockDim.x)
    y[i] = x[i];  // here #bytes_for_elements
}

// ---- Addresses: shared memory

__global__ void shared_too_small_k(const float* x, float* y, int64_t n) {
  __shared__ float tile[64];
  const int64_t i = kiln::global_thread();
  tile[threadIdx.x] = i < n ? x[i] : 0;  // here #shared_too_small
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x];
}
__global__ void shared_not_requested_k(const float* x, float* y, int64_t n) {
  extern __shared__ float room[];
  const int64_t i = kiln::global_thread();
  room[threadIdx.x] = i < n ? x[i] : 0;  // here #shared_not_requested
  if (i < n) y[i] = room[threadIdx.x];
}
__global__ void shared_too_much_k(const float* x, float* y) {
  extern __shared__ float room[];
  room[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = room[threadIdx.x];
}

// ---- Addresses: Views

__global__ void row_end_k(View<const float, 2> x, View<float, 2> y) {
  const int64_t row = blockIdx.x, column = threadIdx.x;
  if (column < x.size(1)) y(row, column) = x(row, column + 1);  // here #row_end
}
__global__ void two_past_row_k(View<const float, 2> x, View<float, 2> y) {
  const int64_t row = blockIdx.x, column = threadIdx.x;
  y(row, column + 2) = x(row, column);  // here #two_past_row
}
__global__ void swapped_k(View<const float, 2> x, View<float, 2> y) {
  const int64_t row = blockIdx.x, column = threadIdx.x;
  if (column < x.size(1)) y(row, column) = x(column, row);  // here #swapped
}
__global__ void past_allocation_k(View<const float, 1> x, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  y(i) = x(i);  // here #past_allocation
}
__global__ void negative_index_k(View<const float, 1> x, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  if (i < x.size(0)) y(i) = x(i - 1);  // here #negative_index
}
__global__ void gather_k(View<const float, 1> x, View<const int32_t, 1> at, View<float, 1> y) {
  const int64_t i = kiln::global_thread();
  if (i < y.size(0)) y(i) = x(at(i));  // here #gather
}

// ---- Alignment, inputs, layouts

__global__ void vector_load_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (4 * i < n) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];  // here #vector_load
    reinterpret_cast<float4*>(y)[i] = {2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w};
  }
}
__global__ void write_input_k(float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) {
    x[i] = 2 * x[i];  // here #write_input
    y[i] = x[i];
  }
}
__global__ void doubling_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) y[i] = 2 * x[i];
}
// Only whole blocks are computed: the tail stays as the allocator left it.
__global__ void tail_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (blockIdx.x < n / 128) y[i] = 2 * x[i];
}

// ---- Races

__global__ void tree_k(const float* x, float* y) {
  __shared__ float sums[128];
  sums[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int half = 64; half; half /= 2)
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];  // here #tree
  if (threadIdx.x == 0) y[0] = sums[0];
}
__global__ void reuse_k(const float* x, float* y, int rounds) {
  __shared__ float first;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) first = x[round];  // here #reuse
    __syncthreads();
    y[round * 128 + threadIdx.x] = first;
  }
}
__global__ void shift_k(const float* x, float* y) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = threadIdx.x ? tile[threadIdx.x - 1] : 0;  // here #shift
}
__global__ void warp_shift_k(const float* x, float* y) {
  __shared__ float tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[31 - threadIdx.x];  // here #warp_shift
}
__global__ void chain_k(const float* x, float* y) {
  if (threadIdx.x) return;
  y[blockIdx.x] = (blockIdx.x ? y[blockIdx.x - 1] : 0) + x[blockIdx.x];  // here #chain
}
__global__ void sum_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) *y += x[i];  // here #sum
}
__global__ void histogram_k(const int32_t* x, int32_t* bins, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) bins[x[i] & 3] += 1;  // here #histogram
}
__global__ void last_block_k(const float* x, float* parts, unsigned* done, float* y) {
  if (threadIdx.x) return;
  parts[blockIdx.x] = x[blockIdx.x];  // here #last_block
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += parts[b];
  y[0] = sum;
}

// ---- Barriers, lanes, loops

__global__ void barrier_in_branch_k(const float* x, float* y) {
  __shared__ float tile[128];
  if (threadIdx.x < 100) {
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();  // here #barrier_in_branch
    y[threadIdx.x] = 2 * tile[threadIdx.x];
  }
}
__global__ void barrier_after_return_k(const float* x, float* y, int64_t n) {
  __shared__ float tile[128];
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  tile[threadIdx.x] = x[i];
  __syncthreads();  // here #barrier_after_return
  y[i] = 2 * tile[threadIdx.x];
}
__global__ void other_barriers_k(const float* x, float* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 128;" ::: "memory");  // here #other_barriers
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory");
  }
  y[threadIdx.x] = 2 * x[threadIdx.x];
}
__global__ void shuffle_after_return_k(const float* x, float* y, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  const float next = __shfl_down_sync(0xffffffffu, x[i], 1);  // here #shuffle_after_return
  y[i] = x[i] + (i + 1 < n ? next : 0);
}
// A step of 0, as of a size that was rounded down.
__global__ void never_ends_k(const float* x, float* y, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; i += step) y[i] = 2 * x[i];  // here #never_ends
}

}  // namespace

// ---- The ops

#define ELEMENTWISE(name)                                                \
  Tensor name(const Tensor& x) {                                         \
    KILN_CHECK(x.is_contiguous(), "x must be contiguous");               \
    Tensor y = kiln::empty_like(x);                                      \
    if (x.numel() == 0) return y;                                        \
    name##_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel()); \
    return y;                                                            \
  }                                                                      \
  KILN_OP(name, "x").fake("like(x)")

// One block of n threads, for sizes that fit it.
#define ONE_BLOCK(name, threads)                                                          \
  Tensor name(const Tensor& x) {                                                          \
    KILN_CHECK(x.is_contiguous() && x.numel() == (threads), "x must have one block");     \
    Tensor y = kiln::zeros(x.sizes(), x.dtype(), x.device());                             \
    name##_k<<<1, threads, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>()); \
    return y;                                                                             \
  }                                                                                       \
  KILN_OP(name, "x").fake("like(x)")

#define OF_VIEWS(name)                                                      \
  Tensor name(const Tensor& x) {                                            \
    Tensor y = kiln::empty_like(x);                                         \
    if (x.numel() == 0) return y;                                           \
    name##_k<<<static_cast<unsigned>(x.size(0)), 32, 0, kiln::stream(x)>>>( \
        x.view<const float, 2>(), y.view<float, 2>());                      \
    return y;                                                               \
  }                                                                         \
  KILN_OP(name, "x").fake("like(x)")

// call no_guard randn:f32:100 | out of bounds
// test no_guard(torch.randn(100)) = 2 * x | out-of-bounds
Tensor no_guard(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  no_guard_k EACH(x)(x.data<const float>(), y.data<float>());
  return y;
}
KILN_OP(no_guard, "x").fake("like(x)");
// test guard_off_by_one(torch.randn(100)) = 2 * x | out-of-bounds
ELEMENTWISE(guard_off_by_one);
// call neighbour randn:f32:100 | 'x'
// test neighbour(torch.randn(100)) = x + torch.cat([x[1:], x.new_zeros(1)]) | tensor 'x'
ELEMENTWISE(neighbour);
// test column_major(torch.randn(4, 8)) = x | tensor 'x'
Tensor column_major(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  if (x.numel() == 0) return y;
  const int rows = static_cast<int>(x.size(0)), columns = static_cast<int>(x.size(1));
  column_major_k<<<rows, columns, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(),
                                                        rows, columns);
  return y;
}
KILN_OP(column_major, "x").fake("like(x)");
// call bytes_for_elements randn:f32:100 | out of bounds
ELEMENTWISE(bytes_for_elements);

// call shared_too_small randn:f32:128 | out of bounds
// test shared_too_small(torch.randn(128)) = x | shared memory is out of bounds
ELEMENTWISE(shared_too_small);
// call shared_not_requested randn:f32:128 | out of bounds
// test shared_not_requested(torch.randn(128)) = x | ask for shared memory at the launch
ELEMENTWISE(shared_not_requested);
// call shared_too_much randn:f32:128 | 60000 bytes of shared memory
// test shared_too_much(torch.randn(128)) = x | 60000 bytes of shared memory
Tensor shared_too_much(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  shared_too_much_k<<<1, 128, 60000, kiln::stream(x)>>>(x.data<const float>(), y.data<float>());
  return y;
}
KILN_OP(shared_too_much, "x").fake("like(x)");

// call row_end randn:f32:4x5 | index 5 of 5 in dimension 1
// test row_end(torch.randn(4, 5)) = x.roll(-1, 1) | index 5 is outside dimension 1 of tensor 'x'
OF_VIEWS(row_end);
// call two_past_row randn:f32:4x32 | index 32 of 32 in dimension 1
// test two_past_row(torch.randn(4, 32)) = x.roll(2, 1) | outside dimension 1
OF_VIEWS(two_past_row);
// test swapped(torch.randn(4, 5)) = x | outside dimension 0 of tensor 'x'
OF_VIEWS(swapped);
#define OF_LINE(name)                                               \
  Tensor name(const Tensor& x) {                                    \
    Tensor y = kiln::empty_like(x);                                 \
    if (x.numel() == 0) return y;                                   \
    name##_k EACH(x)(x.view<const float, 1>(), y.view<float, 1>()); \
    return y;                                                       \
  }                                                                 \
  KILN_OP(name, "x").fake("like(x)")
// call past_allocation randn:f32:100 | index 100 of 100 in dimension 0
// test past_allocation(torch.randn(100)) = x | index 100 is outside dimension 0
OF_LINE(past_allocation);
// call negative_index randn:f32:100 | index -1 of 100 in dimension 0
// test negative_index(torch.randn(100)) = x.roll(1) | index -1 is outside dimension 0
OF_LINE(negative_index);
// call gather randn:f32:10 arange:i32:20 | index 10 of 10 in dimension 0
Tensor gather(const Tensor& x, const Tensor& at) {
  Tensor y = kiln::empty(at.sizes(), x.dtype(), x.device());
  gather_k EACH(at)(x.view<const float, 1>(), at.view<const int32_t, 1>(), y.view<float, 1>());
  return y;
}
KILN_OP(gather, "x, at").fake("f32[*at.shape]");

// test vector_load(torch.randn(64)) = 2 * x | misaligned
ELEMENTWISE(vector_load);
// call write_input randn:f32:100 | may only read
// test write_input(torch.randn(100)) = 2 * x | write to tensor 'x', which the op may only read
Tensor write_input(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  if (x.numel() == 0) return y;
  write_input_k EACH(x)(const_cast<float*>(x.data<const float>()), y.data<float>(), x.numel());
  return y;
}
KILN_OP(write_input, "x").fake("like(x)");
// test ignores_strides(torch.randn(8, 6)) = 2 * x | transposed
Tensor ignores_strides(const Tensor& x) {
  Tensor y = kiln::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return y;
  doubling_k EACH(x)(static_cast<const float*>(x.raw()), y.data<float>(), x.numel());
  return y;
}
KILN_OP(ignores_strides, "x").fake("f32[*x.shape]");
// test tail(torch.randn(300)) = 2 * x | the op did not write
ELEMENTWISE(tail);

// test wrong_fake(torch.randn(6, 4)) = 2 * x | fake
Tensor wrong_fake(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::empty_like(x);
  if (x.numel() == 0) return y;
  doubling_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(wrong_fake, "x").fake("f32[x.shape[1], x.shape[0]]");
// test alias(torch.randn(6)) = x | alias
Tensor alias(const Tensor& x) { return x; }
KILN_OP(alias, "x").fake("like(x)");

// test tree(torch.randn(128)) = torch.cat([x.sum().view(1), x.new_zeros(127)]) | shared-race
ONE_BLOCK(tree, 128);
// test reuse(torch.randn(4)) = x[:, None].expand(4, 128).contiguous() | shared-race
Tensor reuse(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::empty({x.size(0), 128}, x.dtype(), x.device());
  if (x.numel() == 0) return y;
  reuse_k<<<1, 128, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(),
                                          static_cast<int>(x.size(0)));
  return y;
}
KILN_OP(reuse, "x").fake("f32[x.shape[0], 128]");
// test shift(torch.randn(128)) = torch.cat([x.new_zeros(1), x[:-1]]) | shared-race
ONE_BLOCK(shift, 128);
// test warp_shift(torch.randn(32)) = x.flip(0) | shared-race
ONE_BLOCK(warp_shift, 32);
// test chain(torch.randn(8)) = x.cumsum(0) | global-race
Tensor chain(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::zeros(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return y;
  chain_k<<<static_cast<unsigned>(x.numel()), 32, 0, kiln::stream(x)>>>(x.data<const float>(),
                                                                        y.data<float>());
  return y;
}
KILN_OP(chain, "x").fake("like(x)");
// test sum(torch.randn(1000)) = x.sum().view(1) | global-race
Tensor sum(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::zeros({1}, x.dtype(), x.device());
  if (x.numel() == 0) return y;
  sum_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(sum, "x").fake("f32[1]");
// test histogram(torch.arange(1000, dtype=torch.int32)) = torch.bincount(x & 3).int() | global-race
Tensor histogram(const Tensor& x) {
  Tensor y = kiln::zeros({4}, x.dtype(), x.device());
  if (x.numel() == 0) return y;
  histogram_k EACH(x)(x.data<const int32_t>(), y.data<int32_t>(), x.numel());
  return y;
}
KILN_OP(histogram, "x").fake("i32[4]");
// test last_block(torch.randn(8)) = x.sum().view(1) | global-race
Tensor last_block(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::zeros({1}, x.dtype(), x.device());
  if (x.numel() == 0) return y;
  Tensor parts = kiln::empty_like(x), done = kiln::zeros({1}, kiln::Dtype::i32, x.device());
  last_block_k<<<static_cast<unsigned>(x.numel()), 32, 0, kiln::stream(x)>>>(
      x.data<const float>(), parts.data<float>(), reinterpret_cast<unsigned*>(done.data<int32_t>()),
      y.data<float>());
  return y;
}
KILN_OP(last_block, "x").fake("f32[1]");

// test barrier_in_branch(torch.ones(128)) = 2.0 * (torch.arange(128) < 100) | divergent-barrier
ONE_BLOCK(barrier_in_branch, 128);
// test barrier_after_return(torch.randn(100)) = 2 * x | divergent-barrier
ELEMENTWISE(barrier_after_return);
// call other_barriers randn:f32:128 | barrier 1
// test other_barriers(torch.randn(128)) = 2 * x | deadlock
ONE_BLOCK(other_barriers, 128);
// test shuffle_after_return(torch.randn(100)) = x + torch.cat([x[1:], x[:1] * 0]) | inactive-source
ELEMENTWISE(shuffle_after_return);
// call KILN_ENGINE_STEP_LIMIT=100000 never_ends randn:f32:100 | longer than KILN_ENGINE_STEP_LIMIT
Tensor never_ends(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  never_ends_k<<<1, 32, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(), x.numel(),
                                              x.numel() / 1000);
  return y;
}
KILN_OP(never_ends, "x").fake("like(x)");
// call threads_2048 randn:f32:100 | not between 1 and 1024 threads
// test threads_2048(torch.randn(100)) = 2 * x | not between 1 and 1024 threads
Tensor threads_2048(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  doubling_k<<<1, 2048, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(threads_2048, "x").fake("like(x)");
// call empty_grid randn:f32:100 | is empty
// test empty_grid(torch.randn(100)) = 2 * x | is empty
Tensor empty_grid(const Tensor& x) {
  Tensor y = kiln::empty_like(x);
  const auto blocks = static_cast<unsigned>(x.numel() / 128);  // rounded down
  doubling_k<<<blocks, 128, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(),
                                                  x.numel());
  return y;
}
KILN_OP(empty_grid, "x").fake("like(x)");
// A correct op: tests/python/test_seeded.py gives it a wrong backward.
Tensor doubling(const Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  Tensor y = kiln::empty_like(x);
  if (x.numel() == 0) return y;
  doubling_k EACH(x)(x.data<const float>(), y.data<float>(), x.numel());
  return y;
}
KILN_OP(doubling, "x").fake("like(x)");
