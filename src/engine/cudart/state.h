// SPDX-License-Identifier: Apache-2.0
// What does the engine know in this process? Images, the host addresses that stand for kernels and
// variables, memory, and last errors.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/cudart/launch.h"
#include "engine/cudart/threads.h"
#include "engine/decode/image.h"
#include "engine/machine/device.h"

namespace kiln::engine {

struct RegisteredImage {
  const void* wrapper = nullptr;
  std::unique_ptr<Image> image;  // created when first needed
  std::string load_error;
  int load_code = 0;
  uint32_t arch = 0;  // 80 for compute_80: the target of the PTX that runs
  struct PendingVariable {
    void* host;
    std::string name;
    uint64_t bytes;
    uint32_t flags;
  };
  std::vector<PendingVariable> variables;
  std::mutex mutex;
};

struct RegisteredFunction {
  RegisteredImage* image = nullptr;
  std::string name;
  std::unique_ptr<Kernel> kernel;  // created with the image, then never changed
  std::string error;
  int error_code = 0;
  // The kernel, once it can be launched; read without a lock.
  std::atomic<Kernel*> ready{nullptr};
  bool resolved = false;
  int carveout = -1;  // for cudaFuncSetAttribute; the engine ignores these
  int nonportable_cluster = 0;
  int cluster_policy = 0;
  std::atomic<uint64_t> max_dynamic_shared = 0;  // one thread may set it while another launches

  uint64_t static_shared_bytes() const { return kernel->static_shared_bytes(); }
  // For static and dynamic memory together.
  uint64_t shared_limit() const {
    return std::max(kDefaultSharedBytes, max_dynamic_shared.load() + static_shared_bytes());
  }
  // Any variant, for what all have in common.
  const Program& program() const { return **kernel->any(); }
};

struct RegisteredVariable {
  RegisteredImage* image = nullptr;
  std::string name;
};

// Set if some kernels are unknown because there was no memory when they were registered.
inline std::atomic<bool> registrations_lost{false};

struct State {
  Device device{&process_pool};
  std::mutex mutex;
  std::vector<std::unique_ptr<RegisteredImage>> images;
  std::unordered_map<const void*, std::unique_ptr<RegisteredFunction>> functions;
  std::unordered_map<const void*, RegisteredVariable> variables;
};

// Never destroyed: kernels may be launched by destructors of the program.
State& state();

// Errors of the calling thread.
struct ThreadErrors {
  int last = 0;  // cudaGetLastError
  std::string message;
  int refused = 0;  // of a launch that could not begin, until cudaGetLastError has reported it
  std::string refused_message;
  const char* words = nullptr;  // instead of the message if there was no memory for it
  int device = 0;
};
ThreadErrors& thread_errors();
int fail(int code, std::string message) noexcept;
int fail_without_memory(int code) noexcept;  // the same with kNoMemoryText

// Keeps the fault of a kernel that nobody waits for, until CUDA would report it. Only the first
// fault is kept. Without a text: kNoMemoryText.
void keep_fault(int code, std::string text) noexcept;
int kept_fault();  // 0: none
void forget_fault();

// The image with its PTX loaded. On failure returns null and sets `code` and `text`.
Image* loaded(RegisteredImage& registered, int* code, std::string* text);
// The function at a host address, decoded once. On failure returns null and sets `code` and `text`.
RegisteredFunction* resolved_function(const void* host_function, int* code, std::string* text);
// The same for a known function. Takes no lock if it is already resolved.
RegisteredFunction* resolved(RegisteredFunction* function, int* code, std::string* text);
// The memory of the variable at a host address.
const Image::VariableMemory* resolved_variable(const void* host_variable, int* code,
                                               std::string* text);

int launch_now(const KilnEngineLaunch& launch);
// A launch by the program: goes into the capture of its stream, or runs now.
int launch_in_stream(const KilnEngineLaunch& launch);
// Finds a CUDA runtime function by name; null: there is none.
void* runtime_function(const char* name);

}  // namespace kiln::engine
