// SPDX-License-Identifier: Apache-2.0
// An engine that runs nothing and tells what it was asked: the front is tested against it, without
// PTX.
#include "fake_engine.h"

#include <string.h>

namespace {

FakeEngineLog g_log;

void* register_image(const void* wrapper) {
  g_log.images++;
  return const_cast<void*>(wrapper);
}
void register_function(void*, const void*, const char* name) {
  strncpy(g_log.function, name, sizeof g_log.function - 1);
}
void register_variable(void*, void*, const char* name, uint64_t bytes, uint32_t flags) {
  strncpy(g_log.variable, name, sizeof g_log.variable - 1);
  g_log.variable_bytes = bytes;
  g_log.variable_flags = flags;
}
void unregister_image(void*) {}

int launch(const KilnEngineLaunch* l) {
  g_log.launches++;
  g_log.grid = l->grid;
  g_log.block = l->block;
  g_log.cluster = l->cluster;
  g_log.flags = l->flags;
  g_log.shared = l->dynamic_shared_bytes;
  g_log.check_memory = l->check_memory;
  g_log.region_count = l->region_count;
  for (uint32_t i = 0; i < l->region_count && i < 4; i++) {
    g_log.regions[i] = l->regions[i];
    strncpy(g_log.region_names[i], l->regions[i].name, sizeof g_log.region_names[i] - 1);
  }
  g_log.argument = *static_cast<int*>(l->arguments[0]);
  return g_log.next_error;
}

int fake_malloc(void** data, size_t bytes) {
  g_log.malloc_bytes = bytes;
  *data = &g_log;
  return 0;
}
int fake_set_attribute(const void*, int attribute, int value) {
  g_log.attribute = attribute;
  g_log.attribute_value = value;
  return 0;
}

void* runtime_function(const char* name) {
  if (!strcmp(name, "cudaMalloc")) return reinterpret_cast<void*>(&fake_malloc);
  if (!strcmp(name, "cudaFuncSetAttribute")) return reinterpret_cast<void*>(&fake_set_attribute);
  return nullptr;
}

const char* last_message() { return "error: the fake engine was told to fail"; }

const KilnEngine kEngine = {KILN_ENGINE_ABI_VERSION,
                            sizeof(KilnEngine),
                            "test",
                            register_image,
                            register_function,
                            register_variable,
                            unregister_image,
                            launch,
                            runtime_function,
                            last_message,
                            nullptr,
                            [] {},
                            nullptr,
                            nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const KilnEngine* kiln_engine(uint32_t wanted) {
  return wanted == KILN_ENGINE_ABI_VERSION ? &kEngine : nullptr;
}
extern "C" __attribute__((visibility("default"))) FakeEngineLog* fake_engine_log() {
  return &g_log;
}
