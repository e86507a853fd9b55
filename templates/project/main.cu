// SPDX-License-Identifier: Apache-2.0
// The kernel without torch and without Python, to debug it:   kiln run main.cu -- 1000
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "NAME.cu"

// Stops where a call of the CUDA runtime fails, with its line.
void check(cudaError_t status, const char* call, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "main.cu:%d: %s: %s\n", line, call, cudaGetErrorString(status));
  std::exit(1);
}
#define CUDA(call) check((call), #call, __LINE__)

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1000;
  const float alpha = 0.1f;
  std::vector<float> x(n), y(n), out(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i) / 3;
    y[i] = static_cast<float>(i % 7);
  }

  float *device_x, *device_y, *device_out;
  const size_t bytes = n * sizeof(float);
  CUDA(cudaMalloc(&device_x, bytes));
  CUDA(cudaMalloc(&device_y, bytes));
  CUDA(cudaMalloc(&device_out, bytes));
  CUDA(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
  NAME_kernel<float><<<kiln::blocks_for(n, 256), 256>>>(
      {device_x, {n}, {1}}, {device_y, {n}, {1}}, alpha, {device_out, {n}, {1}});
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));

  for (int64_t i = 0; i < n; ++i) {
    const double term = static_cast<double>(alpha) * y[i], wanted = x[i] + term;
    if (std::fabs(out[i] - wanted) <= 1e-6 * (std::fabs(x[i]) + std::fabs(term))) continue;
    std::fprintf(stderr, "out[%lld]: got %g, expected %g\n", static_cast<long long>(i), out[i],
                 wanted);
    return 1;
  }
  std::printf("%lld elements, all right\n", static_cast<long long>(n));
  CUDA(cudaFree(device_x));
  CUDA(cudaFree(device_y));
  CUDA(cudaFree(device_out));
  return 0;
}
