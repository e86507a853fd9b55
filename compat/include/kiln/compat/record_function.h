// SPDX-License-Identifier: Apache-2.0
// What does RECORD_FUNCTION do? It names a span for torch's profiler, through torch.profiler's own
// record_function; without a profiler it costs one call.
#pragma once

#include <kiln/compat/check.h>

namespace at {
inline namespace kc {
enum class RecordScope : uint8_t {
  FUNCTION = 0,
  BACKWARD_FUNCTION,
  TORCHSCRIPT_FUNCTION,
  USER_SCOPE = 7
};
class RecordFunction {
 public:
  explicit RecordFunction(RecordScope = RecordScope::FUNCTION) {}
  explicit RecordFunction(const char* name) { before(name); }
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  void before(const char* name);
  void before(const std::string& name) { before(name.c_str()); }
  bool isActive() const { return guard_ != nullptr; }
  void end();

 private:
  void* guard_ = nullptr;
};
}  // namespace kc
}  // namespace at
namespace torch {
namespace autograd {
namespace profiler {
using at::RecordFunction;
using at::RecordScope;
}  // namespace profiler
}  // namespace autograd
}  // namespace torch

#define RECORD_FUNCTION(name, ...) \
  ::at::RecordFunction kiln_record_function { name }
#define RECORD_USER_SCOPE(name) RECORD_FUNCTION(name, 0)
#define RECORD_TORCHSCRIPT_FUNCTION(name, ...) RECORD_FUNCTION(name, 0)
