// SPDX-License-Identifier: Apache-2.0
// Ops that reach their tensors through Views, `by` elements too far where a test asks for it.
#include <kiln/op.h>

// out = x moved by `by` columns, for each element that out has.
__global__ void shift_kernel(kiln::View<const float, 2> x, int64_t by, kiln::View<float, 2> out) {
  const int64_t i = kiln::global_thread();
  if (i >= out.size(0) * out.size(1)) return;
  const int64_t row = i / out.size(1), column = i % out.size(1);
  out(row, column) = x(row, column + by) * 2.0f;  // the line of `shift`
}
kiln::Tensor shift(const kiln::Tensor& x, int64_t by) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  shift_kernel<<<kiln::blocks_for(out.numel(), 64), 64, 0, kiln::stream(x)>>>(
      x.view<const float, 2>(), by, out.view<float, 2>());
  return out;
}
KILN_OP(shift, "x, by=0").fake("f32[*x.shape]");

// Writes to an argument, or to a tensor of its own.
__global__ void put_kernel(kiln::View<float, 1> out, int64_t at) { out(at + threadIdx.x) = 1.0f; }
void put_(kiln::Tensor& target, int64_t at) {
  put_kernel<<<1, 4, 0, kiln::stream(target)>>>(target.flat<float>(), at);
}
KILN_OP(put_, "target, at");
kiln::Tensor made(const kiln::Tensor& x, int64_t at) {
  kiln::Tensor out = kiln::zeros(x.sizes(), x.dtype(), x.device());
  put_kernel<<<1, 4, 0, kiln::stream(x)>>>(out.flat<float>(), at);
  return out;
}
KILN_OP(made, "x, at").fake("like(x)");

// A View of five dimensions: the sum of each row of the last, whose first element is `by` too far
// in dimension `of`.
__global__ void sums_kernel(kiln::View<const float, 5> x, int of, int64_t by,
                            kiln::View<float, 1> out) {
  const int64_t extra[5] = {of == 0 ? by : 0, of == 1 ? by : 0, of == 2 ? by : 0, of == 3 ? by : 0,
                            of == 4 ? by : 0};
  int64_t at = 0;
  for (int64_t a = 0; a < x.size(0); a++)
    for (int64_t b = 0; b < x.size(1); b++)
      for (int64_t c = 0; c < x.size(2); c++)
        for (int64_t d = 0; d < x.size(3); d++) {
          float sum = 0;
          for (int64_t e = 0; e < x.size(4); e++)
            sum += x(a + extra[0], b + extra[1], c + extra[2], d + extra[3], e + extra[4]);
          out(at++) = sum;
        }
}
kiln::Tensor sums(const kiln::Tensor& x, int64_t of, int64_t by) {
  kiln::Tensor out = kiln::empty({x.numel() / x.size(4)}, x.dtype(), x.device());
  sums_kernel<<<1, 1, 0, kiln::stream(x)>>>(x.view<const float, 5>(), static_cast<int>(of), by,
                                            out.flat<float>());
  return out;
}
KILN_OP(sums, "x, of=0, by=0");

// Views that a kernel makes itself: of a tensor, of shared memory, of working memory.
__global__ void by_hand_kernel(const float* x, float* room, int64_t n, int which, int64_t at,
                               float* out) {
  __shared__ float tile[8];
  if (threadIdx.x < 8) tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const kiln::View<const float, 1> input{x, {n}, {1}};
  const kiln::View<float, 1> shared{tile, {8}, {1}}, working{room, {16}, {1}};
  if (which == 0) out[0] = input(at);
  if (which == 1) out[0] = shared(at);
  if (which == 2) working(at) = out[0] = 3.0f;
}
kiln::Tensor by_hand(const kiln::Tensor& x, int64_t which, int64_t at) {
  kiln::Tensor out = kiln::empty({1}, x.dtype(), x.device());
  auto room = kiln::scratch<float>(16, x);
  by_hand_kernel<<<1, 8, 0, kiln::stream(x)>>>(x.data<const float>(), room.data(), x.numel(),
                                               static_cast<int>(which), at, out.data<float>());
  return out;
}
KILN_OP(by_hand, "x, which, at");
