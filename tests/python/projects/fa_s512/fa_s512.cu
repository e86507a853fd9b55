// SPDX-License-Identifier: Apache-2.0
#include <torch/extension.h>

#include <vector>

// One warp per query row: an online softmax over tiles of keys in shared memory.
__global__ void forward_kernel(const float* q, const float* k, const float* v, float* out, int seq,
                               float scale) {
  __shared__ float keys[BLOCK_N][HEAD_DIM], values[BLOCK_N][HEAD_DIM];
  const int lane = threadIdx.x, row = blockIdx.x * BLOCK_M + threadIdx.y;
  const int64_t head = blockIdx.y * int64_t(seq) * HEAD_DIM;
  static_assert(HEAD_DIM == 32, "one lane per element of a head");
  const bool has_row = row < seq;
  const float x = has_row ? q[head + row * HEAD_DIM + lane] * scale : 0;
  float largest = -INFINITY, sum = 0, acc = 0;
  for (int begin = 0; begin < seq; begin += BLOCK_N) {
    __syncthreads();
    for (int j = threadIdx.y; j < BLOCK_N; j += BLOCK_M) {
      keys[j][lane] = begin + j < seq ? k[head + (begin + j) * HEAD_DIM + lane] : 0;
      values[j][lane] = begin + j < seq ? v[head + (begin + j) * HEAD_DIM + lane] : 0;
    }
    __syncthreads();
    for (int j = 0; j < BLOCK_N && begin + j < seq; ++j) {
      float dot = x * keys[j][lane];
      for (int offset = 16; offset; offset /= 2) dot += __shfl_xor_sync(0xffffffff, dot, offset);
      const float now = fmaxf(largest, dot), shrink = __expf(largest - now);
      const float weight = __expf(dot - now);
      acc = acc * shrink + weight * values[j][lane];
      sum = sum * shrink + weight;
      largest = now;
    }
  }
  if (has_row) out[head + row * HEAD_DIM + lane] = acc / sum;
}

torch::Tensor forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, double scale) {
  TORCH_CHECK(q.is_cuda() && q.is_contiguous() && k.is_contiguous() && v.is_contiguous(),
              "q, k and v must be contiguous CUDA tensors");
  TORCH_CHECK(q.size(3) == HEAD_DIM, "compiled for a head of ", HEAD_DIM, ", got ", q.size(3));
  auto out = torch::empty_like(q);
  const int seq = q.size(2);
  const dim3 grid((seq + BLOCK_M - 1) / BLOCK_M, q.size(0) * q.size(1)), block(32, BLOCK_M);
  forward_kernel<<<grid, block>>>(q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(),
                                  out.data_ptr<float>(), seq, static_cast<float>(scale));
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
