// SPDX-License-Identifier: Apache-2.0
// Which kernels of the benchmark compute a thread at a time, with and without divergence?
#pragma once

#include <cmath>
#include <cstdint>

namespace compute {

__global__ void add(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

__global__ void n_body(const float4* bodies, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 own = bodies[i];
  float x = 0, y = 0, z = 0;
  for (int j = 0; j < n; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
    const float pull = other.w * inverse * inverse * inverse;
    x += dx * pull;
    y += dy * pull;
    z += dz * pull;
  }
  out[i] = make_float4(x, y, z, 0);
}

__device__ float normal_cdf(float d) { return 0.5f * erfcf(-d * 0.70710678f); }

__global__ void black_scholes(const float* a, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float price = 5 + a[i], strike = 50, years = 0.25f + a[i] / 256, rate = 0.02f, sigma = 0.3f;
  const float root = sqrtf(years);
  const float d1 = (logf(price / strike) + (rate + 0.5f * sigma * sigma) * years) / (sigma * root);
  const float d2 = d1 - sigma * root;
  out[i] = price * normal_cdf(d1) - strike * expf(-rate * years) * normal_cdf(d2);
}

__global__ void mandelbrot(int* out, int n, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const float cx = -2.0f + 3.0f * x / n, cy = -1.5f + 3.0f * y / n;
  float zx = 0, zy = 0;
  int i = 0;
  while (i < most && zx * zx + zy * zy < 4) {
    const float next = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = next;
    ++i;
  }
  out[y * n + x] = i;
}

__global__ void spmv(const float* values, const int* columns, const int* rows, const float* x,
                     float* out, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int k = rows[row]; k < rows[row + 1]; ++k) sum += values[k] * x[columns[k]];
  out[row] = sum;
}

__global__ void histogram(const int* index, int* bins, int n) {
  __shared__ int own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[index[i] % 256], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

__global__ void bitonic_sort(const int* from, int* out) {
  __shared__ int keys[512];
  const int t = threadIdx.x;
  keys[t] = from[blockIdx.x * 512 + t];
  keys[t + 256] = from[blockIdx.x * 512 + t + 256];
  for (int size = 2; size <= 512; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int i = 2 * t - (t & (stride - 1));
      const bool up = (i & size) == 0;
      const int low = keys[i], high = keys[i + stride];
      if ((low > high) == up) {
        keys[i] = high;
        keys[i + stride] = low;
      }
    }
  }
  __syncthreads();
  out[blockIdx.x * 512 + t] = keys[t];
  out[blockIdx.x * 512 + t + 256] = keys[t + 256];
}

__constant__ uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// One block of 64 bytes a thread.
__global__ void sha256(const uint32_t* words, uint32_t* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto turn = [](uint32_t x, int by) { return __funnelshift_r(x, x, by); };
  uint32_t w[16], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int j = 0; j < 16; ++j) w[j] = words[j * n + i];
#pragma unroll 16
  for (int j = 0; j < 64; ++j) {
    if (j >= 16) {
      const uint32_t a = w[(j + 1) % 16], b = w[(j + 14) % 16];
      w[j % 16] += (turn(a, 7) ^ turn(a, 18) ^ (a >> 3)) + w[(j + 9) % 16] +
                   (turn(b, 17) ^ turn(b, 19) ^ (b >> 10));
    }
    const uint32_t first = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[j] + w[j % 16];
    const uint32_t second = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                            ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    for (int k = 7; k > 0; --k) s[k] = s[k - 1];
    s[4] += first;
    s[0] = first + second;
  }
  for (int k = 0; k < 8; ++k) out[k * n + i] = s[k];
}

__global__ void rng(uint32_t* out, int n, int draws) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t state = 1234567u + 2654435761u * i, sum = 0;
  for (int j = 0; j < draws; ++j) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    sum += state >> 8;
  }
  out[i] = sum;
}

}  // namespace compute
