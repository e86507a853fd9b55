// SPDX-License-Identifier: Apache-2.0
// Are mistakes found in styles of their own: carved shared memory, lambdas, libcu++, graphs, rings
// of buffers, the device's heap? Most have a twin without the mistake (rules.md).
// options --arch 9.0
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>

namespace {

namespace cg = cooperative_groups;

template <class T>
T* made(size_t count) {
  T* data = nullptr;
  cudaMalloc(&data, sizeof(T) * count);
  cudaMemset(data, 0, sizeof(T) * count);
  return data;
}
cudaStream_t a_stream() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}

// ---- Shared memory

// The second array begins in the first one.
__global__ void carved(int* out, int count) {
  extern __shared__ unsigned char raw[];
  int* a = reinterpret_cast<int*>(raw);
  auto* b = reinterpret_cast<short*>(raw + count * sizeof(short));
  a[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #carved-early
  b[threadIdx.x] = 1;                              // expect shared-race #carved-early
  __syncthreads();
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
__global__ void carved_good(int* out, int count) {
  extern __shared__ unsigned char raw[];
  int* a = reinterpret_cast<int*>(raw);
  auto* b = reinterpret_cast<short*>(raw + count * sizeof(int));
  a[threadIdx.x] = static_cast<int>(threadIdx.x);
  b[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
__global__ void carved_odd(float* out, int bytes) {
  extern __shared__ unsigned char raw[];
  auto* c = reinterpret_cast<float*>(raw + bytes);
  c[threadIdx.x] = 1;  // expect misaligned #carved-odd
  out[threadIdx.x] = 2;
}
__global__ void carved_past(float* out, int count) {
  extern __shared__ float floats[];
  floats[count + threadIdx.x] = 1;  // expect out-of-bounds #carved-past
  __syncthreads();
  out[threadIdx.x] = 1;
}

// Two buffers in turn need a barrier in each round.
__global__ void double_buffer(const int* in, int* out, int rounds) {
  __shared__ int buffer[2][64];
  int sum = 0;
  buffer[0][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < rounds; ++i) {
    sum += buffer[i % 2][63 - threadIdx.x];                  // expect shared-race #double-buffer
    buffer[(i + 1) % 2][threadIdx.x] = in[threadIdx.x] + i;  // expect shared-race #double-buffer
  }
  out[threadIdx.x] = sum;
}
__global__ void double_buffer_good(const int* in, int* out, int rounds) {
  __shared__ int buffer[2][64];
  int sum = 0;
  buffer[0][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < rounds; ++i) {
    sum += buffer[i % 2][63 - threadIdx.x];
    buffer[(i + 1) % 2][threadIdx.x] = in[threadIdx.x] + i;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// Methods of a class.
template <class T, int kSide>
struct Tile {
  T data[kSide][kSide];
  __device__ void put(unsigned row, unsigned column, T value) {
    data[row][column] = value;  // expect shared-race #tile
  }
  __device__ T get(unsigned row, unsigned column) const {
    return data[row][column];  // expect shared-race #tile
  }
};
__global__ void transpose(const float* x, float* y) {
  __shared__ Tile<float, 16> tile;
  const unsigned at = threadIdx.y * 16 + threadIdx.x;
  tile.put(threadIdx.y, threadIdx.x, x[at]);
  y[at] = tile.get(threadIdx.x, threadIdx.y);
}

// Two halves of a warp each for itself.
__global__ void half_mask(int* out) {
  __shared__ int slots[32];
  slots[threadIdx.x] = static_cast<int>(threadIdx.x);  // expect shared-race #half-mask
  if (threadIdx.x < 16)
    __syncwarp(0xffff);
  else
    __syncwarp(0xffff0000);
  out[threadIdx.x] = slots[31 - threadIdx.x];  // expect shared-race #half-mask
}

// ---- Global memory

template <class F>
__device__ void for_each_own(int count, F f) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) f(i);
}
__global__ void lambda_past(int* data, int count) {
  for_each_own(count, [=](int i) {
    data[i + 1] = i;  // expect out-of-bounds #lambda-past
  });
}
__global__ void lambda_good(int* data, int count) {
  for_each_own(count - 1, [=](int i) { data[i + 1] = i; });
}

struct __align__(4) Odd {
  int head;
  float tail[4];
};
__global__ void odd_vector(Odd* data, float* out) {
  const float4 v = *reinterpret_cast<float4*>(data->tail);  // expect misaligned #odd-vector
  out[0] = v.x + v.y * v.z - v.w;
}
__global__ void pairs_tail(const short2* x, short2* y, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (2 * i < count) y[i] = x[i];  // expect out-of-bounds #pairs-tail
}
__global__ void pitched(float* x, size_t pitch) {
  auto* row = reinterpret_cast<float*>(reinterpret_cast<char*>(x) + pitch * (threadIdx.x + 1));
  row[0] = 1;  // expect out-of-bounds #pitched
}
__global__ void negative(int* x, int count) {
  const int i = static_cast<int>(threadIdx.x) - count;
  x[i] = 1;  // expect out-of-bounds #negative
}
__device__ int counters[4];
__global__ void counters_past(int first) {
  counters[threadIdx.x + first] = 1;  // expect out-of-bounds #counters-past
}

// Each reads its neighbours and writes its own.
__global__ void in_place(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > 0 && i < count - 1) x[i] = (x[i - 1] + x[i + 1]) / 2;  // expect global-race #in-place
}

// Sums of blocks are added plainly.
template <bool kGood>
__device__ void add_to(int* bin, int count) {
  if (kGood)
    atomicAdd(bin, count);
  else
    *bin += count;  // expect global-race #merge
}
template <bool kGood>
__global__ void merge(const int* x, int* bins) {
  __shared__ int own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[x[threadIdx.x] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) add_to<kGood>(&bins[threadIdx.x], own[threadIdx.x]);
}

// A word over bytes of others.
__global__ void flags_as_word(unsigned char* flags) {
  if (threadIdx.x == 0)
    *reinterpret_cast<int*>(flags) = 0x01010101;  // expect global-race #flags-as-word
  else
    flags[threadIdx.x] = 2;  // expect global-race #flags-as-word
}
__global__ void flags_good(unsigned char* flags) { flags[threadIdx.x] = 2; }

// ---- Flags and locks

__global__ void ref_of_block(int* count) {
  cuda::atomic_ref<int, cuda::thread_scope_block> ref(*count);
  ref.fetch_add(1, cuda::memory_order_relaxed);  // expect global-race #ref-of-block
}
__global__ void ref_good(int* count) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(*count);
  ref.fetch_add(1, cuda::memory_order_relaxed);
}

__device__ cuda::binary_semaphore<cuda::thread_scope_device> semaphore{1};
__global__ void semaphore_not_taken(int* sum) {
  if (blockIdx.x == 1) {
    *sum += 1;  // expect global-race #semaphore-not-taken
    return;
  }
  semaphore.acquire();
  *sum += 1;  // expect global-race #semaphore-not-taken
  semaphore.release();
}
__global__ void semaphore_good(int* sum) {
  semaphore.acquire();
  *sum += 1;
  semaphore.release();
}

__global__ void barrier_by_hand(int* data, int* count, int* out) {
  data[blockIdx.x] = static_cast<int>(blockIdx.x);  // expect global-race #barrier-by-hand
  atomicAdd(count, 1);
  while (atomicAdd(count, 0) < static_cast<int>(gridDim.x)) {
  }
  out[blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];  // expect global-race #barrier-by-hand
}
__global__ void barrier_by_hand_good(int* data, int* count, int* out) {
  data[blockIdx.x] = static_cast<int>(blockIdx.x);
  __threadfence();
  atomicAdd(count, 1);
  while (atomicAdd(count, 0) < static_cast<int>(gridDim.x)) {
  }
  __threadfence();
  out[blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];
}

// A lock that orders nothing.
__global__ void lock_alone(int* lock, int* sum) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *sum += 1;  // expect global-race #lock-alone
  atomicExch(lock, 0);
}
__global__ void lock_good(int* lock, int* sum) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *sum += 1;
  __threadfence();
  atomicExch(lock, 0);
}

// The reader of a version does not acquire it.
__global__ void version(int* number, int* data, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> now(*number);
  if (blockIdx.x == 0) {
    now.store(1, cuda::memory_order_relaxed);
    data[0] = 7;  // expect global-race #version
    now.store(2, cuda::memory_order_release);
  } else {
    while (now.load(cuda::memory_order_relaxed) != 2) {
    }
    out[0] = data[0];  // expect global-race #version
  }
}
__global__ void version_good(int* number, int* data, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> now(*number);
  if (blockIdx.x == 0) {
    data[0] = 7;
    now.store(2, cuda::memory_order_release);
  } else {
    while (now.load(cuda::memory_order_acquire) != 2) {
    }
    out[0] = data[0];
  }
}

// ---- The device's heap

__global__ void heap_twice() {
  __shared__ int* data;
  if (threadIdx.x == 0) data = static_cast<int*>(malloc(128));
  __syncthreads();
  data[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 2) free(data);  // expect double-free #heap-twice
}
__global__ void heap_after(int* out) {
  __shared__ int* data;
  if (threadIdx.x == 0) data = static_cast<int*>(malloc(128));
  __syncthreads();
  data[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) free(data);
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x];  // expect use-after-free #heap-after
}
__global__ void heap_good(int* out) {
  __shared__ int* data;
  if (threadIdx.x == 0) data = static_cast<int*>(malloc(128));
  __syncthreads();
  data[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) free(data);
}

// ---- Warps and barriers

// Lanes that go past the call, to what all do. Those that have ended take part in nothing, which
// CUDA allows.
__global__ void match_past(int* out) {
  unsigned with = 1;
  if (threadIdx.x < 24)
    with = __match_any_sync(~0u, threadIdx.x / 8);  // expect missing-member #match-past
  out[threadIdx.x] = __popc(with);
}
__global__ void match_of_the_rest_good(int* out) {
  if (threadIdx.x >= 24) return;
  out[threadIdx.x] = __popc(__match_any_sync(~0u, threadIdx.x / 8));
}
__global__ void reduce_in_loop(int* out, int count) {
  int i = static_cast<int>(threadIdx.x), sum = 0;
  while (i < count) {
    sum += __reduce_add_sync(~0u, i);  // expect missing-member #reduce-in-loop
    i += 32;
  }
  out[threadIdx.x] = sum;
}
__global__ void group_kept(int* out) {
  const auto group = cg::coalesced_threads();
  if (threadIdx.x < 20) {
    out[threadIdx.x] = 1;
    group.sync();  // expect missing-member #group-kept
  }
  out[32 + threadIdx.x] = 2;
}
__global__ void count_in_loop(int* out, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 64)
    out[i] = __syncthreads_count(i & 1);  // expect divergent-barrier #count-in-loop
}

// Two groups of warps share a barrier's number, and meet at it each for itself.
__global__ void one_number(int* out) {
  if (threadIdx.x < 64)
    asm volatile("bar.sync 2, 64;" ::: "memory");  // expect barrier-count #one-number
  else
    asm volatile("bar.sync 2, 96;" ::: "memory");  // expect barrier-count #one-number
  out[threadIdx.x] = 1;
}
__global__ void two_numbers_good(int* out) {
  if (threadIdx.x < 64)
    asm volatile("bar.sync 2, 64;" ::: "memory");
  else
    asm volatile("bar.sync 3, 96;" ::: "memory");
  out[threadIdx.x] = 1;
}
__global__ void one_number_good(int* out) {
  if (threadIdx.x < 64) asm volatile("bar.sync 2, 64;" ::: "memory");
  __syncthreads();
  if (threadIdx.x >= 64) asm volatile("bar.sync 2, 96;" ::: "memory");
  out[threadIdx.x] = 1;
}

// Threads end without taking their arrivals along.
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void not_dropped(int* out) {
  __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)];
  auto& barrier = *reinterpret_cast<Barrier*>(room);
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  if (threadIdx.x >= 48) return;
  barrier.arrive_and_wait();  // expect deadlock #not-dropped
  out[threadIdx.x] = 1;
}
__global__ void dropped_good(int* out) {
  __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)];
  auto& barrier = *reinterpret_cast<Barrier*>(room);
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  if (threadIdx.x >= 48) {
    barrier.arrive_and_drop();
    return;
  }
  barrier.arrive_and_wait();
  out[threadIdx.x] = 1;
}

// ---- Streams and graphs

__global__ void produce(int* x) {
  x[threadIdx.x] = 1;  // expect stream-race #event-of-another
}
__global__ void consume(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #event-of-another
}
__global__ void produce_good(int* x) { x[threadIdx.x] = 1; }
__global__ void consume_good(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }

// The event is of a stream that has nothing to do with it.
void events() {
  const cudaStream_t a = a_stream(), b = a_stream(), other = a_stream();
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  int *x = made<int>(32), *y = made<int>(32);
  cudaDeviceSynchronize();
  produce<<<1, 32, 0, a>>>(x);
  cudaEventRecord(event, other);
  cudaStreamWaitEvent(b, event, 0);
  consume<<<1, 32, 0, b>>>(x, y);
  cudaDeviceSynchronize();
  produce_good<<<1, 32, 0, a>>>(x);
  cudaEventRecord(event, a);
  cudaStreamWaitEvent(b, event, 0);
  consume_good<<<1, 32, 0, b>>>(x, y);
  cudaDeviceSynchronize();
}

// Two buffers for three streams.
__global__ void fill(int* x, int value) {
  x[threadIdx.x] = value;  // expect stream-race #ring
}
__global__ void drain(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // expect stream-race #ring
}
void ring() {
  int* buffers[2] = {made<int>(32), made<int>(32)};
  cudaDeviceSynchronize();
  for (int i = 0; i < 3; ++i) {
    const cudaStream_t stream = a_stream();
    if (i < 2) fill<<<1, 32, 0, stream>>>(buffers[i], i);
    drain<<<1, 32, 0, stream>>>(buffers[i % 2], made<int>(32));
  }
  cudaDeviceSynchronize();
}

__global__ void use(int* x) {
  x[threadIdx.x] = 3;  // expect freed-in-use #freed-by-another
}
__global__ void use_good(int* x) { x[threadIdx.x] = 3; }
void frees() {
  const cudaStream_t a = a_stream(), b = a_stream();
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  int* x = nullptr;
  cudaMallocAsync(&x, 128, a);
  use<<<1, 32, 0, a>>>(x);
  cudaFreeAsync(x, b);
  cudaDeviceSynchronize();
  cudaMallocAsync(&x, 128, a);
  use_good<<<1, 32, 0, a>>>(x);
  cudaEventRecord(event, a);
  cudaStreamWaitEvent(b, event, 0);
  cudaFreeAsync(x, b);
  cudaDeviceSynchronize();
}

void in_memory(int* out) {
  auto* floats = made<float>(256);
  carved<<<1, 64, 64 * 6>>>(out, 64);
  carved_good<<<1, 64, 64 * 6>>>(out, 64);
  carved_odd<<<1, 32, 256>>>(floats, 3);
  carved_past<<<1, 32, 32 * 4 + 64>>>(floats, 32);
  double_buffer<<<1, 64>>>(made<int>(64), out, 3);
  double_buffer_good<<<1, 64>>>(made<int>(64), out, 3);
  transpose<<<1, dim3(16, 16)>>>(made<float>(256), floats);
  half_mask<<<1, 32>>>(out);
  lambda_past<<<1, 32>>>(made<int>(64), 64);
  lambda_good<<<1, 32>>>(made<int>(64), 64);
  odd_vector<<<1, 1>>>(made<Odd>(4), floats);
  pairs_tail<<<1, 32>>>(reinterpret_cast<short2*>(made<short>(31)), made<short2>(16), 31);
  float* rows = nullptr;
  size_t pitch = 0;
  cudaMallocPitch(&rows, &pitch, 40, 8);
  pitched<<<1, 8>>>(rows, pitch);
  negative<<<1, 32>>>(made<int>(32), 8);
  counters_past<<<1, 4>>>(1);
  in_place<<<2, 64>>>(made<float>(128), 128);
  merge<false><<<2, 64>>>(made<int>(64), made<int>(16));
  merge<true><<<2, 64>>>(made<int>(64), made<int>(16));
  flags_as_word<<<1, 4>>>(made<unsigned char>(4));
  flags_good<<<1, 4>>>(made<unsigned char>(4));
  heap_twice<<<1, 32>>>();
  heap_after<<<1, 32>>>(out);
  heap_good<<<1, 32>>>(out);
}

void in_order(int* out) {
  ref_of_block<<<2, 1>>>(made<int>(1));
  ref_good<<<2, 1>>>(made<int>(1));
  semaphore_not_taken<<<3, 1>>>(made<int>(1));
  semaphore_good<<<3, 1>>>(made<int>(1));
  barrier_by_hand<<<4, 1>>>(made<int>(4), made<int>(1), out);
  barrier_by_hand_good<<<4, 1>>>(made<int>(4), made<int>(1), out);
  lock_alone<<<4, 1>>>(made<int>(1), made<int>(1));
  lock_good<<<4, 1>>>(made<int>(1), made<int>(1));
  version<<<2, 1>>>(made<int>(1), made<int>(1), out);
  version_good<<<2, 1>>>(made<int>(1), made<int>(1), out);
  match_past<<<1, 32>>>(out);
  match_of_the_rest_good<<<1, 32>>>(out);
  reduce_in_loop<<<1, 32>>>(out, 50);
  group_kept<<<1, 32>>>(out);
  count_in_loop<<<1, 64>>>(out, 100);
  two_numbers_good<<<1, 160>>>(out);
  one_number_good<<<1, 160>>>(out);
  dropped_good<<<1, 64>>>(out);
}

}  // namespace

int main() {
  int* out = made<int>(4096);
  in_memory(out);
  in_order(out);
  events();
  ring();
  frees();
  // Both stop all that follows, the first by the order of its warps.
  one_number<<<1, 160>>>(out);
  cudaDeviceSynchronize();
  cudaDeviceReset();
  not_dropped<<<1, 64>>>(made<int>(64));
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
