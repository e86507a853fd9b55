// SPDX-License-Identifier: Apache-2.0
// What must be known of a library's ops to write files about them? A copy of what kiln/abi.h tells,
// free of the library.
#pragma once

#include <kiln/abi.h>

#include <string>
#include <vector>

#include "host/library.h"

namespace kiln::ship {

struct ParameterFacts {
  std::string name;
  uint32_t type = 0;  // KilnType
  bool optional = false, written = false, keyword_only = false, has_default = false;
  std::string default_text;  // as Python writes it: "1.0", "None", "[1, 2]"
};

struct OpFacts {
  std::string name, overload, schema, fake, doc;
  std::vector<ParameterFacts> parameters, results;

  // "cust_add_int" or "my_add": a C name.
  std::string c_name() const { return overload.empty() ? name : name + "_" + overload; }
};

struct LibraryFacts {
  std::string name;  // the namespace
  std::vector<OpFacts> ops;
};

LibraryFacts read_facts(const host::OpLibrary& library);

}  // namespace kiln::ship
