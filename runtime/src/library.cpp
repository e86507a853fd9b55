// SPDX-License-Identifier: Apache-2.0
// What does a library show to callers without torch? kiln/abi.h, filled in here. Nothing is thrown
// across it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <new>

#include "call.h"
#include "dynamic.h"
#include "front.h"
#include "host_call.h"
#include "kiln/abi.h"
#include "memory.h"
#include "registry.h"
#include "result_buffers.h"
#include "torch.h"

namespace kiln::detail {
namespace {
thread_local char* t_error = nullptr;
}

void set_error(const char* text) {
  free(t_error);
  t_error = strdup(text);
}

namespace {

const char* last_error() { return t_error ? t_error : ""; }

template <class F>
int guarded(F&& f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    if (!current_call()) drop_configurations();
    set_error(e.what());
  } catch (...) {
    if (!current_call()) drop_configurations();
    set_error("error: an exception that is not a std::exception");
  }
  return 1;
}

int call(uint32_t op, const KilnValue* arguments, uint32_t count, KilnValue* results) {
  return guarded([&] {
    const Registry& all = registry();
    KILN_CHECK(op < all.count, "no op has the number ", op);
    call_op(all.records[op], arguments, count, results);
  });
}

int default_device(int32_t* type, int32_t* index) {
  *type = default_backend() == Backend::real ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU;
  *index = 0;
  return 0;
}

Device device_of(int32_t type, int32_t index) { return {static_cast<DeviceType>(type), index}; }

int allocate(int32_t type, int32_t index, size_t bytes, void** data) {
  return guarded([&] { *data = memory_allocate(device_of(type, index), bytes); });
}
int deallocate(int32_t type, int32_t index, void* data) {
  return guarded([&] { memory_free(device_of(type, index), data); });
}
int copy(void* to, int32_t to_type, const void* from, int32_t from_type, size_t bytes) {
  return guarded([&] {
    memory_copy(to, static_cast<DeviceType>(to_type), from, static_cast<DeviceType>(from_type),
                bytes);
  });
}
int synchronize(int32_t type, int32_t index) {
  return guarded([&] { memory_synchronize(device_of(type, index)); });
}

int use_stream_of_caller(void* stream) {
  use_stream(static_cast<cudaStream_t>(stream));
  return 0;
}

char* g_torch_status = nullptr;

int register_torch() {
  Text why;
  const bool good = torch_register(why);
  free(g_torch_status);
  g_torch_status = good ? nullptr : why.take();
  if (!good) set_error(g_torch_status);
  return good ? 0 : 1;
}

const char* torch_status() {
  if (torch_is_registered()) return "";
  return g_torch_status
             ? g_torch_status
             : "not registered: torch was not in the process when this library was loaded";
}

const KilnLibrary* describe_library() {
  static const KilnLibrary library = [] {
    const Registry& all = registry();
    KilnLibrary made = {};
    made.abi_version = KILN_ABI_VERSION;
    made.struct_bytes = sizeof(KilnLibrary);
    made.kiln_version = KILN_VERSION_STRING;
    made.name = all.library;
    made.op_count = all.count;
    made.ops = all.infos;
    made.call = call;
    made.last_error = last_error;
    made.default_device = default_device;
    made.allocate = allocate;
    made.deallocate = deallocate;
    made.copy = copy;
    made.synchronize = synchronize;
    made.register_torch = register_torch;
    made.torch_status = torch_status;
    made.use_stream = use_stream_of_caller;
    made.copied_results = copied_results;
    return made;
  }();
  return &library;
}

// The archive stands last on the link line: all ops have registered themselves when this runs.
__attribute__((constructor)) void on_load() {
  if (!registry().count && !registry().fault.size()) return;  // a program
  if (!open_mapped("libtorch_cpu.so")) return;
  // A constructor has nobody to tell but the terminal; kiln.load reads torch_status().
  if (register_torch()) fprintf(stderr, "%s\n", torch_status());
}

}  // namespace
}  // namespace kiln::detail

extern "C" __attribute__((visibility("default"))) const KilnLibrary* kiln_library(void) {
  const KilnLibrary* library = kiln::detail::describe_library();
  // No ops, and here is why: the caller has nothing else to ask.
  if (const auto& fault = kiln::detail::registry().fault; fault.size())
    kiln::detail::set_error(fault.c_str());
  return library;
}

// For a newer build of the same library in the same process.
extern "C" __attribute__((visibility("default"))) int kiln_unregister_torch(void) {
  kiln::detail::torch_unregister();
  return 0;
}
