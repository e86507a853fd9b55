// SPDX-License-Identifier: Apache-2.0
// Where does device_code.h come from? nvcc -arch=compute_75 -ptx device_code.cu, comments taken
// out.

// One thread for a known number of cycles; says how many passed on the SM's clock and on the global
// timer.
extern "C" __global__ void kiln_spin(unsigned iterations, unsigned long long* out) {
  unsigned long long t0, t1;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
  long long c0 = clock64();
  float x = 1.0f;
#pragma unroll 1
  for (unsigned i = 0; i < iterations; i++)
    asm volatile("fma.rn.f32 %0, %0, 0f3F7FFFFF, 0f33800000;" : "+f"(x));
  long long c1 = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
  out[0] = c1 - c0;
  out[1] = t1 - t0;
  out[2] = __float_as_uint(x);
}

// The roof of memory-bound calls: 16 bytes per thread, four times.
extern "C" __global__ void kiln_copy(const uint4* from, uint4* to, unsigned long long count) {
  unsigned long long i = (unsigned long long)blockIdx.x * 1024 + threadIdx.x;
  if (i + 768 < count) {
    uint4 a = from[i], b = from[i + 256], c = from[i + 512], d = from[i + 768];
    to[i] = a, to[i + 256] = b, to[i + 512] = c, to[i + 768] = d;
    return;
  }
  for (; i < count; i += 256) to[i] = from[i];
}

// Random bits: zeros take less power, and a GPU that takes less power is faster.
extern "C" __global__ void kiln_fill(uint4* to, unsigned long long count, unsigned seed,
                                     unsigned mask) {
  unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  unsigned v[4];
  for (int k = 0; k < 4; k++) {
    unsigned z = (unsigned)(i * 4 + k) * 0x9E3779B9u + seed;
    z = (z ^ (z >> 16)) * 0x85EBCA6Bu;
    z = (z ^ (z >> 13)) * 0xC2B2AE35u;
    v[k] = (z ^ (z >> 16)) & mask;
  }
  to[i] = make_uint4(v[0], v[1], v[2], v[3]);
}
