// SPDX-License-Identifier: Apache-2.0
// How does a test run PTX text? Without a fat binary and without the runtime: an image, arguments,
// a launch.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/cudart/launch.h"
#include "engine/cudart/threads.h"
#include "engine/decode/image.h"
#include "engine/machine/fault.h"

namespace kiln::engine {

inline std::string module_text(const std::string& functions) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + functions;
}

// A kernel `k` with the parameters given ("u64 p, u32 n") and the body.
inline std::string kernel_text(const std::string& parameters, const std::string& body) {
  std::string list;
  size_t at = 0;
  while (at < parameters.size()) {
    size_t end = parameters.find(',', at);
    std::string one = parameters.substr(at, end - at);
    size_t first = one.find_first_not_of(' ');
    list += (list.empty() ? ".param ." : ", .param .") + one.substr(first);
    at = end == std::string::npos ? parameters.size() : end + 1;
  }
  return module_text(
      ".visible .entry k(" + list +
      ")\n{\n.reg .pred %p<10>;\n.reg .b16 %rs<20>;\n.reg .b32 %r<40>;\n.reg .f32 %f<20>;\n"
      ".reg .b64 %rd<40>;\n.reg .f64 %fd<20>;\n" +
      body + "\nret;\n}\n");
}

struct Shape3 {
  KilnDim3 grid{1, 1, 1};
  KilnDim3 block{32, 1, 1};
  uint64_t shared = 0;
  uint32_t flags = 0;
  KilnDim3 cluster{0, 0, 0};
};

class Session {
 public:
  explicit Session(std::string text) {
    Status status = image.load(std::move(text));
    if (!status) load_error = format(status.error());
  }

  template <class... Arguments>
  LaunchOutcome launch(const char* name, Shape3 shape, Arguments... arguments) {
    if (!load_error.empty()) return {kInvalidPtx, load_error};
    Kernel kernel(image, name);
    for (bool rows : {false, true}) {
      if (auto program = kernel.program({rows, 0}); !program)
        return {kNotSupported, format(program.error())};
    }
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    KilnEngineLaunch what{};
    what.struct_bytes = sizeof what;
    what.flags = shape.flags;
    what.grid = shape.grid;
    what.block = shape.block;
    what.cluster = shape.cluster;
    what.arguments = pointers;
    what.dynamic_shared_bytes = shape.shared;
    what.regions = regions.data();
    what.region_count = static_cast<uint32_t>(regions.size());
    what.check_memory = 1;
    return launch_kernel(device, kernel, kMaxSharedBytesOptIn, what, for_rows);
  }

  template <class T>
  T* allow(std::vector<T>& memory, const char* name, bool writable = true) {
    regions.push_back({memory.data(), memory.size() * sizeof(T), name, writable});
    return memory.data();
  }

  Device device{&process_pool};
  Heap& heap = device.heap;
  Image image{device.heap};
  std::vector<KilnRegion> regions;
  std::string load_error;
  bool for_rows = true;  // false: run the program that fits every block, whatever the block is
};

}  // namespace kiln::engine
