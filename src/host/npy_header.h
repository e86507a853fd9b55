// SPDX-License-Identifier: Apache-2.0
// What does the header of a .npy file say? A Python dict literal with exactly three keys:
//   header = "{" (key ":" value ",")* "}" blanks
//   'descr': string   'fortran_order': "True" | "False"   'shape': "(" (integer ["L"] ",")* ")"
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "host/array.h"

namespace kiln::host {

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  Dims shape;
  size_t descr_offset = 0, shape_offset = 0;  // in the file, for messages
};

// `offset` is where the text is in the file.
Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& name, size_t offset);

}  // namespace kiln::host
