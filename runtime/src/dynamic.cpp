// SPDX-License-Identifier: Apache-2.0
#include "dynamic.h"

#include <dlfcn.h>
#include <link.h>
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
    why->add(text ? text : "the loader gave no reason");
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

struct Found {
  Sibling* siblings;
  int most;
  int count;
};

// The desc of a note is the distance from itself to a Sibling.
const Sibling* read_note(const char* note, size_t size) {
  constexpr size_t kHeader = 12;
  while (size >= kHeader) {
    uint32_t field[3];  // size of the name, size of the desc, type
    memcpy(field, note, kHeader);
    const size_t name = (size_t{field[0]} + 3) / 4 * 4, desc = (size_t{field[1]} + 3) / 4 * 4;
    if (name > size - kHeader || desc > size - kHeader - name) return nullptr;
    const char* at = note + kHeader + name;
    if (field[0] == 5 && field[1] == 4 && field[2] == 1 && !memcmp(note + kHeader, "kiln", 5)) {
      int32_t distance;
      memcpy(&distance, at, 4);
      return reinterpret_cast<const Sibling*>(at + distance);
    }
    note = at + desc;
    size -= kHeader + name + desc;
  }
  return nullptr;
}

int look_at(dl_phdr_info* object, size_t, void* context) {
  auto* found = static_cast<Found*>(context);
  for (int i = 0; i < object->dlpi_phnum && found->count < found->most; i++) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    if (const Sibling* sibling = read_note(note, part.p_memsz))
      found->siblings[found->count++] = *sibling;
  }
  return 0;
}

}  // namespace

int find_siblings(Sibling* siblings, int most) {
  Found found{siblings, most, 0};
  dl_iterate_phdr(look_at, &found);
  return found.count;
}

}  // namespace kiln::detail

// The mark by which op libraries know each other in a process: asking the loader for a symbol of
// each of a hundred libraries would cost a millisecond at every load.
extern "C" {
extern const KilnLibrary* kiln_library(void);
extern int kiln_unregister_torch(void);
__attribute__((visibility("hidden"))) extern const kiln::detail::Sibling kiln_this_library;
__attribute__((used)) const kiln::detail::Sibling kiln_this_library = {
    KILN_ABI_VERSION, kiln_library, kiln_unregister_torch};
}
__asm__(
    ".pushsection .note.kiln,\"a\",%note\n"
    ".balign 4\n"
    ".long 5\n"
    ".long 4\n"
    ".long 1\n"
    ".asciz \"kiln\"\n"
    ".balign 4\n"
    ".long kiln_this_library - .\n"
    ".popsection\n");
