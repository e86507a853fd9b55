// SPDX-License-Identifier: Apache-2.0
// Which work on several streams must `race` find unordered? Each mistake has a twin without it.
// `expect RULE #NAME` stands in the lines of the kernels; what the host does has no line, and is
// counted: `expect-host RULE COUNT` (rules.md).
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void write_first(int* x) {
  x[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect stream-race #two-kernels
}
__global__ void read_second(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #two-kernels
}

__global__ void write_for_event(int* x) {
  x[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect stream-race #event-not-waited
}
__global__ void read_for_event(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #event-not-waited
}

__global__ void write_late(int* x) {
  x[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect stream-race #event-too-early
}
__global__ void read_early(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #event-too-early
}

// Two graphs of one node each.
__global__ void write_in_graph(int* x) {
  x[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect stream-race #two-graphs
}
__global__ void read_in_graph(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #two-graphs
}

// Of the host: a copy, a fill and a free beside a kernel on another stream.
__global__ void reads_beside_copy(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #beside-copy
}
__global__ void reads_beside_fill(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #beside-fill
}
__global__ void reads_beside_free(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect freed-in-use #beside-free
}
__global__ void writes_beside_download(int* x) {
  x[threadIdx.x] = 3;  // expect stream-race #beside-download
}

__global__ void write_good(int* x) { x[threadIdx.x] = static_cast<int>(threadIdx.x); }
__global__ void read_good(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }

int* made() {
  int* out = nullptr;
  cudaMalloc(&out, kBytes);
  cudaMemset(out, 0, kBytes);
  cudaDeviceSynchronize();
  return out;
}

struct Streams {
  Streams() {
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~Streams() {
    cudaDeviceSynchronize();
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaEventDestroy(event);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t a{}, b{};
  cudaEvent_t event{};
};

template <class Launch>
cudaGraphExec_t captured(cudaStream_t stream, Launch launch) {
  cudaGraph_t graph{};
  cudaGraphExec_t out{};
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  launch();
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&out, graph, 0);
  return out;
}

void mistakes() {
  int *x = made(), *y = made();
  int* host = nullptr;
  cudaMallocHost(&host, kBytes);
  {
    Streams s;
    write_first<<<1, kCount, 0, s.a>>>(x);
    read_second<<<1, kCount, 0, s.b>>>(x, y);
  }
  {
    Streams s;
    write_for_event<<<1, kCount, 0, s.a>>>(x);
    cudaEventRecord(s.event, s.a);
    read_for_event<<<1, kCount, 0, s.b>>>(x, y);
  }
  {
    Streams s;
    cudaEventRecord(s.event, s.a);
    write_late<<<1, kCount, 0, s.a>>>(x);
    cudaStreamWaitEvent(s.b, s.event);
    read_early<<<1, kCount, 0, s.b>>>(x, y);
  }
  {
    Streams s;
    cudaMemcpyAsync(x, host, kBytes, cudaMemcpyHostToDevice, s.a);
    reads_beside_copy<<<1, kCount, 0, s.b>>>(x, y);
  }
  {
    Streams s;
    cudaMemsetAsync(x, 1, kBytes, s.a);
    reads_beside_fill<<<1, kCount, 0, s.b>>>(x, y);
  }
  {
    Streams s;
    writes_beside_download<<<1, kCount, 0, s.a>>>(x);
    cudaMemcpyAsync(host, x, kBytes, cudaMemcpyDeviceToHost, s.b);
  }
  {
    Streams s;
    int* pooled = nullptr;
    cudaMallocAsync(&pooled, kBytes, s.a);
    cudaMemsetAsync(pooled, 0, kBytes, s.a);
    cudaStreamSynchronize(s.a);
    reads_beside_free<<<1, kCount, 0, s.b>>>(pooled, y);
    cudaFreeAsync(pooled, s.a);
  }
  {
    Streams s;
    const auto first = captured(s.a, [&] { write_in_graph<<<1, kCount, 0, s.a>>>(x); });
    const auto second = captured(s.a, [&] { read_in_graph<<<1, kCount, 0, s.a>>>(x, y); });
    cudaGraphLaunch(first, s.a);
    cudaGraphLaunch(second, s.b);
  }
}

void repaired() {
  int *x = made(), *y = made();
  int* host = nullptr;
  cudaMallocHost(&host, kBytes);
  {  // one stream
    Streams s;
    write_good<<<1, kCount, 0, s.a>>>(x);
    read_good<<<1, kCount, 0, s.a>>>(x, y);
  }
  {  // an event
    Streams s;
    write_good<<<1, kCount, 0, s.a>>>(x);
    cudaEventRecord(s.event, s.a);
    cudaStreamWaitEvent(s.b, s.event);
    read_good<<<1, kCount, 0, s.b>>>(x, y);
  }
  {  // graphs in one stream, and with an event
    Streams s;
    const auto first = captured(s.a, [&] { write_good<<<1, kCount, 0, s.a>>>(x); });
    const auto second = captured(s.a, [&] { read_good<<<1, kCount, 0, s.a>>>(x, y); });
    for (int i = 0; i < 2; ++i) {
      cudaGraphLaunch(first, s.a);
      cudaGraphLaunch(second, s.a);
    }
    cudaEventRecord(s.event, s.a);
    cudaStreamWaitEvent(s.b, s.event);
    cudaGraphLaunch(second, s.b);
  }
  {  // the host waits
    Streams s;
    cudaMemcpyAsync(x, host, kBytes, cudaMemcpyHostToDevice, s.a);
    cudaStreamSynchronize(s.a);
    read_good<<<1, kCount, 0, s.b>>>(x, y);
  }
  {  // the default stream waits for streams that are not non-blocking, and they for it
    cudaStream_t blocking{};
    cudaStreamCreate(&blocking);
    write_good<<<1, kCount, 0, blocking>>>(x);
    read_good<<<1, kCount>>>(x, y);
    write_good<<<1, kCount, 0, blocking>>>(x);
    cudaDeviceSynchronize();
    cudaStreamDestroy(blocking);
  }
  {  // freed in the stream that used it
    Streams s;
    int* pooled = nullptr;
    cudaMallocAsync(&pooled, kBytes, s.a);
    cudaMemsetAsync(pooled, 0, kBytes, s.a);
    read_good<<<1, kCount, 0, s.a>>>(pooled, y);
    cudaFreeAsync(pooled, s.a);
  }
  {  // both only read
    Streams s;
    read_good<<<1, kCount, 0, s.a>>>(x, y);
    int* z = made();
    read_good<<<1, kCount, 0, s.b>>>(x, z);
  }
}

}  // namespace

int main() {
  mistakes();
  repaired();
  const cudaError_t code = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(code));
  return 0;
}
