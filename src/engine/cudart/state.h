// SPDX-License-Identifier: Apache-2.0
// What does the engine know in this process? Images, the host addresses that stand for kernels and
// variables, memory, last errors.
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
  std::unique_ptr<Image> image;  // made when first needed
  std::string load_error;
  int load_code = 0;
  uint32_t arch = 0;  // 80 of compute_80: what the PTX that runs was compiled for
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
  std::unique_ptr<Kernel> kernel;  // made with the image, and never changed then
  std::string error;
  int error_code = 0;
  // The kernel, once it can be launched: found without a lock.
  std::atomic<Kernel*> ready{nullptr};
  bool resolved = false;
  int carveout = -1;  // of cudaFuncSetAttribute: nothing here depends on these
  int nonportable_cluster = 0;
  int cluster_policy = 0;
  std::atomic<uint64_t> max_dynamic_shared = 0;  // one thread may set it while another launches

  uint64_t static_shared_bytes() const { return kernel->static_shared_bytes(); }
  // Static and dynamic together.
  uint64_t shared_limit() const {
    return std::max(kDefaultSharedBytes, max_dynamic_shared.load() + static_shared_bytes());
  }
  // One variant, for what they have in common.
  const Program& program() const { return **kernel->any(); }
};

struct RegisteredVariable {
  RegisteredImage* image = nullptr;
  std::string name;
};

// Libraries whose kernels are not all known, because there was no memory when they were registered.
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
  int refused = 0;  // a launch that could not begin, until cudaGetLastError has reported it
  std::string refused_message;
  const char* words = nullptr;  // instead of the message, where there was no memory for one
  int device = 0;
};
ThreadErrors& thread_errors();
int fail(int code, std::string message) noexcept;
int fail_without_memory(int code) noexcept;  // the same with kNoMemoryText

// The fault of a kernel that nobody waits for: kept, and reported where CUDA would report it. The
// first one counts. Without a text: kNoMemoryText.
void keep_fault(int code, std::string text) noexcept;
int kept_fault();  // 0: none
void forget_fault();

// The image with its PTX read; null and an error in `code` and `text` when that failed.
Image* loaded(RegisteredImage& registered, int* code, std::string* text);
// The function behind a host address, decoded once; null: `code` and `text` say why.
RegisteredFunction* resolved_function(const void* host_function, int* code, std::string* text);
// The same of a function that is known. Takes no lock where it was asked for before.
RegisteredFunction* resolved(RegisteredFunction* function, int* code, std::string* text);
// The memory of a variable behind a host address.
const Image::VariableMemory* resolved_variable(const void* host_variable, int* code,
                                               std::string* text);

int launch_now(const KilnEngineLaunch& launch);
// A program's launch: into the capture of its stream, or now.
int launch_in_stream(const KilnEngineLaunch& launch);
// Looks up a CUDA runtime function by name; null: not there.
void* runtime_function(const char* name);

}  // namespace kiln::engine
