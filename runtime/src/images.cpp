// SPDX-License-Identifier: Apache-2.0
#include "images.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "front.h"

// What pthread_atfork() calls: that is in no shared library, and in older systems not in libc
// either.
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                 void* library);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace kiln::detail {
namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Image* g_images = nullptr;
int g_image_count = 0;
int g_ready[2] = {};  // how many images each back end has been given

struct Lock {
  Lock() { pthread_mutex_lock(&g_mutex); }
  ~Lock() { pthread_mutex_unlock(&g_mutex); }
};

// A fork waits for whoever registers; else its child could find this lock taken by a thread that it
// does not have. Asked for when the engine is loaded: so this lock is taken before the engine's, as
// make_ready() takes them.
void watch_forks() {
  static bool watched = false;  // under the lock
  if (watched) return;
  watched = true;
  void (*unlock)() = [] { pthread_mutex_unlock(&g_mutex); };
  __register_atfork([] { pthread_mutex_lock(&g_mutex); }, unlock, unlock, &__dso_handle);
}

// Called by nvcc's code while a library loads: nobody there takes an error.
template <class T>
T* make() {
  auto* made = static_cast<T*>(calloc(1, sizeof(T)));
  if (made) return made;
  fprintf(stderr, "error: cannot load a library's kernels\n  why: the host is out of memory\n");
  _exit(1);  // not abort(): the program has done nothing wrong
}

template <class... A>
auto real(const char* name) {
  return reinterpret_cast<void (*)(A...)>(real_function(name));
}

void give_to_real(Image* image) {
  auto start = reinterpret_cast<void** (*)(void*)>(real_function("__cudaRegisterFatBinary"));
  void** handle = start(image->wrapper);
  image->handles[0] = handle;
  auto function =
      real<void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*>(
          "__cudaRegisterFunction");
  for (const Function* f = image->functions; f; f = f->next)
    function(handle, static_cast<const char*>(f->host), f->device, f->name, f->thread_limit,
             nullptr, nullptr, nullptr, nullptr, nullptr);
  using Register = void (*)(void**, char*, char*, const char*, int, size_t, int, int);
  using RegisterManaged = void (*)(void**, void**, char*, const char*, int, size_t, int, int);
  for (const Variable* v = image->variables; v; v = v->next) {
    if (v->managed)
      reinterpret_cast<RegisterManaged>(real_function("__cudaRegisterManagedVar"))(
          handle, static_cast<void**>(v->host), v->device, v->name, v->external, v->bytes,
          v->constant, v->global);
    else
      reinterpret_cast<Register>(real_function("__cudaRegisterVar"))(
          handle, static_cast<char*>(v->host), v->device, v->name, v->external, v->bytes,
          v->constant, v->global);
  }
  real<void**>("__cudaRegisterFatBinaryEnd")(handle);
}

void give_to_engine(const KilnEngine* engine, Image* image) {
  void* handle = engine->register_image(image->wrapper);
  image->handles[1] = handle;
  for (const Function* f = image->functions; f; f = f->next)
    engine->register_function(handle, f->host, f->name);
  for (const Variable* v = image->variables; v; v = v->next)
    engine->register_variable(handle, v->host, v->name, v->bytes,
                              static_cast<uint32_t>((v->constant ? KILN_VARIABLE_CONSTANT : 0) |
                                                    (v->managed ? KILN_VARIABLE_MANAGED : 0)));
}

}  // namespace

void make_ready(Backend backend) {
  const int b = static_cast<int>(backend);
  if (__atomic_load_n(&g_ready[b], __ATOMIC_ACQUIRE) ==
      __atomic_load_n(&g_image_count, __ATOMIC_ACQUIRE))
    return;
  const KilnEngine* engine = nullptr;
  if (backend == Backend::engine) {
    Text why;
    engine = find_engine(&why);
    if (!engine) throw_text(static_cast<Text&&>(why));
  }
  Lock lock;
  if (engine) watch_forks();
  for (Image* image = g_images; image; image = image->next)
    if (!image->handles[b]) engine ? give_to_engine(engine, image) : give_to_real(image);
  __atomic_store_n(&g_ready[b], g_image_count, __ATOMIC_RELEASE);
}

Function* find_function(const void* host) {
  for (Image* image = g_images; image; image = image->next)
    for (Function* f = image->functions; f; f = f->next)
      if (f->host == host) return f;
  return nullptr;
}

const char* kernel_name(const void* host) {
  const Function* f = find_function(host);
  return f ? f->name : "a kernel that is not in this library";
}

}  // namespace kiln::detail

using namespace kiln::detail;

#pragma GCC visibility push(hidden)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Image* image = make<Image>();
  image->wrapper = wrapper;
  Lock lock;
  Image** end = &g_images;
  while (*end) end = &(*end)->next;
  *end = image;
  __atomic_add_fetch(&g_image_count, 1, __ATOMIC_RELEASE);
  return reinterpret_cast<void**>(image);
}

void __cudaRegisterFatBinaryEnd(void**) {}

// Op libraries and programs are never unmapped before the process ends (-z nodelete), and then the
// back end may be gone already.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int thread_limit, void*, void*, void*, void*, int*) {
  Function* f = make<Function>();
  *f = {host, device, name, thread_limit, image_of(handle)->functions, nullptr, nullptr};
  image_of(handle)->functions = f;
}

void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external,
                       size_t bytes, int constant, int global) {
  Variable* v = make<Variable>();
  *v = {host, device, name, external, bytes, constant, global, false, image_of(handle)->variables};
  image_of(handle)->variables = v;
}

void __cudaRegisterManagedVar(void** handle, void** host, char* device, const char* name,
                              int external, size_t bytes, int constant, int global) {
  Variable* v = make<Variable>();
  *v = {host, device, name, external, bytes, constant, global, true, image_of(handle)->variables};
  image_of(handle)->variables = v;
  image_of(handle)->has_managed = true;
}

void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

}  // extern "C"
#pragma GCC visibility pop
