// SPDX-License-Identifier: Apache-2.0
// Which kernels are the engine's instructions counted on? Ordinary ones, each with another pattern
// of memory: neighbours, tiles in shared memory, a gather, atomics, reductions, a scan, sparse
// rows.
//
//   engine_kernels NAME TIMES    launches the kernel so often; prints a checksum
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kCount = 1 << 18;  // elements of a vector
constexpr int kSize = 128;       // rows of a matrix
constexpr int kBins = 256;
constexpr int kPerRow = 12;  // elements of a sparse row

__global__ void nothing() {}

__global__ void add(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

__global__ void gather(const float* a, const int* index, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[index[i]];
}

__global__ void histogram(const int* index, int* bins, int n) {
  __shared__ int own[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[index[i] % kBins], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

__global__ void reduce(const float* a, float* out, int n) {
  __shared__ float sums[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += a[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// Of each block for itself.
__global__ void scan(const float* a, float* out) {
  __shared__ float rows[2][256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  rows[0][t] = a[i];
  __syncthreads();
  int from = 0;
  for (int step = 1; step < 256; step *= 2) {
    rows[1 - from][t] = rows[from][t] + (t >= step ? rows[from][t - step] : 0.0f);
    from = 1 - from;
    __syncthreads();
  }
  out[i] = rows[from][t];
}

__global__ void spmv(const float* values, const int* columns, const int* rows, const float* x,
                     float* out, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int k = rows[row]; k < rows[row + 1]; ++k) sum += values[k] * x[columns[k]];
  out[row] = sum;
}

template <int kTile>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

template <class T>
T* on_device(const std::vector<T>& from) {
  T* to = nullptr;
  cudaMalloc(&to, from.size() * sizeof(T));
  cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  return to;
}

struct Data {
  std::vector<float> a, result;
  std::vector<int> index, columns, rows;
  float *da, *db, *out;
  int *dindex, *dcolumns, *drows, *bins;

  Data() : a(kCount), result(kCount), index(kCount), columns(kCount), rows(kCount / kPerRow + 1) {
    uint32_t state = 1;
    for (int i = 0; i < kCount; ++i) {
      state = state * 1664525u + 1013904223u;
      a[i] = static_cast<float>(state >> 24);
      index[i] = static_cast<int>(state % kCount);
      columns[i] = static_cast<int>((state >> 8) % (kCount / kPerRow));
    }
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int>(i) * kPerRow;
    da = on_device(a);
    db = on_device(a);
    out = on_device(result);
    dindex = on_device(index);
    dcolumns = on_device(columns);
    drows = on_device(rows);
    bins = on_device(std::vector<int>(kBins));
  }
};

bool launch(const char* name, const Data& d) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  const dim3 tiles16(kSize / 16, kSize / 16), tiles32(kSize / 32, kSize / 32);
  if (is("nothing"))
    nothing<<<1, 32>>>();
  else if (is("add"))
    add<<<kCount / 256, 256>>>(d.da, d.db, d.out, kCount);
  else if (is("gather"))
    gather<<<kCount / 256, 256>>>(d.da, d.dindex, d.out, kCount);
  else if (is("histogram"))
    histogram<<<32, 256>>>(d.dindex, d.bins, kCount);
  else if (is("reduce"))
    reduce<<<32, 256>>>(d.da, d.out, kCount);
  else if (is("scan"))
    scan<<<kCount / 1024, 256>>>(d.da, d.out);
  else if (is("spmv"))
    spmv<<<kCount / kPerRow / 128, 128>>>(d.da, d.dcolumns, d.drows, d.db, d.out,
                                          kCount / kPerRow / 128 * 128);
  else if (is("matmul16"))
    matmul<16><<<tiles16, dim3(16, 16)>>>(d.da, d.db, d.out, kSize);
  else if (is("matmul32"))
    matmul<32><<<tiles32, dim3(32, 32)>>>(d.da, d.db, d.out, kSize);
  else
    return false;
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  Data data;
  for (int i = 0; i < std::atoi(words[2]); ++i) {
    if (!launch(words[1], data)) return 2;
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpy(data.result.data(), data.out, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float each : data.result) sum += each;
  std::printf("%s %.9g\n", words[1], sum);
  return 0;
}
