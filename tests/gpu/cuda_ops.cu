// SPDX-License-Identifier: Apache-2.0
// Ops that use each way to the GPU once: plain and extended launches, variables, properties,
// faults.
#include <cooperative_groups.h>
#include <kiln/op.h>

namespace {

__global__ void add_one(kiln::View<const float, 1> x, kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) + 1.0f;
}

__device__ float g_offset = 0.25f;
__constant__ float c_scale[2];

__global__ void scale_and_offset(kiln::View<const float, 1> x, kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) * c_scale[1] + g_offset;
}

__global__ void reverse_block(const float* x, float* out, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[n - 1 - i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[i];
}

__global__ void cluster_rank(int* out) {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(rank);
}

__global__ void grid_sum(const int* x, int* partial, int* out) {
  partial[blockIdx.x] = x[blockIdx.x];
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++) sum += partial[i];
    *out = sum;
  }
}

__global__ void write_to(float* address) { *address = 1.0f; }

}  // namespace

kiln::Tensor plus_one(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  add_one<<<kiln::blocks_for(x.numel(), 256), 256, 0, kiln::stream(x)>>>(x.flat<const float>(),
                                                                         out.flat<float>());
  return out;
}
KILN_OP(plus_one, "x").fake("like(x)");

kiln::Tensor with_variables(const kiln::Tensor& x, double scale) {
  const float values[2] = {0.0f, static_cast<float>(scale)};
  KILN_CHECK(cudaMemcpyToSymbolAsync(c_scale, values, sizeof values, 0, cudaMemcpyHostToDevice,
                                     kiln::stream(x)) == cudaSuccess,
             "cannot set the constant");
  kiln::Tensor out = kiln::empty_like(x);
  scale_and_offset<<<kiln::blocks_for(x.numel(), 256), 256, 0, kiln::stream(x)>>>(
      x.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(with_variables, "x, scale").fake("like(x)");

kiln::Tensor reversed(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  kiln::Launch how;
  how.block = 256;
  how.shared_bytes = x.nbytes();
  how.stream = kiln::stream(x);
  kiln::launch(reverse_block, how, x.data<const float>(), out.data<float>(), x.numel());
  return out;
}
KILN_OP(reversed, "x").fake("like(x)");

kiln::Tensor cluster_ranks(const kiln::Tensor& like, int64_t blocks, int64_t cluster) {
  kiln::Tensor out = kiln::empty({blocks}, kiln::Dtype::i32, like.device());
  kiln::Launch how;
  how.grid = blocks;
  how.block = 32;
  how.cluster = cluster;
  how.stream = kiln::stream(like);
  kiln::launch(cluster_rank, how, out.data<int>());
  return out;
}
KILN_OP(cluster_ranks, "like, blocks, cluster").fake("i32[blocks]");

kiln::Tensor cooperative_sum(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty({1}, kiln::Dtype::i32, x.device());
  auto partial = kiln::scratch<int>(x.numel(), x);
  kiln::Launch how;
  how.grid = x.numel();
  how.block = 1;
  how.cooperative = true;
  how.stream = kiln::stream(x);
  kiln::launch(grid_sum, how, x.data<const int>(), partial.data(), out.data<int>());
  return out;
}
KILN_OP(cooperative_sum, "x").fake("i32[1]");

kiln::Tuple<int64_t, int64_t, int64_t, int64_t> properties(const kiln::Tensor& like) {
  cudaDeviceProp p;
  KILN_CHECK(cudaGetDeviceProperties(&p, like.device().index) == cudaSuccess, "no properties");
  return {p.multiProcessorCount, p.major * 10 + p.minor, static_cast<int64_t>(p.totalGlobalMem),
          p.l2CacheSize};
}
KILN_OP(properties, "like");

int64_t runtime_version(const kiln::Tensor&) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version;
}
KILN_OP(runtime_version, "like");

void too_many_threads(kiln::Tensor& x) {
  write_to<<<1, 2048, 0, kiln::stream(x)>>>(x.data<float>());
}
KILN_OP(too_many_threads, "x");

void too_much_shared(kiln::Tensor& x) {
  kiln::Launch how;
  how.shared_bytes = 1 << 20;
  how.stream = kiln::stream(x);
  kiln::launch(write_to, how, x.data<float>());
}
KILN_OP(too_much_shared, "x");

void wild_write(kiln::Tensor& x) {
  write_to<<<1, 1, 0, kiln::stream(x)>>>(reinterpret_cast<float*>(0x1000));
}
KILN_OP(wild_write, "x");
