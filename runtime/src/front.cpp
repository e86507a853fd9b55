// SPDX-License-Identifier: Apache-2.0
// Where does a launch go, and a call of the CUDA runtime? nvcc leaves the runtime's names open in
// an object; this file and cudart_trampoline.S define them, hidden, and choose a back end for each
// call: the real libcudart, or the engine.
//
// The kernel handles that nvcc's stubs cache are ours (Function in images.h), so both back ends can
// serve one library. Registration with a back end waits for the first use: nothing touches the
// driver while a library loads.
#include "front.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <new>

#include "dynamic.h"
#include "front_entry.h"
#include "gpu_libraries.h"
#include "images.h"

namespace kiln::detail {
namespace {

constexpr int kSuccess = 0;
constexpr int kErrorInvalidDeviceFunction = 98;
constexpr int kErrorNoDevice = 100;
constexpr int kErrorNotSupported = 801;
constexpr int kPlainSharedBytes = 48 << 10;  // beyond, a launch takes an attribute of the kernel

Backend current_backend() {
  const Call* call = current_call();
  return call ? call->backend : default_backend();
}

// ---- Faults

// In an op the fault is raised when the op returns. A program has nobody who reads the text: it
// goes to the terminal, and the code to the program.
void note_fault(const char* text) {
  if (Call* call = current_call()) {
    if (!call->failed) snprintf(call->fault, sizeof call->fault, "%s", text);
    call->failed = true;
  } else {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char last[256];  // a kernel launched in a loop says no more the second time
    pthread_mutex_lock(&mutex);
    const bool said = strncmp(last, text, sizeof last - 1) == 0;
    if (!said) snprintf(last, sizeof last, "%s", text);
    pthread_mutex_unlock(&mutex);
    if (!said) fprintf(stderr, "%s\n", text);
  }
}

// Why no back end can serve a program: it is the same for each of its calls.
void say_once(const std::exception& e) {
  static bool said = false;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) fprintf(stderr, "%s\n", e.what());
}

// ---- Launches

struct LaunchDim {
  unsigned x, y, z;
};
static_assert(sizeof(LaunchDim) == 12, "passed as dim3 is");

int launch_real(const void* host, LaunchDim grid, LaunchDim block, void** arguments, size_t shared,
                void* stream, bool per_thread) {
  using Function = int (*)(const void*, LaunchDim, LaunchDim, void**, size_t, void*);
  static const Function plain = reinterpret_cast<Function>(real_function("cudaLaunchKernel"));
  if (!per_thread) return plain(host, grid, block, arguments, shared, stream);
  return reinterpret_cast<Function>(real_function("cudaLaunchKernel_ptsz"))(
      host, grid, block, arguments, shared, stream);
}

// The launch of nvcc's own stub: libcudart's handle is asked for once, which saves it the search by
// the host's address.
int launch_real_stub(Function* f, LaunchDim grid, LaunchDim block, void** arguments, size_t shared,
                     void* stream, bool per_thread) {
  using Launcher = int (*)(void*, LaunchDim, LaunchDim, void**, size_t, void*);
  using Finder = int (*)(void**, const void*);
  static const Launcher plain = reinterpret_cast<Launcher>(real_symbol("__cudaLaunchKernel"));
  static const Launcher in_thread =
      reinterpret_cast<Launcher>(real_symbol("__cudaLaunchKernel_ptsz"));
  const Launcher launcher = per_thread ? in_thread : plain;
  void* kernel = __atomic_load_n(&f->real_kernel, __ATOMIC_ACQUIRE);
  if (!kernel && launcher) {
    static const Finder find = reinterpret_cast<Finder>(real_symbol("__cudaGetKernel"));
    if (find && find(&kernel, f->host) == kSuccess)
      __atomic_store_n(&f->real_kernel, kernel, __ATOMIC_RELEASE);
  }
  if (!kernel || !launcher)
    return launch_real(f->host, grid, block, arguments, shared, stream, per_thread);
  return launcher(kernel, grid, block, arguments, shared, stream);
}

// The bytes from the first to the last element that the strides reach.
KilnRegion region_of(const Rep* rep) {
  if (rep->region)
    return {rep->region, rep->region_bytes, *rep->name ? rep->name : "a tensor made by the op",
            rep->writable};
  int64_t span = rep->numel ? 1 : 0;
  for (int d = 0; d < rep->ndim && span; d++) span += (rep->sizes[d] - 1) * rep->strides[d];
  return {rep->data, static_cast<uint64_t>(span * element_bytes(rep->dtype)),
          *rep->name ? rep->name : "a tensor made by the op", rep->writable};
}

// CPU tensors are device memory to copies and fills too.
void tell_of_ops() {
  static bool told = false;
  if (__atomic_load_n(&told, __ATOMIC_ACQUIRE)) return;
  const KilnEngine* engine = find_engine(nullptr);
  if (engine && engine->struct_bytes > offsetof(KilnEngine, serve_ops)) engine->serve_ops();
  __atomic_store_n(&told, true, __ATOMIC_RELEASE);  // after it: another thread may copy at once
}

int launch_engine(KilnEngineLaunch& launch) {
  Call* call = current_call();
  if (call) tell_of_ops();
  if (call && call->failed)
    return kSuccess;  // as after a fault on a GPU: nothing more runs, the first fault is reported
  uint32_t count = 0;
  for (const Rep* rep = call ? call->first : nullptr; rep; rep = rep->next) count++;
  KilnRegion few[16];
  auto* regions = count <= 16 ? few : static_cast<KilnRegion*>(malloc(count * sizeof(KilnRegion)));
  if (!regions) throw std::bad_alloc();
  uint32_t i = 0;
  for (const Rep* rep = call ? call->first : nullptr; rep; rep = rep->next)
    regions[i++] = region_of(rep);
  launch.struct_bytes = sizeof launch;
  launch.regions = regions;
  launch.region_count = count;
  launch.check_memory = 1;
  if (!call) launch.flags |= KILN_LAUNCH_DEFERRED;
  const KilnEngine* engine = find_engine(nullptr);
  const int code = engine->launch(&launch);
  if (regions != few) free(regions);
  if (code) note_fault(engine->last_message());
  return code;
}

// What no GPU runs. CUDA's answer is "invalid configuration" before 13.0, "invalid argument" since.
bool is_wrong_shape(LaunchDim grid, LaunchDim block) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x > 1024 ||
         block.y > 1024 || block.z > 64 || threads > 1024 || grid.x > 0x7fffffffu ||
         grid.y > 65535 || grid.z > 65535;
}

void note_launch_error(const void* host, LaunchDim grid, LaunchDim block, size_t shared, int code) {
  Text text;
  text.add("error: cannot launch ").add(kernel_name(host));
  text.addf("<<<(%u, %u, %u), (%u, %u, %u), %zu>>>\n  why: ", grid.x, grid.y, grid.z, block.x,
            block.y, block.z, shared);
  add_cuda_error(text, code);
  if (is_wrong_shape(grid, block))
    text.add(
        "\n  fix: use at most 1024 threads per block, 64 of them in z, and 2^31 - 1 x 65535 x "
        "65535 "
        "blocks, none of them 0");
  if (code == 209)
    text.add(
        "\n  fix: this library has neither SASS nor PTX for this GPU: kiln build --arch native");
  if (shared > kPlainSharedBytes)
    text.add("\n  fix: kiln::launch raises the limit of shared memory; <<<>>> does not");
  if (current_call()) note_fault(text.c_str());
}

// The engine's handle, asked for once, which saves it the search by the host's address.
void* engine_handle(Function* f) {
  void* handle = __atomic_load_n(&f->engine_function, __ATOMIC_ACQUIRE);
  if (handle) return handle;
  const KilnEngine* engine = find_engine(nullptr);
  if (engine->struct_bytes <= offsetof(KilnEngine, function_handle)) return nullptr;
  if (!engine->function_handle) return nullptr;
  handle = engine->function_handle(f->host);
  __atomic_store_n(&f->engine_function, handle, __ATOMIC_RELEASE);
  return handle;
}

// `stub` is the record of the kernel when its stub launches it; else null.
int launch_plain(const void* host, LaunchDim grid, LaunchDim block, void** arguments, size_t shared,
                 void* stream, bool per_thread, Function* stub = nullptr) {
  const Backend backend = current_backend();
  make_ready(backend);
  if (backend == Backend::real) {
    const int code =
        stub ? launch_real_stub(stub, grid, block, arguments, shared, stream, per_thread)
             : launch_real(host, grid, block, arguments, shared, stream, per_thread);
    if (code) note_launch_error(host, grid, block, shared, code);
    return code;
  }
  KilnEngineLaunch launch = {};
  launch.host_function = host;
  launch.function = stub ? engine_handle(stub) : nullptr;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  launch.arguments = arguments;
  launch.dynamic_shared_bytes = shared;
  launch.stream = stream;
  return launch_engine(launch);
}

// As driver_types.h lays them out; the same in CUDA 12 and 13.
struct LaunchAttribute {
  int id;
  int pad;
  union {
    char whole[64];
    int flag;
    LaunchDim cluster;
  };
};
struct LaunchConfig {
  LaunchDim grid;
  LaunchDim block;
  size_t shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);
constexpr int kAttributeCooperative = 2, kAttributeCluster = 4, kAttributeProgrammatic = 6;

int launch_extended(const LaunchConfig* config, const void* host, void** arguments,
                    bool per_thread) {
  const Backend backend = current_backend();
  make_ready(backend);
  if (backend == Backend::real) {
    using Function = int (*)(const LaunchConfig*, const void*, void**);
    return reinterpret_cast<Function>(real_function(
        per_thread ? "cudaLaunchKernelExC_ptsz" : "cudaLaunchKernelExC"))(config, host, arguments);
  }
  KilnEngineLaunch launch = {};
  launch.host_function = host;
  launch.grid = {config->grid.x, config->grid.y, config->grid.z};
  launch.block = {config->block.x, config->block.y, config->block.z};
  launch.arguments = arguments;
  launch.dynamic_shared_bytes = config->shared;
  launch.stream = config->stream;
  for (unsigned i = 0; i < config->attribute_count; i++) {
    const LaunchAttribute& a = config->attributes[i];
    if (a.id == kAttributeCooperative && a.flag) launch.flags |= KILN_LAUNCH_COOPERATIVE;
    if (a.id == kAttributeCluster) launch.cluster = {a.cluster.x, a.cluster.y, a.cluster.z};
  }
  return launch_engine(launch);
}

// A stub of nvcc's is noexcept in effect: it drops what a launch returns, and no exception may pass
// a program's own C frames. In an op it may.
template <class F>
int contained(F&& f) {
  if (current_call()) return f();
  try {
    return f();
  } catch (const std::exception& e) {
    say_once(e);
    return kErrorNoDevice;
  }
}

// ---- The functions behind the trampolines

thread_local int t_refused_code = kErrorNotSupported;

int refuse() { return t_refused_code; }

// What a refused call jumps to: a few functions return no cudaError_t and have an answer of their
// own.
void* refusal(const KilnFrontEntry* entry, int code) {
  t_refused_code = code;
  return entry->when_refused ? entry->when_refused : reinterpret_cast<void*>(&refuse);
}

void* refused(const KilnFrontEntry* entry, const char* why) {
  Text what;
  what.addf("%s is not available", entry->name);
  Text text;
  add_error(text, what.c_str(), why, "");
  note_fault(text.c_str());
  return refusal(entry, kErrorNotSupported);
}

void* target_of_engine(KilnFrontEntry* entry) {
  if (entry->rule == KILN_FRONT_REFUSE) return refused(entry, entry->why);
  void* function =
      entry->name_on_13 ? find_engine(nullptr)->runtime_function(entry->name_on_13) : nullptr;
  if (!function)
    return refused(entry, "kiln's engine, which runs kernels on the CPU, does not have it");
  __atomic_store_n(&entry->target[1], function, __ATOMIC_RELEASE);
  return function;
}

void* target_of_real(KilnFrontEntry* entry) {
  const int major = real_major(nullptr);
  if (entry->rule == KILN_FRONT_REFUSE || (major == 12 && entry->rule == KILN_FRONT_REFUSE_ON_12))
    return refused(entry, entry->why);
  const char* name = major == 12 ? entry->name_on_12 : entry->name_on_13;
  void* function = name ? kiln_front_symbol(name) : nullptr;
  if (!function && major == 12 && entry->rule == KILN_FRONT_RENAMED_ELSE_SAME)
    function = kiln_front_symbol(entry->name);
  if (!function) {
    Text why;
    if (major >= 13 && entry->rule == KILN_FRONT_ONLY_12)
      why.add("CUDA 13 removed it, and the CUDA runtime in this process is of version 13");
    else
      why.addf("the CUDA runtime in this process is of version %d; the function came with %u.%u",
               major, entry->since / 1000, entry->since % 1000 / 10);
    return refused(entry, why.c_str());
  }
  if (major == 12 && entry->rule == KILN_FRONT_CONVERT) {
    __atomic_store_n(&entry->real_on_12, function, __ATOMIC_RELAXED);
    function = entry->convert_on_12;
  }
  // After real_on_12: a thread that finds this target jumps to the conversion, which reads the
  // other.
  __atomic_store_n(&entry->target[0], function, __ATOMIC_RELEASE);
  return function;
}

// In an op a refused call throws: a caller that ignores the status would go on without a handle.
void* target_of_library(KilnFrontEntry* entry, Backend backend) {
  Text text;
  if (backend == Backend::real) {
    void* function = __atomic_load_n(&entry->target[0], __ATOMIC_ACQUIRE);
    if (!function) function = function_of_library(entry, text);
    __atomic_store_n(&entry->target[0], function, __ATOMIC_RELEASE);
    if (function) return function;
  } else {
    add_library_refusal(text, entry);
  }
  if (current_call()) throw_text(static_cast<Text&&>(text));
  note_fault(text.c_str());
  kiln_library_status = static_cast<int>(entry->since);
  return entry->when_refused;
}

}  // namespace

void launch(const void* kernel, const Launch& how, void** arguments) {
  const Backend backend = current_backend();
  make_ready(backend);
  if (how.shared_bytes > kPlainSharedBytes) {
    constexpr int kMaxDynamicShared = 8;  // cudaFuncAttributeMaxDynamicSharedMemorySize
    void* function = backend == Backend::real
                         ? real_function("cudaFuncSetAttribute")
                         : find_engine(nullptr)->runtime_function("cudaFuncSetAttribute");
    const int code = function ? reinterpret_cast<int (*)(const void*, int, int)>(function)(
                                    kernel, kMaxDynamicShared, static_cast<int>(how.shared_bytes))
                              : kErrorNotSupported;
    if (code) {
      if (backend == Backend::real)
        reinterpret_cast<int (*)()>(real_function("cudaGetLastError"))();  // it is reported here
      Text text;
      text.add("error: cannot launch ").add(kernel_name(kernel));
      text.addf(
          "\n  why: %lld bytes of shared memory per block are more than this device allows\n  fix: "
          "use a smaller tile, or fewer stages",
          static_cast<long long>(how.shared_bytes));
      throw_text(static_cast<Text&&>(text));
    }
  }
  const LaunchDim grid{how.grid.x, how.grid.y, how.grid.z},
      block{how.block.x, how.block.y, how.block.z};
  const size_t shared = static_cast<size_t>(how.shared_bytes);
  LaunchAttribute attributes[3] = {};
  unsigned count = 0;
  if (how.cluster.x) {
    attributes[count].id = kAttributeCluster;
    attributes[count++].cluster = {how.cluster.x, how.cluster.y, how.cluster.z};
  }
  if (how.cooperative) {
    attributes[count].id = kAttributeCooperative;
    attributes[count++].flag = 1;
  }
  if (how.overlap_previous) {
    attributes[count].id = kAttributeProgrammatic;
    attributes[count++].flag = 1;
  }
  int code;
  if (count) {
    const LaunchConfig config{grid, block, shared, how.stream, attributes, count};
    code = launch_extended(&config, kernel, arguments, false);
    if (code && backend == Backend::real) note_launch_error(kernel, grid, block, shared, code);
  } else {
    code = launch_plain(kernel, grid, block, arguments, shared, how.stream, false);
  }
  if (Call* call = current_call()) {
    if (call->failed) call->finish();  // throws
  } else if (code) {
    Text text;
    text.addf("error: cannot launch %s: CUDA error %d", kernel_name(kernel), code);
    throw_text(static_cast<Text&&>(text));
  }
}

}  // namespace kiln::detail

namespace kiln {

unsigned blocks_for(int64_t n, int threads) {
  const int64_t blocks = n <= 0 ? 1 : (n + threads - 1) / threads;
  KILN_CHECK(blocks <= 0x7fffffff, n, " elements need more than 2^31 - 1 blocks of ", threads,
             ": let each thread process several");
  return static_cast<unsigned>(blocks);
}

}  // namespace kiln

namespace kiln::detail {
namespace {
struct Configuration {
  LaunchDim grid, block;
  size_t shared;
  void* stream;
};
constexpr int kMostConfigurations = 16;  // nested when an argument of a launch launches
thread_local Configuration t_configurations[kMostConfigurations];
thread_local int t_depth = 0;
}  // namespace

void drop_configurations() { t_depth = 0; }
}  // namespace kiln::detail

using namespace kiln::detail;

#pragma GCC visibility push(hidden)
extern "C" {

void* kiln_front_symbol(const char* name) { return real_symbol(name); }

void* kiln_front_target(KilnFrontEntry* entry) {
  const Backend backend = current_backend();
  const auto find = [&]() -> void* {
    if (entry->rule == KILN_FRONT_LIBRARY) return target_of_library(entry, backend);
    make_ready(backend);
    if (backend == Backend::engine && current_call()) tell_of_ops();
    if (void* known = __atomic_load_n(&entry->target[static_cast<int>(backend)], __ATOMIC_ACQUIRE))
      return known;
    return backend == Backend::real ? target_of_real(entry) : target_of_engine(entry);
  };
  if (current_call()) return find();
  try {
    return find();
  } catch (const std::exception& e) {
    say_once(e);
    return refusal(entry, kErrorNoDevice);
  }
}

// Code that reads a managed variable on the host calls this first: the variable's memory must be
// there.
char __cudaInitModule(void** handle) {
  return static_cast<char>(contained([&] {
    const Backend backend = current_backend();
    make_ready(backend);
    if (backend == Backend::real && image_of(handle)->has_managed)
      return static_cast<int>(reinterpret_cast<char (*)(void**)>(real_function("__cudaInitModule"))(
          static_cast<void**>(image_of(handle)->handles[0])));
    return 0;
  }));
}

unsigned __cudaPushCallConfiguration(LaunchDim grid, LaunchDim block, size_t shared, void* stream) {
  // A launch whose arguments threw leaves its configuration behind. The oldest goes: launches are
  // completed from the last one on.
  if (t_depth == kMostConfigurations) {
    memmove(&t_configurations[0], &t_configurations[1],
            (kMostConfigurations - 1) * sizeof(Configuration));
    t_depth--;
  }
  t_configurations[t_depth++] = {grid, block, shared, stream};
  return 0;
}

int __cudaPopCallConfiguration(LaunchDim* grid, LaunchDim* block, size_t* shared, void* stream) {
  if (t_depth == 0) {
    note_fault(
        "error: a kernel was not launched\n  why: its configuration is no longer there: more than "
        "16 launches are arguments of each other\n  fix: evaluate the arguments before <<<>>>");
    return 52;  // cudaErrorMissingConfiguration
  }
  const Configuration& c = t_configurations[--t_depth];
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<void**>(stream) = c.stream;
  return kSuccess;
}

int __cudaGetKernel(Function** kernel, const void* host) {
  *kernel = find_function(host);
  return *kernel ? kSuccess : kErrorInvalidDeviceFunction;
}

int cudaGetKernel(const void** kernel, const void* host) {
  return contained([&] {
    const Backend backend = current_backend();
    make_ready(backend);
    if (backend == Backend::real)
      return reinterpret_cast<int (*)(const void**, const void*)>(real_function("cudaGetKernel"))(
          kernel, host);
    *kernel = host;
    return kSuccess;
  });
}

#define LAUNCH(name, per_thread)                                                                 \
  int name(const void* host, LaunchDim grid, LaunchDim block, void** arguments, size_t shared,   \
           void* stream) {                                                                       \
    return contained(                                                                            \
        [&] { return launch_plain(host, grid, block, arguments, shared, stream, per_thread); }); \
  }
LAUNCH(cudaLaunchKernel, false)
LAUNCH(cudaLaunchKernel_ptsz, true)
#undef LAUNCH

int cudaLaunchKernelExC(const LaunchConfig* config, const void* host, void** arguments) {
  return contained([&] { return launch_extended(config, host, arguments, false); });
}
int cudaLaunchKernelExC_ptsz(const LaunchConfig* config, const void* host, void** arguments) {
  return contained([&] { return launch_extended(config, host, arguments, true); });
}

#define LAUNCH_STUB(name, per_thread)                                                      \
  int name(Function* f, LaunchDim grid, LaunchDim block, void** arguments, size_t shared,  \
           void* stream) {                                                                 \
    if (!f) return kErrorInvalidDeviceFunction;                                            \
    return contained([&] {                                                                 \
      return launch_plain(f->host, grid, block, arguments, shared, stream, per_thread, f); \
    });                                                                                    \
  }
LAUNCH_STUB(__cudaLaunchKernel, false)
LAUNCH_STUB(__cudaLaunchKernel_ptsz, true)
#undef LAUNCH_STUB

#define LAUNCH_COOPERATIVE(name, per_thread)                                                   \
  int name(const void* host, LaunchDim grid, LaunchDim block, void** arguments, size_t shared, \
           void* stream) {                                                                     \
    LaunchAttribute cooperative = {};                                                          \
    cooperative.id = kAttributeCooperative;                                                    \
    cooperative.flag = 1;                                                                      \
    const LaunchConfig config{grid, block, shared, stream, &cooperative, 1};                   \
    return contained([&] { return launch_extended(&config, host, arguments, per_thread); });   \
  }
LAUNCH_COOPERATIVE(cudaLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cudaLaunchCooperativeKernel_ptsz, true)
#undef LAUNCH_COOPERATIVE

}  // extern "C"
#pragma GCC visibility pop
