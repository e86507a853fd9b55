// SPDX-License-Identifier: Apache-2.0
// What has the engine loaded from one library? Its PTX, its variables in memory, and the functions
// decoded so far.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "engine/memory/memory.h"
#include "engine/program/program.h"
#include "ptx/module.h"

namespace kiln::engine {

class Image {
 public:
  explicit Image(Heap& heap) : heap_(heap) {}
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // Parses the text, and allocates and initialises every variable.
  Status load(std::string text);
  bool loaded() const { return loaded_; }

  // The decoded kernel, with everything that it calls. Errors are kept: a kernel that cannot run
  // stays so.
  Result<const Program*> kernel(std::string_view name, Variant variant = {});
  // The static shared memory that a kernel needs, including everything that it calls.
  uint64_t static_shared_bytes(const Program& program) const;
  uint32_t dynamic_shared_alignment() const { return dynamic_shared_alignment_; }

  struct VariableMemory {
    void* at = nullptr;
    uint64_t bytes = 0;
  };
  // Returns null if there is no such variable.
  const VariableMemory* variable(std::string_view name) const;

  // Is there a `.const` variable at this address?
  bool is_constant(uint64_t address) const;

  // For the decoder.
  Result<const Program*> program(const ptx::Function& function, Variant variant);
  // The target of a function pointer, in the variant for this caller; null: none.
  const Program* program_at(uint64_t pointer, Variant of_caller);
  Result<uint64_t> symbol_address(std::string_view name);
  // Allocates a .global or .const variable that the function's body declares; all decodings of the
  // function share it.
  Status declare_in_function(const ptx::Function& function, const ptx::Variable& variable);
  std::optional<uint64_t> function_variable(const ptx::Function& function,
                                            std::string_view name) const;
  const ptx::Variable* shared_variable(std::string_view name) const;
  uint64_t shared_variable_offset(std::string_view name) const;
  // For a shared variable that a device function declares: its place is the same for all callers.
  uint64_t shared_offset_in(const ptx::Function& function, std::string_view name) const;
  uint64_t common_shared_bytes() const { return common_shared_bytes_; }
  const ptx::Module& module() const { return module_; }

 private:
  Result<VariableMemory> allocate(const ptx::Variable& variable);
  // `inside`: the function whose own variables an initial value may refer to.
  Status fill(const ptx::Variable& variable, void* memory, const ptx::Function* inside);
  void place_shared_of_functions();
  void fail(const Program& program, const Error& error);
  void forget_round() noexcept;

  Heap& heap_;
  bool loaded_ = false;
  std::string text_;
  ptx::Module module_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, VariableMemory> variables_;
  std::unordered_map<std::string_view, const ptx::Variable*> shared_;
  std::unordered_map<std::string_view, uint64_t> shared_offsets_;
  std::unordered_map<std::string, VariableMemory> function_variables_;  // by "function/variable"
  std::unordered_map<std::string, uint64_t> function_shared_;           // likewise
  uint64_t common_shared_bytes_ = 0;
  uint32_t dynamic_shared_alignment_ = 16;
  struct Decoded {
    std::unique_ptr<Program> program;
    std::unique_ptr<Error> error;
    uint64_t round = 0;
  };
  uint64_t round_ = 0;  // number of the kernel() call that decoded a function
  std::map<size_t, std::unordered_map<std::string_view, Decoded>> programs_;  // by Variant::index()
  std::unordered_map<uint64_t, const Program*> by_pointer_;
  uint32_t decoding_depth_ = 0;
};

// One kernel of an image. Thread-safe. Each variant is decoded when it is first needed. After that,
// variants without events are found without a lock.
class Kernel {
 public:
  Kernel(Image& image, std::string name) : image_(image), name_(std::move(name)) {}

  Result<const Program*> program(Variant variant) {
    const size_t index = variant.index();
    const Program* known =
        index < Variant::kPlain ? decoded_[index].load(std::memory_order_acquire) : nullptr;
    return known ? Result<const Program*>(known) : decode(variant);
  }
  // Any variant, for what all have in common. If there is none yet, decodes the one that most
  // launches use.
  Result<const Program*> any() {
    const Program* known = any_.load(std::memory_order_acquire);
    return known ? Result<const Program*>(known) : program({.rows_fill_warps = true});
  }
  // Includes everything that it calls; known once a variant has been decoded.
  uint64_t static_shared_bytes() const { return static_shared_bytes_.load(); }
  // Does it run from beginning to end without loops, barriers, calls or local memory?
  bool runs_straight();
  Image& image() { return image_; }

 private:
  Result<const Program*> decode(Variant variant);

  Image& image_;
  std::string name_;
  std::atomic<const Program*> decoded_[Variant::kPlain] = {};
  std::atomic<const Program*> any_{nullptr};
  std::atomic<uint64_t> static_shared_bytes_{0};
  enum class Straight : uint8_t { Unknown, Yes, No };
  std::atomic<Straight> straight_{Straight::Unknown};
};

}  // namespace kiln::engine
