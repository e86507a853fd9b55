// SPDX-License-Identifier: Apache-2.0
// How is untrusted input driven through the front end, the decoder and the engine?
#include "targets.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "binary/fatbin.h"
#include "engine/image.h"
#include "engine/launch.h"
#include "ptx/forms.h"
#include "ptx/parser.h"

namespace kiln::fuzz {

bool ptx(const uint8_t* data, size_t size) {
  using namespace engine;
  setenv("KILN_ENGINE_STEP_LIMIT", "20000", 1);
  setenv("KILN_ENGINE_THREADS", "1", 1);
  Heap heap;
  Image image(heap);
  if (!image.load(std::string(reinterpret_cast<const char*>(data), size))) return false;
  bool launched = false;
  for (const ptx::Function& function : image.module().functions) {
    if (!function.is_entry || function.body_text.empty()) continue;
    for (bool rows : {false, true}) {
      auto program = image.kernel(function.name, rows);
      if (!program) continue;
      // Whatever it computes, it may touch nothing but this buffer.
      std::vector<uint64_t> memory(256),
          parameters(((*program)->parameter_bytes + 7) / 8 + 1, reinterpret_cast<uint64_t>(memory.data()));
      std::vector<void*> arguments(function.parameters.size() + 1, parameters.data());
      KilnRegion region{memory.data(), memory.size() * 8, "memory", 1};
      KilnEngineLaunch launch{};
      launch.grid = {2, 1, 1};
      if (std::string_view(reinterpret_cast<const char*>(data), size).find("cluster") != std::string_view::npos)
        launch.cluster = {2, 1, 1};
      launch.block = {40, 1, 1};
      launch.arguments = arguments.data();
      launch.regions = &region;
      launch.region_count = launch.check_memory = 1;
      KernelFacts facts{*program, nullptr, image.static_shared_bytes(**program), kDefaultSharedBytes};
      launch_kernel(image, heap, facts, launch);
      launched = true;
    }
  }
  return launched;
}

bool fatbin(const uint8_t* data, size_t size) {
  binary::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  auto entries = binary::read_container(bytes);
  if (!entries) return false;
  bool unpacked = false;
  for (const binary::FatbinEntry& entry : *entries) unpacked |= static_cast<bool>(binary::read_image(bytes, entry));
  return unpacked;
}

}  // namespace kiln::fuzz
