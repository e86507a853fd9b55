// SPDX-License-Identifier: Apache-2.0
// What does the engine make of PTX text? Reads jobs from standard input, one per line, and answers
// each with a line: "ok", or "error" and the text of it on the same line.
//   PTX-FILE MEMORY-FILE BLOCK GRID CLUSTER SHARED [MAP-FILE]
// The kernel is `k(.param .u64 memory)`, or `k(.param .u64 memory, .param .align 64 .b8 map[128])`;
// the bytes of MEMORY-FILE are what it points to, and are written back. MAP-FILE says which tensor
// in that memory the map is of: type, rank, offset, sizes, strides (bytes, rank - 1), box, element
// strides, swizzle, fill: numbers with blanks between.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cudart/launch.h"
#include "engine/cudart/threads.h"
#include "engine/decode/image.h"
#include "engine/memory/tensor_map.h"

namespace kiln::engine {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

using EncodeTiled = int (*)(TensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                            const uint32_t*, const uint32_t*, int, int, int, int);

std::string make_map(const std::string& path, char* memory, TensorMap* map) {
  std::istringstream numbers(text_of(path));
  uint64_t type = 0, rank = 0, offset = 0, swizzle = 0, fill = 0, sizes[5] = {}, strides[5] = {},
           box[5] = {}, steps[5] = {};
  numbers >> type >> rank >> offset;
  if (rank < 1 || rank > 5) return "the map has no rank";
  for (uint64_t i = 0; i < rank; ++i) numbers >> sizes[i];
  for (uint64_t i = 0; i + 1 < rank; ++i) numbers >> strides[i];
  for (uint64_t i = 0; i < rank; ++i) numbers >> box[i];
  for (uint64_t i = 0; i < rank; ++i) numbers >> steps[i];
  if (!(numbers >> swizzle >> fill)) return "the map is cut off";
  uint32_t box32[5], steps32[5];
  for (int i = 0; i < 5; ++i)
    box32[i] = static_cast<uint32_t>(box[i]), steps32[i] = static_cast<uint32_t>(steps[i]);
  auto encode = reinterpret_cast<EncodeTiled>(driver_function("cuTensorMapEncodeTiled"));
  const int code =
      encode(map, static_cast<int>(type), static_cast<uint32_t>(rank), memory + offset, sizes,
             strides, box32, steps32, 0, static_cast<int>(swizzle), 0, static_cast<int>(fill));
  return code ? "cuTensorMapEncodeTiled answers " + std::to_string(code) : "";
}

std::string run(const std::string& line) {
  std::istringstream words(line);
  std::string ptx, memory_path, map_path;
  KilnEngineLaunch launch{};
  launch.struct_bytes = sizeof launch;
  launch.grid = launch.block = {1, 1, 1};
  uint32_t cluster = 1;
  if (!(words >> ptx >> memory_path >> launch.block.x >> launch.grid.x >> cluster >>
        launch.dynamic_shared_bytes))
    return "not a job: " + line;
  words >> map_path;
  if (cluster > 1) launch.cluster = {cluster, 1, 1};
  const std::string bytes = text_of(memory_path);
  Device device(&process_pool);
  Heap& heap = device.heap;
  char* memory = static_cast<char*>(heap.allocate(bytes.size() + 1, AllocationKind::Device));
  std::copy(bytes.begin(), bytes.end(), memory);
  TensorMap map;
  if (!map_path.empty()) {
    if (std::string why = make_map(map_path, memory, &map); !why.empty()) return why;
  }
  Image image(heap);
  if (auto status = image.load(text_of(ptx)); !status) return format(status.error());
  Kernel kernel(image, "k");
  void* arguments[] = {&memory, &map, nullptr};
  launch.arguments = arguments;
  launch.check_memory = 1;
  LaunchOutcome outcome = launch_kernel(device, kernel, kMaxSharedBytesOptIn, launch);
  if (outcome.code) return outcome.text;
  std::ofstream(memory_path, std::ios::binary)
      .write(memory, static_cast<std::streamsize>(bytes.size()));
  return "";
}

}  // namespace
}  // namespace kiln::engine

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::string why = kiln::engine::run(line);
    for (char& c : why) c = c == '\n' ? ' ' : c;
    std::cout << (why.empty() ? "ok" : "error " + why) << std::endl;
  }
}
