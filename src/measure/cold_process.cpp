// SPDX-License-Identifier: Apache-2.0
#include "measure/cold_process.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "host/arguments.h"
#include "host/op_call.h"
#include "measure/device/cuda_driver.h"
#include "measure/sample/statistics.h"
#include "sys/clock.h"

namespace kiln::measure {
namespace {

constexpr int kSteadyCalls = 50;

class Clock {
 public:
  explicit Clock(ColdRun& run) : run_(run) {}
  // `body` gives "" or why it could not.
  template <class Body>
  bool stage(std::string name, Body body) {
    const double begin = sys::now_seconds();
    const std::string why = body();
    const double ns = (sys::now_seconds() - begin) * 1e9;
    run_.stages.push_back({std::move(name), why.empty() ? ns : -1, why});
    return why.empty();
  }
  void skip(std::string name, std::string why) {
    run_.stages.push_back({std::move(name), -1, std::move(why)});
  }

 private:
  ColdRun& run_;
};

std::string loader_error(void* handle) {
  if (handle) return "";
  const char* words = dlerror();
  return words ? words : "the loader gave no reason";
}

// The first of the names that can be loaded.
void* open_first(std::initializer_list<const char*> names, std::string& why) {
  for (const char* name : names) {
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    why = loader_error(handle);
    if (handle) return handle;
  }
  return nullptr;
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A handle of cuBLAS or cuDNN: the library and its create function.
void time_handle(Clock& clock, const char* name, std::initializer_list<const char*> libraries,
                 const char* create) {
  clock.stage(name, [&]() -> std::string {
    std::string why;
    void* library = open_first(libraries, why);
    if (!library) return why;
    auto* make = symbol<int(void**)>(library, create);
    void* handle = nullptr;
    const int code = make ? make(&handle) : -1;
    return code == 0 ? "" : fmt::format("{} returned {}", create, code);
  });
}

// Driver, context, stream, libraries. False: no GPU.
bool time_driver(Clock& clock) {
  constexpr const char* kStages[] = {"cuInit",    "context",       "stream",
                                     "libcudart", "cuBLAS handle", "cuDNN handle"};
  std::string why;
  const CudaDriver* cu = nullptr;
  const bool has_driver = clock.stage("driver library", [&]() -> std::string {
    const auto driver = cuda_driver();
    if (!driver) return "skipped, no GPU: " + driver.error().why;
    cu = *driver;
    return "";
  });
  const auto skip_rest = [&](size_t from, const std::string& reason) {
    for (size_t i = from; i < std::size(kStages); ++i) clock.skip(kStages[i], reason);
    return false;
  };
  if (!has_driver) return skip_rest(0, "skipped, no GPU");
  CuDevice device = 0;
  if (!clock.stage("cuInit", [&]() -> std::string {
        const int code = cu->init(0);
        return code ? "skipped, no GPU: " + cuda_error_text(*cu, code) : "";
      }))
    return skip_rest(1, "skipped, no GPU");
  clock.stage("context", [&]() -> std::string {
    CuContext context = nullptr;
    int code = cu->device_get(&device, 0);
    if (!code) code = cu->primary_retain(&context, device);
    if (!code) code = cu->context_set(context);
    return code ? cuda_error_text(*cu, code) : "";
  });
  clock.stage("stream", [&]() -> std::string {
    CuStream stream = nullptr;
    const int code = cu->stream_create(&stream, 0);
    return code ? cuda_error_text(*cu, code) : "";
  });
  clock.stage("libcudart", [&]() -> std::string {
    open_first({"libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so.13",
                "/usr/local/cuda/lib64/libcudart.so.12"},
               why);
    return why;
  });
  time_handle(clock, "cuBLAS handle",
              {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13",
               "/usr/local/cuda/lib64/libcublas.so.12"},
              "cublasCreate_v2");
  time_handle(clock, "cuDNN handle", {"libcudnn.so.9", "libcudnn.so.8"}, "cudnnCreate");
  return true;
}

}  // namespace

Json to_json(const ColdRequest& r) {
  return {{"kind", r.kind},
          {"library", r.library.string()},
          {"dependents", r.dependents},
          {"op", r.op},
          {"arguments", r.arguments}};
}

Result<ColdRequest> cold_request(const Json& json) {
  try {
    return ColdRequest{json.at("kind"), json.at("library").get<std::string>(),
                       json.at("dependents").get<std::vector<std::string>>(), json.at("op"),
                       json.at("arguments").get<std::vector<std::string>>()};
  } catch (const Json::exception& e) {
    return Error{Fault::Bug, "cannot read a request for a cold start", e.what(), ""};
  }
}

Result<ColdRun> run_cold_stages(const ColdRequest& request) {
  ColdRun run{request.kind, {}};
  Clock clock(run);
  time_driver(clock);
  for (const std::string& name : request.dependents)
    clock.stage("dlopen " + name,
                [&] { return loader_error(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)); });
  const std::string path = std::filesystem::absolute(request.library).string();
  clock.stage("dlopen of the library",
              [&] { return loader_error(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)); });
  // The same file again: what was left unresolved is resolved now.
  clock.stage("symbol resolution",
              [&] { return loader_error(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)); });
  TRY(const host::OpLibrary library, host::OpLibrary::open(request.library));
  TRY(const host::BoundCall bound, host::bind_call(library.ops(), request.op, request.arguments));
  TRY(const host::Device device, library.default_device());
  for (const char* name : {"first allocation", "second allocation"}) {
    void* memory = nullptr;
    clock.stage(name, [&]() -> std::string {
      return library.table().allocate(device.type, device.index, 1 << 20, &memory)
                 ? library.last_error("").why
                 : "";
    });
    if (memory) library.table().deallocate(device.type, device.index, memory);
  }
  TRY(host::OpCall call, host::OpCall::prepare(library, bound, device, 0));
  Status failed;
  const auto called = [&](bool wait) -> std::string {
    Status status = call.call();
    if (status && wait) status = call.synchronize();
    if (status) return "";
    failed = std::move(status);
    return failed.error().why;
  };
  // Module load (lazy) or PTX compilation is in the first; what it left to do is in the wait.
  clock.stage("first call", [&] { return called(false); });
  clock.stage("wait for it", [&]() -> std::string {
    const Status status = call.synchronize();
    return status ? "" : status.error().why;
  });
  if (!failed) return std::move(failed.error());
  clock.stage("second call", [&] { return called(true); });
  std::vector<double> steady;
  for (int i = 0; i < kSteadyCalls; ++i) {
    const double begin = sys::now_seconds();
    if (!called(true).empty()) return std::move(failed.error());
    steady.push_back((sys::now_seconds() - begin) * 1e9);
  }
  run.stages.push_back({"steady call", median(steady), ""});
  return run;
}

}  // namespace kiln::measure
