// SPDX-License-Identifier: Apache-2.0
#include "dynamic.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif

#ifdef OLDEST
extern "C" {
void* kiln_dlopen(const char*, int);
void* kiln_dlsym(void*, const char*);
char* kiln_dlerror(void);
int kiln_dladdr(const void*, Dl_info*);
int kiln_dlclose(void*);
}
__asm__(".symver kiln_dlopen, dlopen@" OLDEST);
__asm__(".symver kiln_dlsym, dlsym@" OLDEST);
__asm__(".symver kiln_dlerror, dlerror@" OLDEST);
__asm__(".symver kiln_dladdr, dladdr@" OLDEST);
__asm__(".symver kiln_dlclose, dlclose@" OLDEST);
#else
#define kiln_dlopen dlopen
#define kiln_dlsym dlsym
#define kiln_dlerror dlerror
#define kiln_dladdr dladdr
#define kiln_dlclose dlclose
#endif

namespace kiln::detail {

void* open_mapped(const char* name) { return kiln_dlopen(name, RTLD_NOW | RTLD_NOLOAD); }

void* open_library(const char* path, Text* why) {
  void* handle = kiln_dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle && why) {
    const char* text = kiln_dlerror();
    why->add(text ? text : "the loader gives no reason");
  }
  return handle;
}

void* find_symbol(void* handle, const char* name) { return kiln_dlsym(handle, name); }

bool path_of_symbol(const void* address, char (&path)[4096]) {
  Dl_info found;
  if (!address || !kiln_dladdr(address, &found) || !found.dli_fname) return false;
  const size_t size = strlen(found.dli_fname);
  if (size >= sizeof path) return false;
  memcpy(path, found.dli_fname, size + 1);
  return true;
}

namespace {

constexpr int kMostNames = 1024;
struct Names {
  char* names[kMostNames];
  int count = 0;
};

int keep_name(dl_phdr_info* object, size_t, void* context) {
  auto* names = static_cast<Names*>(context);
  if (object->dlpi_name && *object->dlpi_name && names->count < kMostNames) names->names[names->count++] = strdup(object->dlpi_name);
  return 0;
}

}  // namespace

void each_exporter(const char* symbol, void (*f)(void*, void*), void* context) {
  // Names first: the loader must not be called from inside dl_iterate_phdr.
  Names names;
  dl_iterate_phdr(keep_name, &names);
  for (int i = 0; i < names.count; i++) {
    void* handle = open_mapped(names.names[i]);
    free(names.names[i]);
    if (!handle) continue;
    void* address = kiln_dlsym(handle, symbol);
    // dlsym looks into dependencies too; only the object's own definition counts, and each object once: f compares.
    if (address) f(address, context);
    kiln_dlclose(handle);
  }
}

}  // namespace kiln::detail
