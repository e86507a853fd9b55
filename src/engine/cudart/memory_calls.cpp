// SPDX-License-Identifier: Apache-2.0
// How do cudaMalloc and similar calls run on the engine? Device memory is host memory that the
// engine keeps track of.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "engine/cudart/fork.h"
#include "engine/cudart/host_events.h"
#include "engine/cudart/runtime.h"
#include "engine/cudart/state.h"
#include "engine/cudart/streams.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{80} << 30;  // reported by cudaMemGetInfo
constexpr uint64_t kPitchAlignment = 512;

int allocate(const char* what, void** out, size_t bytes, AllocationKind kind,
             const void* stream = nullptr, bool waits = true) {
  if (!out) return fail(kInvalidValue, fmt::format("{}: the output pointer is null", what));
  *out = nullptr;
  if (bytes == 0) return kSuccess;
  *out = state().device.heap.allocate(bytes, kind);
  if (!*out)
    return fail(kMemoryAllocation, fmt::format("{}: out of memory for {} bytes", what, bytes));
  watch_allocation(what, *out, bytes, kind, stream, waits);
  return kSuccess;
}

int release(const char* what, void* at, const void* stream = nullptr, bool waits = true,
            bool of_host = false) {
  if (!at) return kSuccess;
  auto known = state().device.heap.find(reinterpret_cast<uint64_t>(at));
  if (known && (known->kind == AllocationKind::Host) != of_host) {
    watch_free(what, at, known->bytes, stream, waits, kInvalidValue);
    return fail(kInvalidValue,
                fmt::format("{}: 0x{:x} is memory of the {}", what, reinterpret_cast<uint64_t>(at),
                            of_host ? "device" : "host"));
  }
  if (known && known->begin == reinterpret_cast<uint64_t>(at)) {
    watch_free(what, at, known->bytes, stream, waits, kSuccess);
    if (known->name == kGraphMemory) return kSuccess;  // freed with its graph
    if (state().device.heap.release(at)) return kSuccess;
  }
  watch_free(what, at, 0, stream, waits, kInvalidValue);
  return fail(kInvalidValue, fmt::format("{}: 0x{:x} is not an allocation of the engine", what,
                                         reinterpret_cast<uint64_t>(at)));
}

int cuda_malloc(void** out, size_t bytes) {
  return allocate("cudaMalloc", out, bytes, AllocationKind::Device);
}
int cuda_malloc_host(void** out, size_t bytes) {
  return allocate("cudaMallocHost", out, bytes, AllocationKind::Host);
}
int cuda_host_alloc(void** out, size_t bytes, unsigned) {
  return allocate("cudaHostAlloc", out, bytes, AllocationKind::Host);
}
int cuda_malloc_managed(void** out, size_t bytes, unsigned) {
  if (bytes == 0) return fail(kInvalidValue, "cudaMallocManaged: 0 bytes");
  return allocate("cudaMallocManaged", out, bytes, AllocationKind::Managed);
}
int cuda_free(void* at) { return release("cudaFree", at); }
int cuda_free_host(void* at) { return release("cudaFreeHost", at, nullptr, true, true); }

int cuda_malloc_pitch(void** out, size_t* pitch, size_t width, size_t height) {
  if (!pitch)
    return fail(kInvalidValue, "cudaMallocPitch: the output pointer for the pitch is null");
  *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return allocate("cudaMallocPitch", out, *pitch * height, AllocationKind::Device);
}
int cuda_malloc_3d(PitchedPointer* out, Extent extent) {
  if (!out) return fail(kInvalidValue, "cudaMalloc3D: the output pointer is null");
  *out = {};
  out->width = extent.width;
  out->height = extent.height;
  out->pitch = (extent.width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return allocate("cudaMalloc3D", &out->at, out->pitch * extent.height * extent.depth,
                  AllocationKind::Device);
}

// ---- In stream order

int malloc_async(void** out, size_t bytes, void* stream) {
  if (!stream_of(stream)) return bad_stream();
  if (!is_capturing(stream))
    return allocate("cudaMallocAsync", out, bytes, AllocationKind::Device, stream, false);
  AllocationNode node{};
  node.bytes = bytes;
  AllocateWork work;
  if (int code = make_allocate_work(node, &work)) return code;
  *out = work.node.at;
  return submit(stream, std::move(work));
}
int malloc_from_pool(void** out, size_t bytes, void*, void* stream) {
  return malloc_async(out, bytes, stream);
}
int free_async(void* at, void* stream) {
  if (!stream_of(stream)) return bad_stream();
  if (is_capturing(stream)) return submit(stream, FreeWork{at});
  return release("cudaFreeAsync", at, stream, false);
}

// ---- Pools: memory is allocated and freed at once, so a pool only keeps its settings.

struct MemoryPool {
  PoolProperties properties{};
  uint64_t threshold = 0;
  int reuse[3] = {1, 1, 1};
};
MemoryPool* default_pool() {
  static auto* kept = new MemoryPool;
  return kept;
}
struct MemoryPools {
  std::mutex mutex;
  std::set<const MemoryPool*> alive;
};
MemoryPools& pools() {
  static auto* kept = new MemoryPools;
  return *kept;
}
}  // namespace

void fork_memory_pools(ForkPhase phase) { hold(pools().mutex, phase); }

namespace {

bool is_pool(const MemoryPool* pool) {
  if (pool == default_pool()) return true;
  std::lock_guard lock(pools().mutex);
  return pools().alive.count(pool);
}
int bad_pool() { return fail(kInvalidValue, "this is not a live memory pool"); }

int get_pool(MemoryPool** out, int device) {
  if (!out) return fail(kInvalidValue, "the output pointer for the pool is null");
  if (device != 0) return fail(kInvalidDevice, fmt::format("there is no device {}", device));
  *out = default_pool();
  return kSuccess;
}
int set_pool(int device, MemoryPool* pool) {
  if (device != 0) return fail(kInvalidDevice, fmt::format("there is no device {}", device));
  return is_pool(pool) ? kSuccess : bad_pool();
}
int pool_create(MemoryPool** out, const PoolProperties* properties) {
  if (!out || !properties) return fail(kInvalidValue, "cudaMemPoolCreate: a pointer is null");
  auto* pool = new MemoryPool{*properties};
  std::lock_guard lock(pools().mutex);
  pools().alive.insert(pool);
  *out = pool;
  return kSuccess;
}
int pool_destroy(MemoryPool* pool) {
  {
    std::lock_guard lock(pools().mutex);
    if (!pools().alive.erase(pool)) return bad_pool();
  }
  delete pool;
  return kSuccess;
}
// cudaMemPoolAttr: 1 to 3 are ints, the others have 64 bits; 4 is the release threshold, 5 and 7
// are the current bytes.
int pool_set_attribute(MemoryPool* pool, int attribute, const void* value) {
  if (!is_pool(pool)) return bad_pool();
  if (!value || attribute < 1 || attribute > 8)
    return fail(kInvalidValue, fmt::format("unknown pool attribute {}", attribute));
  if (attribute <= 3) std::memcpy(&pool->reuse[attribute - 1], value, 4);
  if (attribute == 4) std::memcpy(&pool->threshold, value, 8);
  return kSuccess;
}
int pool_get_attribute(MemoryPool* pool, int attribute, void* value) {
  if (!is_pool(pool)) return bad_pool();
  if (!value || attribute < 1 || attribute > 8)
    return fail(kInvalidValue, fmt::format("unknown pool attribute {}", attribute));
  uint64_t bytes = attribute == 4 ? pool->threshold : state().device.heap.bytes_in_use();
  if (attribute <= 3) {
    std::memcpy(value, &pool->reuse[attribute - 1], 4);
  } else {
    std::memcpy(value, &bytes, 8);
  }
  return kSuccess;
}
int pool_trim(MemoryPool* pool, size_t) { return is_pool(pool) ? kSuccess : bad_pool(); }
int pool_set_access(MemoryPool* pool, const void*, size_t) {
  return is_pool(pool) ? kSuccess : bad_pool();
}
int pool_get_access(int* flags, MemoryPool* pool, const MemoryLocation*) {
  if (!is_pool(pool)) return bad_pool();
  *flags = 3;  // read and write
  return kSuccess;
}

// ---- Host memory

int host_register(void* at, size_t bytes, unsigned) {
  if (!at || !bytes) return fail(kInvalidValue, "cudaHostRegister: nothing to register");
  auto known = state().device.heap.find(reinterpret_cast<uint64_t>(at));
  if (known)
    return fail(kHostMemoryAlreadyRegistered,
                "cudaHostRegister: part or all of it is already registered");
  state().device.heap.adopt(at, bytes, AllocationKind::Host, "registered");
  watch_allocation("cudaHostRegister", at, bytes, AllocationKind::Host, nullptr, true, true);
  return kSuccess;
}
int host_unregister(void* at) {
  const auto known = state().device.heap.find(reinterpret_cast<uint64_t>(at));
  watch_free("cudaHostUnregister", at, known ? known->bytes : 0, nullptr, true,
             known ? kSuccess : kHostMemoryNotRegistered, true);
  return state().device.heap.forget(at)
             ? kSuccess
             : fail(kHostMemoryNotRegistered, "cudaHostUnregister: this memory is not registered");
}
int host_get_device_pointer(void** out, void* host, unsigned) {
  if (!out || !state().device.heap.find(reinterpret_cast<uint64_t>(host))) {
    return fail(kInvalidValue,
                "cudaHostGetDevicePointer: not memory of cudaHostAlloc or cudaHostRegister");
  }
  *out = host;
  return kSuccess;
}
int host_get_flags(unsigned* flags, void* host) {
  auto known = state().device.heap.find(reinterpret_cast<uint64_t>(host));
  if (!flags || !known || known->kind != AllocationKind::Host) {
    return fail(kInvalidValue, "cudaHostGetFlags: not memory of cudaHostAlloc");
  }
  *flags = 2;  // cudaHostAllocMapped
  return kSuccess;
}

// ---- Questions

int mem_get_info(size_t* free_bytes, size_t* total) {
  uint64_t used = state().device.heap.bytes_in_use();
  if (free_bytes) *free_bytes = used > kMemoryBytes ? 0 : kMemoryBytes - used;
  if (total) *total = kMemoryBytes;
  return kSuccess;
}
int pointer_get_attributes(PointerAttributes* out, const void* at) {
  if (!out) return fail(kInvalidValue, "cudaPointerGetAttributes: the output pointer is null");
  auto allocation = state().device.heap.find(reinterpret_cast<uint64_t>(at));
  void* pointer = const_cast<void*>(at);
  if (!allocation) {
    *out = {0, -2, nullptr, pointer, {}};
    return kSuccess;
  }
  bool host = allocation->kind == AllocationKind::Host,
       managed = allocation->kind == AllocationKind::Managed;
  *out = {managed ? 3 : host ? 1 : 2, 0, pointer, host || managed ? pointer : nullptr, {}};
  return kSuccess;
}
int mem_advise(const void* at, size_t, int, MemoryLocation) {
  return at ? kSuccess : fail(kInvalidValue, "cudaMemAdvise: the pointer is null");
}
int mem_prefetch(const void* at, size_t, MemoryLocation, unsigned, void* stream) {
  if (!at) return fail(kInvalidValue, "cudaMemPrefetchAsync: the pointer is null");
  return stream_of(stream) ? kSuccess : bad_stream();
}
// cudaMemRangeAttribute: 1 read mostly, 2 preferred location, 3 accessed by, 4 last prefetch
// location.
int range_get_attribute(void* out, size_t bytes, int attribute, const void* at, size_t) {
  if (!out || !at || bytes < 4)
    return fail(kInvalidValue,
                "cudaMemRangeGetAttribute: a pointer is null, or the buffer is too small");
  if (attribute < 1 || attribute > 8)
    return fail(kInvalidValue, fmt::format("unknown memory attribute {}", attribute));
  std::memset(out, 0, bytes);
  constexpr int kNoDevice = -2;  // cudaInvalidDeviceId
  if (attribute == 3) {
    for (size_t i = 0; i + 4 <= bytes; i += 4)
      std::memcpy(static_cast<char*>(out) + i, &kNoDevice, 4);
  }
  return kSuccess;
}
int attach(void* stream, void*, size_t, unsigned) {
  return stream_of(stream) ? kSuccess : bad_stream();
}

}  // namespace

std::span<const RuntimeFunction> runtime_memory() {
  static const RuntimeFunction kFunctions[] = {
      {"cudaMalloc", entry<&cuda_malloc>()},
      {"cudaMallocAsync", entry<&malloc_async>()},
      {"cudaMallocFromPoolAsync", entry<&malloc_from_pool>()},
      {"cudaMallocHost", entry<&cuda_malloc_host>()},
      {"cudaHostAlloc", entry<&cuda_host_alloc>()},
      {"cudaMallocManaged", entry<&cuda_malloc_managed>()},
      {"cudaMallocPitch", entry<&cuda_malloc_pitch>()},
      {"cudaMalloc3D", entry<&cuda_malloc_3d>()},
      {"cudaFree", entry<&cuda_free>()},
      {"cudaFreeAsync", entry<&free_async>()},
      {"cudaFreeHost", entry<&cuda_free_host>()},
      {"cudaDeviceGetDefaultMemPool", entry<&get_pool>()},
      {"cudaDeviceGetMemPool", entry<&get_pool>()},
      {"cudaDeviceSetMemPool", entry<&set_pool>()},
      {"cudaMemPoolCreate", entry<&pool_create>()},
      {"cudaMemPoolDestroy", entry<&pool_destroy>()},
      {"cudaMemPoolSetAttribute", entry<&pool_set_attribute>()},
      {"cudaMemPoolGetAttribute", entry<&pool_get_attribute>()},
      {"cudaMemPoolTrimTo", entry<&pool_trim>()},
      {"cudaMemPoolSetAccess", entry<&pool_set_access>()},
      {"cudaMemPoolGetAccess", entry<&pool_get_access>()},
      {"cudaHostRegister", entry<&host_register>()},
      {"cudaHostUnregister", entry<&host_unregister>()},
      {"cudaHostGetDevicePointer", entry<&host_get_device_pointer>()},
      {"cudaHostGetFlags", entry<&host_get_flags>()},
      {"cudaMemGetInfo", entry<&mem_get_info>()},
      {"cudaPointerGetAttributes", entry<&pointer_get_attributes>()},
      {"cudaMemAdvise", entry<&mem_advise>()},
      {"cudaMemPrefetchAsync", behind<&mem_prefetch>()},
      {"cudaMemRangeGetAttribute", entry<&range_get_attribute>()},
      {"cudaStreamAttachMemAsync", behind<&attach>()},
  };
  return kFunctions;
}

}  // namespace kiln::engine
