// SPDX-License-Identifier: Apache-2.0
// What do sources ask of at::globalContext()? What the user chose in Python: determinism, TF32,
// cuDNN.
#pragma once

#include <kiln/compat/check.h>

namespace at {
inline namespace kc {
class Context {
 public:
  bool deterministicAlgorithms() const { return flag("_get_deterministic_algorithms"); }
  bool deterministicAlgorithmsWarnOnly() const {
    return flag("_get_deterministic_algorithms_warn_only");
  }
  bool deterministicFillUninitializedMemory() const {
    return flag("_get_deterministic_fill_uninitialized_memory");
  }
  bool allowTF32CuBLAS() const { return flag("_get_cublas_allow_tf32"); }
  bool allowTF32CuDNN() const { return flag("_get_cudnn_allow_tf32"); }
  bool userEnabledCuDNN() const { return flag("_get_cudnn_enabled"); }
  bool deterministicCuDNN() const { return flag("_get_cudnn_deterministic"); }
  bool benchmarkCuDNN() const { return flag("_get_cudnn_benchmark"); }
  static void alertNotDeterministic(const char* caller);

 private:
  static bool flag(const char* getter);  // of torch._C
};
inline Context& globalContext() {
  static Context context;
  return context;
}
}  // namespace kc
}  // namespace at
