// SPDX-License-Identifier: Apache-2.0
// A libtorch_cpu.so with the C shim alone, which counts what is alive: who leaks an argument that
// was never looked at?
#include "fake_torch.h"

#include <stdlib.h>
#include <string.h>

#include <vector>

extern "C" int aoti_torch_delete_tensor_object(void* tensor);

namespace {
float g_data[4];
int64_t g_size = 4, g_stride = 1;
char g_library;

FakeTorch& torch() {
  static FakeTorch the = {{},
                          [](bool refuses) -> void* {
                            torch().log.tensors++;
                            return new FakeTensor{refuses};
                          },
                          [](const uint64_t* items, size_t count) -> void* {
                            torch().log.lists++;
                            return new std::vector<uint64_t>(items, items + count);
                          },
                          [](const char* text) -> void* {
                            torch().log.strings++;
                            return strdup(text);
                          },
                          &aoti_torch_delete_tensor_object};
  return the;
}
std::vector<uint64_t>& list_of(void* handle) {
  return *static_cast<std::vector<uint64_t>*>(handle);
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
FakeTorch* fake_torch() { return &torch(); }

int aoti_torch_get_data_ptr(void*, void** data) { return *data = g_data, 0; }
int aoti_torch_get_dim(void* tensor, int64_t* dim) {
  return *dim = 1, static_cast<FakeTensor*>(tensor)->refuses;
}
int aoti_torch_get_sizes(void*, int64_t** sizes) { return *sizes = &g_size, 0; }
int aoti_torch_get_strides(void*, int64_t** strides) { return *strides = &g_stride, 0; }
int aoti_torch_get_dtype(void*, int32_t* dtype) { return *dtype = 6, 0; }
int aoti_torch_get_device_type(void*, int32_t* type) { return *type = 0, 0; }
int aoti_torch_get_device_index(void*, int32_t* index) { return *index = 0, 0; }
int aoti_torch_delete_tensor_object(void* tensor) {
  torch().log.tensors--;
  delete static_cast<FakeTensor*>(tensor);
  return 0;
}
int aoti_torch_new_tensor_handle(void*, void** made) {
  return *made = torch().new_tensor(false), 0;
}
int aoti_torch_empty_strided(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t,
                             void** made) {
  return *made = torch().new_tensor(false), 0;
}
int aoti_torch_library_init_fragment(const char*, const char*, uint32_t, void** made) {
  return *made = &g_library, 0;
}
int aoti_torch_library_init_impl(const char*, const char* key, const char*, uint32_t, void** made) {
  return *made = strcmp(key, "CUDA") == 0 ? &g_library + 1 : &g_library, 0;
}
int aoti_torch_library_def(void*, const char*) { return 0; }
int aoti_torch_library_impl(void* library, const char*, FakeBoxed boxed) {
  if (library == &g_library) torch().log.boxed[torch().log.boxed_count++] = boxed;
  return 0;
}
int torch_library_impl(void* library, const char* name, FakeBoxed boxed, uint64_t) {
  return aoti_torch_library_impl(library, name, boxed);
}
int aoti_torch_delete_library_object(void*) { return 0; }
bool aoti_torch_grad_mode_is_enabled() { return true; }
int torch_new_list_reserve_size(size_t, void** made) {
  return *made = torch().new_list(nullptr, 0), 0;
}
int torch_list_size(void* list, size_t* size) { return *size = list_of(list).size(), 0; }
int torch_list_get_item(void* list, size_t index, uint64_t* item) {
  return *item = list_of(list)[index], 0;
}
int torch_list_push_back(void* list, uint64_t item) { return list_of(list).push_back(item), 0; }
int torch_delete_list(void* list) {
  torch().log.lists--;
  delete &list_of(list);
  return 0;
}
int torch_string_length(void* text, size_t* length) {
  return *length = strlen(static_cast<char*>(text)), 0;
}
int torch_string_c_str(void* text, const char** start) {
  return *start = static_cast<char*>(text), 0;
}
int torch_delete_string(void* text) {
  torch().log.strings--;
  free(text);
  return 0;
}
}
#pragma GCC visibility pop
