// SPDX-License-Identifier: Apache-2.0
// Where are the real libcudart, the engine, and a GPU? Looked for once, when first needed; nothing
// here touches the driver.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dynamic.h"
#include "front.h"

namespace kiln::detail {
namespace {

struct Cudart {
  void* handle = nullptr;
  int major = 0;
  Text why;
};

// libcudart of the folder that torch was loaded from: site-packages/torch/lib ->
// site-packages/nvidia/*/lib.
bool open_beside_torch(Cudart& found) {
  void* torch = open_mapped("libtorch_cpu.so");
  if (!torch) return false;
  char path[PATH_MAX];
  if (!path_of_symbol(find_symbol(torch, "aoti_torch_get_data_ptr"), path)) return false;
  char* slash = strrchr(path, '/');
  if (!slash) return false;
  *slash = 0;
  static const struct {
    int major;
    const char* place;
  } kPlaces[] = {{13, "libcudart.so.13"},
                 {13, "../../nvidia/cu13/lib/libcudart.so.13"},
                 {12, "libcudart.so.12"},
                 {12, "../../nvidia/cuda_runtime/lib/libcudart.so.12"}};
  for (const auto& place : kPlaces) {
    Text full;
    full.add(path).add("/").add(place.place);
    if (void* handle = open_library(full.c_str(), nullptr)) {
      found.handle = handle;
      found.major = place.major;
      return true;
    }
  }
  return false;
}

// KILN_CUDART names one file and ends the search, for whoever has several.
bool open_wished(Cudart& found) {
  const char* path = getenv("KILN_CUDART");
  if (!path || !*path) return false;
  Text loader;
  void* handle = open_library(path, &loader);
  auto version = handle
                     ? reinterpret_cast<int (*)(int*)>(find_symbol(handle, "cudaRuntimeGetVersion"))
                     : nullptr;
  int number = 0;
  if (version && version(&number) == 0 && number >= 12000 && number < 14000) {
    found.handle = handle;
    found.major = number / 1000;
    return true;
  }
  Text what;
  what.addf("cannot use the CUDA runtime %s", path);
  if (handle)
    loader.addf("it is of version %d.%d; kiln works with 12 and 13", number / 1000,
                number % 1000 / 10);
  add_error(found.why, what.c_str(), loader.c_str(),
            "set KILN_CUDART to a libcudart.so.12 or .13, or unset it");
  return true;
}

void look_for_cudart(Cudart& found) {
  if (open_wished(found)) return;
  // One that is mapped already is the one whose context and streams the process uses.
  static const struct {
    int major;
    const char* name;
  } kNames[] = {{13, "libcudart.so.13"}, {12, "libcudart.so.12"}};
  for (const auto& name : kNames)
    if (void* handle = open_mapped(name.name)) {
      found.handle = handle;
      found.major = name.major;
      return;
    }
  if (open_beside_torch(found)) return;
  const char* roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  for (const auto& name : kNames) {
    for (const char* root : roots) {
      if (!root || !*root) continue;
      Text full;
      full.add(root).add("/lib64/").add(name.name);
      if (void* handle = open_library(full.c_str(), nullptr)) {
        found.handle = handle;
        found.major = name.major;
        return;
      }
    }
    if (void* handle = open_library(
            name.name, nullptr)) {  // as the dynamic loader searches, LD_LIBRARY_PATH included
      found.handle = handle;
      found.major = name.major;
      return;
    }
  }
  add_error(found.why, "cannot find the CUDA runtime",
            "neither libcudart.so.13 nor libcudart.so.12 is loaded, in torch's folder, in "
            "CUDA_HOME or where the "
            "loader looks",
            "import torch first, set CUDA_HOME, or pip install nvidia-cuda-runtime");
}

Cudart& cudart() {
  static Cudart* found = [] {
    auto* made = new Cudart;  // never freed: calls may come while the process ends
    look_for_cudart(*made);
    return made;
  }();
  return *found;
}

struct EngineFound {
  const KilnEngine* engine = nullptr;
  Text why;
};

bool open_engine(EngineFound& found, const char* path, const char* how) {
  if (access(path, R_OK) != 0) {
    found.why.addf("\n       %s: %s does not exist", how, path);
    return false;
  }
  Text loader;
  void* handle = open_library(path, &loader);
  if (!handle) {
    found.why.addf("\n       %s: %s", how, loader.c_str());
    return false;
  }
  auto function = reinterpret_cast<KilnEngineFunction>(find_symbol(handle, KILN_ENGINE_SYMBOL));
  found.engine = function ? function(KILN_ENGINE_ABI_VERSION) : nullptr;
  if (!found.engine)
    found.why.addf(
        "\n       %s: %s is from another version of kiln (this library is from " KILN_VERSION_STRING
        ")",
        how, path);
  return found.engine != nullptr;
}

bool open_engine_of_command(EngineFound& found) {
  const char* path = getenv("PATH");
  while (path && *path) {
    const char* end = strchr(path, ':');
    const size_t size = end ? static_cast<size_t>(end - path) : strlen(path);
    Text command;
    command.add(path, size).add("/kiln");
    char real[PATH_MAX];
    if (size && access(command.c_str(), X_OK) == 0 && realpath(command.c_str(), real)) {
      char* slash = strrchr(real, '/');
      *slash = 0;
      Text engine;
      engine.add(real).add("/../lib/libkiln_engine.so");
      return open_engine(found, engine.c_str(), "next to the kiln command on PATH");
    }
    path = end ? end + 1 : nullptr;
  }
  found.why.add("\n       no kiln command on PATH");
  return false;
}

void look_for_engine(EngineFound& found) {
  const char* wish = getenv("KILN_ENGINE");
  if (wish && *wish) {
    if (open_engine(found, wish, "KILN_ENGINE")) return;
  } else {
    found.why.add("\n       KILN_ENGINE is not set");
    char path[PATH_MAX];
    if (path_of_symbol(reinterpret_cast<void*>(&find_engine), path)) {
      if (char* slash = strrchr(path, '/')) {
        *slash = 0;
        Text beside;
        beside.add(path).add("/libkiln_engine.so");
        if (open_engine(found, beside.c_str(), "next to this library")) return;
      }
    }
    if (open_engine_of_command(found)) return;
  }
  Text whole;
  whole
      .add(
          "error: cannot run a kernel on the CPU\n  why: kiln's engine (libkiln_engine.so) was not "
          "found:")
      .add(found.why.c_str())
      .add(
          "\n  fix: install kiln (pip install kiln_cuda-*.whl), or set KILN_ENGINE to "
          "libkiln_engine.so");
  found.why.clear();
  found.why.add(whole.c_str());
}

}  // namespace

int real_major(Text* why) {
  Cudart& found = cudart();
  if (!found.handle && why) why->add(found.why.c_str());
  return found.major;
}

void* real_symbol(const char* name) {
  Cudart& found = cudart();
  return found.handle ? find_symbol(found.handle, name) : nullptr;
}

void* real_function(const char* name) {
  Cudart& found = cudart();
  if (!found.handle) {
    Text text;
    text.add(found.why.c_str());
    throw_text(static_cast<Text&&>(text));
  }
  void* function = find_symbol(found.handle, name);
  if (!function) {
    Text text;
    text.addf(
        "error: the CUDA runtime has no %s\n  why: libcudart.so.%d in this process does not export "
        "it",
        name, found.major);
    throw_text(static_cast<Text&&>(text));
  }
  return function;
}

void add_cuda_error(Text& text, int code) {
  const char *name = nullptr, *words = nullptr;
  if (void* handle = cudart().handle) {
    using Describe = const char* (*)(int);
    if (auto f = reinterpret_cast<Describe>(find_symbol(handle, "cudaGetErrorName")))
      name = f(code);
    if (auto f = reinterpret_cast<Describe>(find_symbol(handle, "cudaGetErrorString")))
      words = f(code);
  }
  text.addf("%s (%d): %s", name ? name : "CUDA error", code, words ? words : "no text for it");
}

const KilnEngine* find_engine(Text* why) {
  static EngineFound* found = [] {
    auto* made = new EngineFound;
    look_for_engine(*made);
    return made;
  }();
  if (!found->engine && why) why->add(found->why.c_str());
  return found->engine;
}

bool machine_has_gpu() {
  static const bool has = [] {
    const char* visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && (!*visible || !strcmp(visible, "-1") || !strcmp(visible, "NoDevFiles")))
      return false;
    if (access("/dev/dxg", F_OK) == 0) return true;                                        // WSL
    if (access("/dev/nvidiactl", F_OK) != 0) return access("/dev/nvhost-gpu", F_OK) == 0;  // Jetson
    DIR* dir = opendir("/dev");
    if (!dir) return true;
    bool found = false;
    while (const dirent* entry = readdir(dir))
      found |= strncmp(entry->d_name, "nvidia", 6) == 0 && entry->d_name[6] >= '0' &&
               entry->d_name[6] <= '9';
    closedir(dir);
    return found;
  }();
  return has;
}

Wish wished_device_now() {
  const char* text = getenv("KILN_DEVICE");
  if (text && (!strcmp(text, "engine") || !strcmp(text, "cpu"))) return Wish::engine;
  if (text && !strcmp(text, "cuda")) return Wish::cuda;
  return Wish::none;
}

Wish wished_device() {
  static const Wish wish = wished_device_now();
  return wish;
}

Backend default_backend() {
  const Wish wish = wished_device();
  if (wish == Wish::none) return machine_has_gpu() ? Backend::real : Backend::engine;
  return wish == Wish::cuda ? Backend::real : Backend::engine;
}

}  // namespace kiln::detail
