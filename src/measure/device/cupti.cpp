// SPDX-License-Identifier: Apache-2.0
#include "measure/device/cupti.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <mutex>

#include "sys/library.h"

namespace kiln::measure {
namespace {

constexpr int kMemset = 2;             // CUPTI_ACTIVITY_KIND_MEMSET
constexpr int kConcurrentKernel = 10;  // CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
constexpr size_t kBufferBytes = 1 << 20;

// The head of CUpti_ActivityKernel4 to 10: later ones only grew at the end (cupti_activity.h
// of 12.8 and 13.0).
struct KernelActivity {
  uint32_t kind;
  uint8_t cache, shared_config;
  uint16_t registers;
  uint32_t partitioned[2];
  uint64_t begin, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_thread, local_total, correlation;
  int64_t grid_id;
  const char* name;
} __attribute__((packed, aligned(8)));
static_assert(offsetof(KernelActivity, begin) == 16 && offsetof(KernelActivity, name) == 104);

struct Cupti {
  int (*register_callbacks)(void (*)(uint8_t**, size_t*, size_t*),
                            void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) = nullptr;
  int (*register_clock)(uint64_t (*)()) = nullptr;  // since CUDA 11.6; may be missing
  int (*enable)(int) = nullptr;
  int (*disable)(int) = nullptr;
  int (*flush)(uint32_t) = nullptr;
  int (*next)(uint8_t*, size_t, void**) = nullptr;
  int (*result_text)(int, const char**) = nullptr;
  std::string why;
};

uint64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}

// CUPTI's callbacks carry no argument of ours.
std::mutex g_lock;
std::vector<KernelRecord> g_records;
uint64_t g_origin =
    0;  // the first record's begin: a double that counts from 1970 has steps of 256 ns
bool g_lost = false;  // a record could not be kept
const Cupti* g_cupti = nullptr;

void buffer_requested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void keep_records(uint8_t* buffer, size_t valid_bytes) {
  void* record = nullptr;
  while (valid_bytes > 0 && g_cupti->next(buffer, valid_bytes, &record) == 0) {
    const auto* kernel = static_cast<const KernelActivity*>(record);
    if (kernel->kind != kConcurrentKernel) continue;
    KernelRecord found;
    found.name = kernel->name ? short_kernel_name(kernel->name) : "?";
    if (g_records.empty()) g_origin = kernel->begin;
    found.begin_ns = static_cast<double>(static_cast<int64_t>(kernel->begin - g_origin));
    found.end_ns = static_cast<double>(static_cast<int64_t>(kernel->end - g_origin));
    for (int i = 0; i < 3; ++i) {
      found.grid[i] = static_cast<uint32_t>(kernel->grid[i]);
      found.block[i] = static_cast<uint32_t>(kernel->block[i]);
    }
    found.registers = kernel->registers;
    found.static_shared_bytes = kernel->static_shared;
    found.dynamic_shared_bytes = kernel->dynamic_shared;
    found.stream = kernel->stream;
    g_records.push_back(std::move(found));
  }
}

// CUPTI is C: nothing may be thrown through it.
void buffer_completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::lock_guard guard(g_lock);
  try {
    keep_records(buffer, valid_bytes);
  } catch (const std::exception&) {
    g_lost = true;
  }
  std::free(buffer);
}

Cupti load_cupti() {
  Cupti cupti;
  std::vector<std::string> places = {"libcupti.so.13", "libcupti.so.12"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root)
      for (const char* tail : {"/lib64/libcupti.so", "/extras/CUPTI/lib64/libcupti.so"})
        places.push_back(std::string(root) + tail);
  places.emplace_back("/usr/local/cuda/lib64/libcupti.so");
  places.emplace_back("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so");
  for (const std::string& place : places) {
    const Result<sys::Library> library = sys::Library::open(place);
    if (!library) continue;
    const auto get = [&](const char* name, auto*& to) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(library->find(name));
    };
    get("cuptiActivityRegisterCallbacks", cupti.register_callbacks);
    get("cuptiActivityRegisterTimestampCallback", cupti.register_clock);
    get("cuptiActivityEnable", cupti.enable);
    get("cuptiActivityDisable", cupti.disable);
    get("cuptiActivityFlushAll", cupti.flush);
    get("cuptiActivityGetNextRecord", cupti.next);
    get("cuptiGetResultString", cupti.result_text);
    if (cupti.register_callbacks && cupti.enable && cupti.disable && cupti.flush && cupti.next)
      return cupti;
  }
  cupti.why = "libcupti is not loaded, not in CUDA_HOME and not where the loader looks";
  return cupti;
}

Error no_records(std::string why) {
  return {Fault::Environment, "no kernel times from CUPTI", std::move(why),
          "only events are used; to allow it: NVreg_RestrictProfilingToAdminUsers=0, and no other "
          "profiler"};
}

Error failed(const Cupti& cupti, const char* what, int code) {
  const char* words = nullptr;
  if (cupti.result_text) cupti.result_text(code, &words);
  std::string why = fmt::format("{} returned {} ({})", what, words ? words : "an error", code);
  if (code == 35) why += ": this user may not profile";
  if (code == 39 || code == 14) why += ": another profiler uses it";
  return no_records(std::move(why));
}

}  // namespace

Status cupti_begin(bool memsets) {
  static const Cupti* cupti = new Cupti(load_cupti());
  if (!cupti->why.empty()) return no_records(cupti->why);
  g_cupti = cupti;
  // Each time: another profiler may have put its own there since.
  const int registered = cupti->register_callbacks(buffer_requested, buffer_completed);
  if (registered != 0) return failed(*cupti, "cuptiActivityRegisterCallbacks", registered);
  // torch.profiler leaves a clock behind that counts cycles of the CPU, 2.1 a nanosecond on one
  // machine, and sets it anew whenever it starts. Where this fails the sampler sees it by its
  // events.
  if (cupti->register_clock) (void)cupti->register_clock(clock_ns);
  {
    const std::lock_guard guard(g_lock);
    g_records.clear();
    g_lost = false;
  }
  if (const int code = cupti->enable(kConcurrentKernel); code != 0)
    return failed(*cupti, "cuptiActivityEnable", code);
  if (memsets) (void)cupti->enable(kMemset);
  return {};
}

Result<std::vector<KernelRecord>> cupti_end() {
  const int flushed = g_cupti->flush(1);
  g_cupti->disable(kConcurrentKernel);
  g_cupti->disable(kMemset);
  if (flushed != 0) return failed(*g_cupti, "cuptiActivityFlushAll", flushed);
  const std::lock_guard guard(g_lock);
  std::vector<KernelRecord> records = std::exchange(g_records, {});
  if (g_lost) return no_records("there was not enough memory for its records");
  return records;
}

std::string short_kernel_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = text ? text : mangled;
  std::free(text);
  // Up to the parenthesis of the arguments: the last one that opens outside of <>.
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 21, "(anonymous namespace)") != 0) {
      name.resize(i);
      break;
    }
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

}  // namespace kiln::measure
