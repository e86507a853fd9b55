// SPDX-License-Identifier: Apache-2.0
// What do the fuzzers of binary formats call? Each takes any bytes and must neither crash nor leak;
// errors are the expected answer. True: the input got through to the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::fuzz {

using Target = bool (*)(const uint8_t*, size_t);

bool elf(const uint8_t* data,
         size_t size);  // sections, segments, symbols with versions, the dynamic section
bool fatbin(const uint8_t* data, size_t size);  // container, entries, unpacking
bool cubin(const uint8_t* data, size_t size);   // kernels with all that is read about them
bool nv_info(const uint8_t* data,
             size_t size);  // a bare .nv.info section, of a kernel and of a cubin
bool lines(const uint8_t* data, size_t size);    // the line tables of a cubin
bool archive(const uint8_t* data, size_t size);  // .a and wheels, members unpacked

struct NamedTarget {
  std::string_view name;
  Target run;
};
std::span<const NamedTarget> binary_targets();

}  // namespace kiln::fuzz
