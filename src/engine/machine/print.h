// SPDX-License-Identifier: Apache-2.0
// What does a kernel's printf print? (CUDA programming guide, Formatted Output) The format comes
// from the kernel, so it is never passed to the host's printf as it is: each conversion is parsed
// here and composed again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::engine {

// The source of the arguments, in order. Each function returns false after a fault.
class PrintArguments {
 public:
  virtual ~PrintArguments() = default;
  virtual bool word(uint32_t* value) = 0;
  virtual bool wide(uint64_t* value) = 0;
  virtual bool text(uint64_t address, std::string* value) = 0;
};

// Appends to `out` and counts the arguments that were read, which is what printf returns on a GPU.
// Returns false after a fault.
//
// %[flags][width][.precision][h|hh|l|ll|j|z|t]type with a type of %cdiouxXpeEfFgGaAs. Other
// conversions are printed unchanged and read no argument, as on a GPU. There %n ends the process;
// here it is printed.
bool print(std::string_view format, PrintArguments& arguments, std::string* out, int32_t* count);

}  // namespace kiln::engine
