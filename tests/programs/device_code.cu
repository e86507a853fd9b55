// SPDX-License-Identifier: Apache-2.0
// Does device code have what C++ promises it? Calls through pointers and tables, recursion, its own
// heap, printf, variables of every kind.
#include <string>
#include <vector>

#include "expect.h"

// ---- Calls

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Stripe : Shape {
  int length;
  __device__ explicit Stripe(int l) : length(l) {}
  __device__ int area() const override { return length; }
};

// Neighbouring lanes call different functions, on objects of the device's heap.
__global__ void areas(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  Shape* shape = i % 3 == 0 ? static_cast<Shape*>(new Square(i)) : new Stripe(i + 100);
  __syncthreads();
  out[i] = shape->area();
  delete shape;
}

using Binary = int (*)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ Binary g_table[] = {add, subtract, multiply};

__global__ void through_a_table(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = g_table[i % 3](i, 7);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
__global__ void recurse(unsigned* out) { out[threadIdx.x] = ackermann(2, threadIdx.x % 5); }

void calls_go_where_they_should() {
  constexpr int kThreads = 96;
  int* out = nullptr;
  std::vector<int> seen(kThreads);
  EXPECT_OK(cudaMalloc(&out, kThreads * sizeof(int)));
  auto check = [&](auto wanted, const char* what) {
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaMemcpy(seen.data(), out, kThreads * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kThreads; ++i) expect(seen[static_cast<size_t>(i)] == wanted(i), what, i);
  };
  areas<<<1, kThreads>>>(out);
  check([](int i) { return i % 3 == 0 ? i * i : i + 100; }, "virtual call");
  through_a_table<<<1, kThreads>>>(out);
  check([](int i) { return i % 3 == 0   ? i + 7
                           : i % 3 == 1 ? i - 7
                                        : i * 7; },
        "call through a table");
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
  recurse<<<1, kThreads>>>(reinterpret_cast<unsigned*>(out));
  check([](int i) { return 2 * (i % 5) + 3; }, "recursion");  // ackermann(2, n)
  EXPECT_OK(cudaFree(out));
}

// ---- The device's heap

__global__ void lists(int* sums, bool* missing) {
  struct Node {
    int value;
    Node* next;
  };
  Node* head = nullptr;
  for (int i = 0; i <= static_cast<int>(threadIdx.x); ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (!node) {
      *missing = true;
      return;
    }
    *node = {i, head};
    head = node;
  }
  int sum = 0;
  while (head) {
    Node* next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void device_memory_comes_and_goes() {
  constexpr int kBlocks = 4, kThreads = 40;
  int* sums = nullptr;
  bool* missing = nullptr;
  EXPECT_OK(cudaMallocManaged(&sums, kBlocks * kThreads * sizeof(int)));
  EXPECT_OK(cudaMallocManaged(&missing, sizeof(bool)));
  *missing = false;
  lists<<<kBlocks, kThreads>>>(sums, missing);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(!*missing);
  for (int i = 0; i < kBlocks * kThreads; ++i) {
    const int last = i % kThreads;
    expect(sums[i] == last * (last + 1) / 2, "sum of a list", i);
  }
  EXPECT_OK(cudaFree(sums));
  EXPECT_OK(cudaFree(missing));
}

// ---- Variables

__constant__ int c_factors[4] = {1, 2, 3, 4};
__device__ int g_offset = 5;
__managed__ int m_counter = 40;

__global__ void use_variables(int* out) {
  out[threadIdx.x] = c_factors[threadIdx.x % 4] * 10 + g_offset;
  atomicAdd(&m_counter, 1);
}

void variables_are_copied_and_found() {
  int *out = nullptr, seen[8], offset = 0;
  EXPECT_OK(cudaMalloc(&out, sizeof seen));
  auto run = [&](const int(&factors)[4], int wanted_offset) {
    use_variables<<<1, 8>>>(out);
    EXPECT_OK(cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i)
      expect(seen[i] == factors[i % 4] * 10 + wanted_offset, "variable", i);
  };
  run({1, 2, 3, 4}, 5);
  const int factors[4] = {9, 8, 7, 6}, more = 77;
  EXPECT_OK(cudaMemcpyToSymbol(c_factors, factors, sizeof factors));
  void* address = nullptr;
  size_t bytes = 0;
  EXPECT_OK(cudaGetSymbolAddress(&address, g_offset));
  EXPECT_OK(cudaGetSymbolSize(&bytes, c_factors));
  EXPECT(bytes == sizeof factors);
  EXPECT_OK(cudaMemcpy(address, &more, sizeof more, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpyFromSymbol(&offset, g_offset, sizeof offset));
  EXPECT(offset == 77);
  run(factors, 77);
  EXPECT(m_counter == 56);
  m_counter = 0;
  run(factors, 77);
  EXPECT(m_counter == 8);
  EXPECT_OK(cudaFree(out));
}

// ---- printf, clocks

__global__ void speak(const char* word) {
  if (threadIdx.x == 1)
    printf("%s: %d %5u|%-4d|%+.3f %e %lld %#x %c %%\n", word, -7, 42u, 3, 1.5, 2.25, 1ll << 40, 255,
           'k');
}
__device__ const char g_word[] = "kiln";
__global__ void speak_own() { printf("%s %3d\n", g_word, static_cast<int>(threadIdx.x)); }

// What the device prints between here and the end, with what the host prints.
template <class Body>
std::string printed_by(Body body) {
  std::fflush(stdout);
  FILE* kept = std::tmpfile();
  const int before = dup(1);
  dup2(fileno(kept), 1);
  body();
  EXPECT_OK(cudaDeviceSynchronize());
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  std::string text(4096, '\0');
  std::rewind(kept);
  text.resize(std::fread(text.data(), 1, text.size(), kept));
  std::fclose(kept);
  return text;
}

void the_device_prints() {
  char* word = nullptr;
  EXPECT_OK(cudaMallocManaged(&word, 8));
  std::strcpy(word, "word");
  const std::string text = printed_by([&] { speak<<<1, 2>>>(word); });
  EXPECT(text == "word: -7    42|3   |+1.500 2.250000e+00 1099511627776 0xff k %\n");
  const std::string own = printed_by([&] { speak_own<<<1, 3>>>(); });
  EXPECT(own == "kiln   0\nkiln   1\nkiln   2\n");
  EXPECT_OK(cudaFree(word));
}

__global__ void wait_a_little(long long* cycles, unsigned long long* nanoseconds) {
  unsigned long long before, after;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  const long long start = clock64();
  __nanosleep(1000);
  while (clock64() - start < 1000) {
  }
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  *cycles = clock64() - start;
  *nanoseconds = after - before;
}

void clocks_go_on() {
  long long* cycles = nullptr;
  unsigned long long* nanoseconds = nullptr;
  EXPECT_OK(cudaMallocManaged(&cycles, sizeof *cycles));
  EXPECT_OK(cudaMallocManaged(&nanoseconds, sizeof *nanoseconds));
  wait_a_little<<<1, 1>>>(cycles, nanoseconds);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(*cycles >= 1000);
  EXPECT(*nanoseconds < 60'000'000'000ull);
  EXPECT_OK(cudaFree(cycles));
  EXPECT_OK(cudaFree(nanoseconds));
}

int main() {
  calls_go_where_they_should();
  device_memory_comes_and_goes();
  variables_are_copied_and_found();
  the_device_prints();
  clocks_go_on();
  return finish();
}
