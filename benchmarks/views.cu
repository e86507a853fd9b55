// SPDX-License-Identifier: Apache-2.0
// What do index checks of kiln::View cost? Kernels of the usual shapes, all of whose accesses go
// through Views: benchmarks/view_checks.py compiles them with and without checks and times them.
#include <kiln/op.h>

using kiln::Tensor;
using kiln::View;

__global__ void add_kernel(View<const float, 1> a, View<const float, 1> b, View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = a(i) + b(i);
}
static Tensor view_add(const Tensor& a, const Tensor& b) {
  Tensor out = kiln::empty_like(a);
  add_kernel<<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(a)>>>(
      a.flat<const float>(), b.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(view_add, "a, b").fake("like(a)");

// Four elements of a thread, unrolled.
__global__ void square_kernel(View<const float, 1> x, View<float, 1> out) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x * 4 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int64_t i = first + k * blockDim.x;
    if (i < out.size(0)) out(i) = x(i) * x(i);
  }
}
static Tensor view_square(const Tensor& x) {
  Tensor out = kiln::empty_like(x);
  square_kernel<<<kiln::blocks_for(out.numel(), 1024), 256, 0, kiln::stream(x)>>>(
      x.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(view_square, "x").fake("like(x)");

// A thread for each element, with a division for its row.
__global__ void scale_kernel(View<const float, 2> x, float by, View<float, 2> out) {
  const int64_t i = kiln::global_thread();
  if (i >= out.size(0) * out.size(1)) return;
  const int64_t row = i / out.size(1), column = i % out.size(1);
  out(row, column) = x(row, column) * by;
}
static Tensor view_scale(const Tensor& x, double by) {
  Tensor out = kiln::empty_like(x);
  scale_kernel<<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(x)>>>(
      x.view<const float, 2>(), static_cast<float>(by), out.view<float, 2>());
  return out;
}
KILN_OP(view_scale, "x, by").fake("like(x)");

// A thread for each row: a loop that the compiler unrolls.
__global__ void row_sum_kernel(View<const float, 2> x, View<float, 1> out) {
  const int64_t row = kiln::global_thread();
  if (row >= x.size(0)) return;
  float sum = 0;
  for (int64_t column = 0; column < x.size(1); column++) sum += x(row, column);
  out(row) = sum;
}
static Tensor view_row_sum(const Tensor& x) {
  Tensor out = kiln::empty({x.size(0)}, x.dtype(), x.device());
  row_sum_kernel<<<kiln::blocks_for(x.size(0), 64), 64, 0, kiln::stream(x)>>>(
      x.view<const float, 2>(), out.flat<float>());
  return out;
}
KILN_OP(view_row_sum, "x").fake("f32[x.shape[0]]");

__device__ float sum_of_block(float value, float (&parts)[32]) {
  for (int k = 16; k > 0; k /= 2) value += __shfl_xor_sync(~0u, value, k);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; i++) sum += parts[i];
  __syncthreads();
  return sum;
}

__global__ void layer_norm_kernel(View<const float, 2> x, View<const float, 1> gain,
                                  View<const float, 1> bias, View<float, 2> out) {
  __shared__ float parts[32];
  const int row = static_cast<int>(blockIdx.x), columns = static_cast<int>(x.size(1));
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  float sum = 0, squares = 0;
  for (int c = first; c < columns; c += step) sum += x(row, c);
  const float mean = sum_of_block(sum, parts) / columns;
  for (int c = first; c < columns; c += step) squares += (x(row, c) - mean) * (x(row, c) - mean);
  const float scale = rsqrtf(sum_of_block(squares, parts) / columns + 1e-5f);
  for (int c = first; c < columns; c += step)
    out(row, c) = (x(row, c) - mean) * scale * gain(c) + bias(c);
}
static Tensor view_layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias) {
  Tensor out = kiln::empty_like(x);
  layer_norm_kernel<<<static_cast<unsigned>(x.size(0)), 256, 0, kiln::stream(x)>>>(
      x.view<const float, 2>(), gain.flat<const float>(), bias.flat<const float>(),
      out.view<float, 2>());
  return out;
}
KILN_OP(view_layer_norm, "x, gain, bias").fake("like(x)");

constexpr int kTile = 32;

__global__ void transpose_kernel(View<const float, 2> x, View<float, 2> out) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile,
                column = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int k = threadIdx.y; k < kTile; k += blockDim.y)
    if (row + k < x.size(0) && column + threadIdx.x < x.size(1))
      tile[k][threadIdx.x] = x(row + k, column + threadIdx.x);
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += blockDim.y)
    if (column + k < x.size(1) && row + threadIdx.x < x.size(0))
      out(column + k, row + threadIdx.x) = tile[threadIdx.x][k];
}
static Tensor view_transpose(const Tensor& x) {
  Tensor out = kiln::empty({x.size(1), x.size(0)}, x.dtype(), x.device());
  const dim3 grid(kiln::blocks_for(x.size(1), kTile), kiln::blocks_for(x.size(0), kTile));
  transpose_kernel<<<grid, dim3(kTile, 8), 0, kiln::stream(x)>>>(x.view<const float, 2>(),
                                                                 out.view<float, 2>());
  return out;
}
KILN_OP(view_transpose, "x").fake("f32[x.shape[1], x.shape[0]]");

constexpr int kSide = 16;

__global__ void matmul_kernel(View<const float, 2> a, View<const float, 2> b, View<float, 2> out) {
  __shared__ float left[kSide][kSide], right[kSide][kSide];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kSide + y,
            column = static_cast<int>(blockIdx.x) * kSide + x;
  float sum = 0;
  for (int k = 0; k < a.size(1); k += kSide) {
    left[y][x] = row < a.size(0) && k + x < a.size(1) ? a(row, k + x) : 0;
    right[y][x] = k + y < b.size(0) && column < b.size(1) ? b(k + y, column) : 0;
    __syncthreads();
    for (int i = 0; i < kSide; i++) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  if (row < out.size(0) && column < out.size(1)) out(row, column) = sum;
}
static Tensor view_matmul(const Tensor& a, const Tensor& b) {
  Tensor out = kiln::empty({a.size(0), b.size(1)}, a.dtype(), a.device());
  const dim3 grid(kiln::blocks_for(out.size(1), kSide), kiln::blocks_for(out.size(0), kSide));
  matmul_kernel<<<grid, dim3(kSide, kSide), 0, kiln::stream(a)>>>(
      a.view<const float, 2>(), b.view<const float, 2>(), out.view<float, 2>());
  return out;
}
KILN_OP(view_matmul, "a, b").fake("f32[a.shape[0], b.shape[1]]");

// Seven neighbours in three dimensions; the rim stays 0.
__global__ void stencil_kernel(View<const float, 3> x, View<float, 3> out) {
  const int64_t i = blockIdx.z, j = blockIdx.y, k = kiln::global_thread();
  if (k >= x.size(2)) return;
  const bool inside =
      i > 0 && j > 0 && k > 0 && i + 1 < x.size(0) && j + 1 < x.size(1) && k + 1 < x.size(2);
  out(i, j, k) = !inside ? 0
                         : 6 * x(i, j, k) - x(i - 1, j, k) - x(i + 1, j, k) - x(i, j - 1, k) -
                               x(i, j + 1, k) - x(i, j, k - 1) - x(i, j, k + 1);
}
static Tensor view_stencil(const Tensor& x) {
  Tensor out = kiln::empty_like(x);
  const dim3 grid(kiln::blocks_for(x.size(2), 128), static_cast<unsigned>(x.size(1)),
                  static_cast<unsigned>(x.size(0)));
  stencil_kernel<<<grid, 128, 0, kiln::stream(x)>>>(x.view<const float, 3>(), out.view<float, 3>());
  return out;
}
KILN_OP(view_stencil, "x").fake("like(x)");

// Rows by number: an index that comes from memory.
__global__ void gather_kernel(View<const float, 2> table, View<const int64_t, 1> rows,
                              View<float, 2> out) {
  const int64_t i = blockIdx.x;
  for (int c = static_cast<int>(threadIdx.x); c < out.size(1); c += static_cast<int>(blockDim.x))
    out(i, c) = table(rows(i), c);
}
static Tensor view_gather(const Tensor& table, const Tensor& rows) {
  Tensor out = kiln::empty({rows.numel(), table.size(1)}, table.dtype(), table.device());
  gather_kernel<<<static_cast<unsigned>(rows.numel()), 128, 0, kiln::stream(table)>>>(
      table.view<const float, 2>(), rows.flat<const int64_t>(), out.view<float, 2>());
  return out;
}
KILN_OP(view_gather, "table, rows").fake("f32[rows.numel, table.shape[1]]");

__global__ void histogram_kernel(View<const int64_t, 1> x, View<int32_t, 1> counts) {
  for (int64_t i = kiln::global_thread(); i < x.size(0); i += kiln::grid_threads())
    atomicAdd(&counts(x(i)), 1);
}
static Tensor view_histogram(const Tensor& x, int64_t bins) {
  Tensor counts = kiln::zeros({bins}, kiln::Dtype::i32, x.device());
  histogram_kernel<<<1024, 256, 0, kiln::stream(x)>>>(x.flat<const int64_t>(),
                                                      counts.flat<int32_t>());
  return counts;
}
KILN_OP(view_histogram, "x, bins").fake("i32[bins]");
