// SPDX-License-Identifier: Apache-2.0
// How do the programs of this folder launch their kernels? Each kernel once, by name, with inputs
// that are the same everywhere.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

template <class T>
T* device_array(size_t count, const std::vector<T>& values = {}) {
  T* at = nullptr;
  check(cudaMalloc(&at, count * sizeof(T)), "cudaMalloc");
  check(cudaMemset(at, 0, count * sizeof(T)), "cudaMemset");
  if (!values.empty())
    check(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  return at;
}

// Numbers that look random and are the same everywhere.
inline std::vector<int> scattered(size_t count, uint32_t below) {
  std::vector<int> out(count);
  uint64_t state = 12345;
  for (int& one : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    one = static_cast<int>((state >> 33) % below);
  }
  return out;
}

struct Launches {
  std::vector<std::pair<std::string, std::function<void()>>> all;
  void add(const char* name, std::function<void()> launch) {
    all.emplace_back(name, std::move(launch));
  }
  // All, or those named.
  int run(int count, char** words) const {
    for (const auto& [name, launch] : all) {
      bool wanted = count < 2;
      for (int i = 1; i < count; ++i) wanted |= name == words[i];
      if (!wanted) continue;
      launch();
      check(cudaGetLastError(), name.c_str());
      check(cudaDeviceSynchronize(), name.c_str());
    }
    return 0;
  }
};
