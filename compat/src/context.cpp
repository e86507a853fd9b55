// SPDX-License-Identifier: Apache-2.0
// Who answers for torch's settings and its handles of NVIDIA's libraries? Python for the settings;
// libtorch_cuda for the handles, by the names of its C++ functions, which have neither parameters
// nor a type of torch's.
#include <kiln/compat/context.h>
#include <kiln/compat/library_handles.h>

#include "call.h"
#include "convert.h"
#include "dynamic.h"
#include "front.h"
#include "torch.h"

namespace at {
inline namespace kc {

bool Context::flag(const char* getter) {
  using namespace kiln::compat;
  if (!has_python())
    throw Error(c10::str("error: cannot ask torch for ", getter + 5,
                         "\n  why: a library built with kiln's compat headers asks Python, and "
                         "there is none in this "
                         "process\n  fix: kiln build --compat=never"));
  WithGil gil;
  Ref answer = checked(PyObject_CallObject(torch_attribute("torch._C", getter).get(), nullptr));
  return PyObject_IsTrue(answer.get()) == 1;
}

void Context::alertNotDeterministic(const char* caller) {
  if (!globalContext().deterministicAlgorithms()) return;
  if (!globalContext().deterministicAlgorithmsWarnOnly())
    throw Error(c10::str(
        caller,
        " does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms"
        "(True)'. You can turn off determinism just for this operation, or you can use the "
        "'warn_only=True' option, if that's acceptable for your application. You can also file an "
        "issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
        "deterministic support for this operation."));
  TORCH_WARN(caller,
             " does not have a deterministic implementation, but you set "
             "'torch.use_deterministic_algorithms(True, "
             "warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues "
             "to help us "
             "prioritize adding deterministic support for this operation.");
}

}  // namespace kc

namespace cuda {
inline namespace kc {

namespace {

[[noreturn]] void no_handle(const char* library, const std::string& why, const char* fix) {
  throw Error(
      c10::str("error: cannot lend a handle of ", library, "\n  why: ", why, "\n  fix: ", fix));
}

// A handle is of the GPU that the call runs on.
void* handle(const char* library, const char* function) {
  using namespace kiln::detail;
  const kiln::detail::Call* call = current_call();
  if ((call ? call->backend : default_backend()) != Backend::real)
    no_handle(library, "the engine runs kernels, not NVIDIA's libraries",
              "run it with tensors on a GPU");
  void* torch_cuda = open_mapped("libtorch_cuda.so");
  if (!torch_cuda)
    no_handle(library, "libtorch_cuda.so is not in this process",
              "run it with a torch that is built for CUDA");
  void* found = find_symbol(torch_cuda, function);
  if (!found)
    no_handle(library, std::string("this torch has no function ") + function,
              "build it with --compat=never");
  return reinterpret_cast<void* (*)()>(found)();
}

}  // namespace

cublasContext* getCurrentCUDABlasHandle() {
  return static_cast<cublasContext*>(handle("cuBLAS", "_ZN2at4cuda24getCurrentCUDABlasHandleEv"));
}
cublasLtContext* getCurrentCUDABlasLtHandle() {
  return static_cast<cublasLtContext*>(
      handle("cuBLASLt", "_ZN2at4cuda26getCurrentCUDABlasLtHandleEv"));
}
cusparseContext* getCurrentCUDASparseHandle() {
  return static_cast<cusparseContext*>(
      handle("cuSPARSE", "_ZN2at4cuda26getCurrentCUDASparseHandleEv"));
}

}  // namespace kc
}  // namespace cuda
}  // namespace at
