// SPDX-License-Identifier: Apache-2.0
#include "measure/device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "sys/library.h"

namespace kiln::measure {
namespace {

struct Loaded {
  CudaDriver driver{};
  std::string why;  // not usable: why
};

template <class Function>
void find(const sys::Library& library, const char* name, Function*& to, std::string& missing) {
  to = reinterpret_cast<Function*>(library.find(name));
  if (!to && missing.empty()) missing = name;
}

Loaded load() {
  Loaded loaded;
  const Result<sys::Library> library = sys::Library::open("libcuda.so.1");
  if (!library) {
    loaded.why = library.error().why;
    return loaded;
  }
  CudaDriver& d = loaded.driver;
  std::string missing, optional;
  const auto get = [&](const char* name, auto*& to) { find(*library, name, to, missing); };
  get("cuInit", d.init);
  get("cuDriverGetVersion", d.driver_version);
  get("cuDeviceGet", d.device_get);
  get("cuDeviceGetCount", d.device_count);
  get("cuDeviceGetName", d.device_name);
  get("cuDeviceGetAttribute", d.device_attribute);
  get("cuDeviceTotalMem_v2", d.device_memory);
  get("cuDeviceGetPCIBusId", d.device_pci);
  get("cuDevicePrimaryCtxRetain", d.primary_retain);
  get("cuDevicePrimaryCtxRelease_v2", d.primary_release);
  get("cuCtxSetCurrent", d.context_set);
  get("cuCtxGetCurrent", d.context_get);
  get("cuCtxSynchronize", d.context_synchronize);
  get("cuCtxResetPersistingL2Cache", d.reset_persisting);
  get("cuCtxGetLimit", d.context_limit);
  get("cuEventCreate", d.event_create);
  get("cuEventDestroy_v2", d.event_destroy);
  get("cuEventRecord", d.event_record);
  get("cuEventQuery", d.event_query);
  get("cuEventElapsedTime", d.event_elapsed);
  get("cuStreamCreate", d.stream_create);
  get("cuStreamDestroy_v2", d.stream_destroy);
  get("cuStreamQuery", d.stream_query);
  get("cuStreamBeginCapture_v2", d.begin_capture);
  get("cuStreamEndCapture", d.end_capture);
  get("cuGraphInstantiateWithFlags", d.graph_instantiate);
  get("cuGraphLaunch", d.graph_launch);
  get("cuGraphExecDestroy", d.graph_exec_destroy);
  get("cuGraphDestroy", d.graph_destroy);
  get("cuMemAlloc_v2", d.memory_allocate);
  get("cuMemFree_v2", d.memory_free);
  get("cuMemGetInfo_v2", d.memory_free_total);
  get("cuMemsetD8Async", d.memory_set);
  get("cuMemHostAlloc", d.host_allocate);
  get("cuMemFreeHost", d.host_free);
  get("cuMemHostGetDevicePointer_v2", d.host_device_pointer);
  get("cuModuleLoadData", d.module_load);
  get("cuModuleGetFunction", d.module_function);
  get("cuLaunchKernel", d.launch);
  get("cuGetErrorName", d.error_name);
  get("cuGetErrorString", d.error_string);
  find(*library, "cuStreamWaitValue32_v2", d.wait_value, optional);
  if (!missing.empty()) loaded.why = "the driver is too old: it has no " + missing;
  return loaded;
}

// A library of CUDA: the one that is mapped already, then CUDA_HOME, then where the loader looks.
Result<sys::Library> open_cuda_library(const char* stem) {
  std::vector<std::string> names;
  for (const char* major : {"13", "12"}) names.push_back(fmt::format("lib{}.so.{}", stem, major));
  for (const std::string& name : names)
    if (void* mapped = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(mapped);
      return sys::Library::open(name);
    }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root)
      for (const std::string& name : names)
        for (const char* folder : {"lib64", "lib"})
          if (auto found = sys::Library::open(fmt::format("{}/{}/{}", root, folder, name)))
            return found;
  for (const std::string& name : names) {
    if (auto found = sys::Library::open("/usr/local/cuda/lib64/" + name)) return found;
    if (auto found = sys::Library::open(name)) return found;
  }
  return Error{Fault::Environment, fmt::format("cannot find lib{}", stem),
               "it is not loaded, not in CUDA_HOME and not where the loader looks",
               "set CUDA_HOME"};
}

constexpr int kBf16 = 14, kFloat32Compute = 68;  // CUDA_R_16BF, CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;            // CUBLAS_GEMM_DEFAULT

}  // namespace

Result<const CudaDriver*> cuda_driver() {
  static const Loaded* loaded = new Loaded(load());
  if (!loaded->why.empty())
    return Error{Fault::Environment, "no GPU to measure on", loaded->why,
                 "install the NVIDIA driver; --device engine"};
  return &loaded->driver;
}

std::string cuda_error_text(const CudaDriver& driver, int code) {
  const char *name = nullptr, *words = nullptr;
  driver.error_name(code, &name);
  driver.error_string(code, &words);
  return fmt::format("{}: {}", name ? name : fmt::format("CUDA error {}", code),
                     words ? words : "no text for it");
}

Result<Nvml> Nvml::open(const std::string& pci) {
  TRY(const sys::Library library, sys::Library::open("libnvidia-ml.so.1"));
  const auto init = reinterpret_cast<int (*)()>(library.find("nvmlInit_v2"));
  const auto by_pci = reinterpret_cast<int (*)(const char*, void**)>(
      library.find("nvmlDeviceGetHandleByPciBusId_v2"));
  Nvml nvml;
  if (!init || !by_pci || init() != 0 || by_pci(pci.c_str(), &nvml.device_) != 0)
    return Error{Fault::Environment, "cannot query NVML", "it does not know the GPU " + pci, ""};
  std::string missing;
  find(library, "nvmlDeviceGetClockInfo", nvml.clock_, missing);
  find(library, "nvmlDeviceGetMaxClockInfo", nvml.most_clock_, missing);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons_, missing);
  find(library, "nvmlDeviceGetPowerUsage", nvml.power_, missing);
  find(library, "nvmlDeviceGetTemperature", nvml.temperature_, missing);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes_, missing);
  find(library, "nvmlSystemGetDriverVersion", nvml.driver_, missing);
  return nvml;
}

namespace {
constexpr int kSmClock = 1, kGpuTemperature = 0;
}

unsigned Nvml::sm_mhz() const {
  unsigned mhz = 0;
  return clock_ && clock_(device_, kSmClock, &mhz) == 0 ? mhz : 0;
}

unsigned Nvml::most_sm_mhz() const {
  unsigned mhz = 0;
  return most_clock_ && most_clock_(device_, kSmClock, &mhz) == 0 ? mhz : 0;
}

uint64_t Nvml::reasons() const {
  unsigned long long bits = 0;
  return reasons_ && reasons_(device_, &bits) == 0 ? bits : 0;
}

double Nvml::watts() const {
  unsigned milliwatts = 0;
  return power_ && power_(device_, &milliwatts) == 0 ? milliwatts / 1e3 : 0;
}

double Nvml::celsius() const {
  unsigned degrees = 0;
  return temperature_ && temperature_(device_, kGpuTemperature, &degrees) == 0 ? degrees : 0;
}

bool Nvml::processes(Process* into, unsigned& count) const {
  struct Row {  // nvmlProcessInfo_t of version 2 and 3
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  Row rows[64] = {};
  unsigned room = std::size(rows);
  if (!processes_ || processes_(device_, &room, rows) != 0) return false;
  const unsigned most = count;
  count = 0;
  for (unsigned i = 0; i < room && count < most; ++i)
    into[count++] = {rows[i].pid, rows[i].used_bytes};
  return true;
}

std::string Nvml::driver() const {
  char text[96] = {};
  return driver_ && driver_(text, sizeof text) == 0 ? text : "";
}

Result<Blas> Blas::open(CuStream stream) {
  TRY(const sys::Library library, open_cuda_library("cublas"));
  const auto create = reinterpret_cast<int (*)(void**)>(library.find("cublasCreate_v2"));
  const auto set_stream =
      reinterpret_cast<int (*)(void*, CuStream)>(library.find("cublasSetStream_v2"));
  Blas blas;
  std::string missing;
  find(library, "cublasGemmEx", blas.gemm_, missing);
  if (!create || !set_stream || !blas.gemm_)
    return Error{Fault::Environment, "cannot use cuBLAS", "it has no cublasGemmEx", ""};
  // The handle is never destroyed: it would free memory while the process ends.
  if (int code = create(&blas.handle_); code != 0 || set_stream(blas.handle_, stream) != 0)
    return Error{Fault::Environment, "cannot use cuBLAS",
                 fmt::format("cublasCreate returned {}", code), ""};
  return blas;
}

int Blas::multiply(int n, CuPointer a, CuPointer b, CuPointer c) const {
  const float one = 1, zero = 0;
  const auto at = [](CuPointer pointer) { return reinterpret_cast<void*>(pointer); };
  return gemm_(handle_, 0, 0, n, n, n, &one, at(a), kBf16, n, at(b), kBf16, n, &zero, at(c), kBf16,
               n, kFloat32Compute, kDefaultAlgorithm);
}

}  // namespace kiln::measure
