// SPDX-License-Identifier: Apache-2.0
// How long does the same arithmetic take as plain loops? Compiled with -O3 -march=native.
//
//   loops NAME TIMES    prints the seconds of CPU of one round
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

namespace {

constexpr int kSide = 256, kCount = 1 << 18, kMany = 1 << 24, kRow = 1024;

using Values = std::vector<float>;

void matmul(const Values& a, const Values& b, Values& out) {
  for (int row = 0; row < kSide; ++row) {
    float sums[kSide] = {};
    for (int k = 0; k < kSide; ++k) {
      const float factor = a[row * kSide + k];
      for (int column = 0; column < kSide; ++column)
        sums[column] = std::fma(factor, b[k * kSide + column], sums[column]);
    }
    std::memcpy(&out[row * kSide], sums, sizeof sums);
  }
}

void stencil(const Values& a, const Values&, Values& out) {
  for (int y = 1; y < kSide - 1; ++y) {
    for (int x = 1; x < kSide - 1; ++x) {
      const int i = y * kSide + x;
      out[i] = 0.5f * a[i] + 0.125f * (a[i - 1] + a[i + 1] + a[i - kSide] + a[i + kSide]);
    }
  }
}

void softmax(const Values& a, const Values&, Values& out) {
  for (int row = 0; row < kCount / kRow; ++row) {
    const float* from = &a[row * kRow];
    float most = -INFINITY, sum = 0;
    for (int i = 0; i < kRow; ++i) most = std::fmax(most, from[i]);
    for (int i = 0; i < kRow; ++i) sum += std::exp(from[i] - most);
    for (int i = 0; i < kRow; ++i) out[row * kRow + i] = std::exp(from[i] - most) / sum;
  }
}

void add(const Values& a, const Values& b, Values& out) {
  for (int i = 0; i < kMany; ++i) out[i] = a[i] + b[i];
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int count, char** words) {
  struct Named {
    const char* name;
    std::function<void(const Values&, const Values&, Values&)> round;
  };
  const Named all[] = {{"matmul16", matmul},
                       {"matmul32", matmul},
                       {"stencil", stencil},
                       {"softmax", softmax},
                       {"add", add}};
  for (const Named& each : all) {
    if (count < 3) std::printf("%s\n", each.name);
    if (count < 3 || std::strcmp(words[1], each.name) != 0) continue;
    const size_t values = each.name == all[4].name ? kMany : kCount;
    Values a(values), b(values), out(values);
    unsigned state = 1;
    for (size_t i = 0; i < values; ++i) {
      state = state * 1664525u + 1013904223u;
      a[i] = b[i] = static_cast<float>(state >> 24) / 16;
    }
    each.round(a, b, out);
    const int times = std::atoi(words[2]);
    const double begin = cpu_seconds();
    for (int i = 0; i < times; ++i) each.round(a, b, out);
    std::printf("%s %.6f %g\n", each.name, (cpu_seconds() - begin) / times,
                static_cast<double>(out[kCount / 2]));
  }
  return 0;
}
