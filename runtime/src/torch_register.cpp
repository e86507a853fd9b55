// SPDX-License-Identifier: Apache-2.0
// How does an op become torch.ops.<library>.<op>? Its schema is defined and its kernels are
// registered through libtorch's C shim; those of an earlier build of the same library make room
// first.
#include <stdlib.h>
#include <string.h>

#include "dynamic.h"
#include "kiln/abi.h"
#include "registry.h"
#include "torch.h"
#include "torch_shim.h"

extern "C" __attribute__((visibility("default"))) const KilnLibrary* kiln_library(void);

namespace kiln::detail {

bool load_shim(Shim& shim, Text& why) {
  void* cpu = open_mapped("libtorch_cpu.so");
  if (!cpu) {
    add_error(why, "torch is not in this process", "libtorch_cpu.so is not loaded",
              "import torch first");
    return false;
  }
  const char* missing = nullptr;
#define X(member, symbol, ...)                                                     \
  shim.member = reinterpret_cast<decltype(shim.member)>(find_symbol(cpu, symbol)); \
  if (!shim.member && !missing) missing = symbol;
  SHIM_REQUIRED(X)
#undef X
#define X(member, symbol, ...) \
  shim.member = reinterpret_cast<decltype(shim.member)>(find_symbol(cpu, symbol));
  SHIM_SINCE_2_10(X)
#undef X
  shim.requires_gradient = find_requires_gradient();
  shim.forward_gradient = find_forward_gradient();
  shim.undefined_tensor = undefined_tensor_of_torch();
  if (!missing) return true;
  Text reason;
  reason.addf("libtorch_cpu.so has no %s; kiln needs torch 2.7 or newer", missing);
  add_error(why, "this torch is too old", reason.c_str(), "pip install 'torch>=2.7'");
  return false;
}

namespace {

constexpr uint64_t kShim210 =
    (2ull << 56) |
    (10ull << 48);  // the conventions that this file follows, as torch encodes versions

// An earlier build of this library in the same process: its definitions stay, its kernels go.
struct Earlier {
  const Registry* mine;
  const char** defined;  // schemas that need no definition any more
  Text* why;
  bool fits;
};

bool same_name(const KilnOpInfo& a, const KilnOpInfo& b) {
  return !strcmp(a.name, b.name) && !strcmp(a.overload, b.overload);
}

constexpr int kMostSiblings = 256;

bool is_earlier(const Sibling& other, const Registry& mine) {
  return other.abi_version == KILN_ABI_VERSION && other.library != &kiln_library &&
         !strcmp(other.library()->name, mine.library) &&
         strncmp(other.library()->torch_status(),
                 "error:", 6);  // one that was refused has defined nothing
}

void compare_with(const KilnLibrary* other, Earlier& earlier) {
  for (uint32_t i = 0; i < earlier.mine->count; i++)
    for (uint32_t k = 0; k < other->op_count; k++) {
      const KilnOpInfo &mine = earlier.mine->infos[i], &theirs = other->ops[k];
      if (!same_name(mine, theirs)) continue;
      if (strcmp(mine.schema, theirs.schema)) {
        Text what;
        what.addf("the schema of %s::%s differs from the one registered earlier in this process",
                  earlier.mine->library, mine.name);
        Text reason;
        reason.addf("it was %s and is %s; torch keeps the first as long as the process lives",
                    theirs.schema, mine.schema);
        add_error(*earlier.why, what.c_str(), reason.c_str(),
                  "give the op or the library a new name, or start a new process");
        earlier.fits = false;
        return;
      }
      earlier.defined[i] = mine.schema;
    }
}

int implement(const Shim& t, void* library, const char* name, Boxed boxed) {
  return t.implement_2_10 ? t.implement_2_10(library, name, boxed, kShim210)
                          : t.implement(library, name, boxed);
}

bool refused(Text& why, const char* what, const char* name) {
  Text text;
  text.addf("torch refused to %s %s::%s", what, registry().library, name);
  add_error(why, text.c_str(), "see its reason above; another library may own that name",
            "give the library another name: kiln build --name, or name= in kiln.toml");
  return false;
}

bool register_all(Bridge& b, const char* const* defined, Text& why) {
  const Registry& all = registry();
  const Shim& t = b.shim;
  static const char* const kKeys[] = {"CPU", "CUDA", "CompositeExplicitAutograd", "Negative",
                                      "Conjugate"};
  static_assert(sizeof kKeys / sizeof *kKeys == sizeof b.implementations / sizeof(void*));
  constexpr int kFirstOfBits = 3, kKeyCount = 5;
  if (!b.definitions && t.init_fragment(all.library, "kiln", 0, &b.definitions))
    return refused(why, "open the namespace", "");
  const CLocale locale;
  for (uint32_t i = 0; i < all.count; i++)
    if (!defined[i] && t.define(b.definitions, all.infos[i].schema))
      return refused(why, "define", all.infos[i].name);
  for (uint32_t i = 0; i < all.count; i++) {
    const OpState* state = all.records[i]->state;
    Text name;
    name.add(state->info.name);
    if (*state->info.overload) name.add(".").add(state->info.overload);
    // An op without a tensor among its arguments dispatches on no device.
    const int from = state->has_tensor ? 0 : 2, to = state->has_tensor ? 2 : 3;
    for (int key = 0; key < kKeyCount; key++) {
      const Boxed kernel = key >= kFirstOfBits       ? all.records[i]->boxed_resolving
                           : key >= from && key < to ? all.records[i]->boxed
                                                     : nullptr;
      if (!kernel) continue;
      void*& library = b.implementations[key];
      if (!library && t.init_impl(all.library, kKeys[key], "kiln", 0, &library))
        return refused(why, "open", kKeys[key]);
      if (implement(t, library, name.c_str(), kernel))
        return refused(why, "implement", name.c_str());
    }
  }
  return true;
}

}  // namespace

bool torch_is_registered() { return bridge().registered; }

bool torch_register(Text& why) {
  Bridge& b = bridge();
  if (b.registered) return true;
  const Registry& all = registry();
  if (all.fault.size()) {
    why.add(all.fault.c_str());
    return false;
  }
  if (!load_shim(b.shim, why)) return false;
  if (all.count == 0) return b.registered = true;
  auto* defined = static_cast<const char**>(calloc(all.count, sizeof(char*)));
  Earlier earlier{&all, defined, &why, true};
  Sibling siblings[kMostSiblings];
  const int count = find_siblings(siblings, kMostSiblings);
  for (int i = 0; i < count; i++)
    if (earlier.fits && is_earlier(siblings[i], all)) compare_with(siblings[i].library(), earlier);
  bool good = earlier.fits;
  if (good &&
      b.definitions)  // taken back by a later build and asked for again: our own definitions stand
    for (uint32_t i = 0; i < all.count; i++) defined[i] = all.infos[i].schema;
  if (good) {
    for (int i = 0; i < count; i++)
      if (is_earlier(siblings[i], all)) siblings[i].unregister_torch();
    good = register_all(b, defined, why);
  }
  free(defined);
  return b.registered = good;
}

void torch_unregister() {
  Bridge& b = bridge();
  if (!b.registered) return;
  for (void*& library : b.implementations) {
    if (library) b.shim.delete_library(library);
    library = nullptr;
  }
  b.registered = false;
}

}  // namespace kiln::detail
