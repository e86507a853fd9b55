// SPDX-License-Identifier: Apache-2.0
// What is the name and the width of each PTX type?
#include "ptx/types.h"

namespace kiln::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t bytes;
  char type_class;
};
constexpr TypeRow kTypes[] = {
#define KILN_PTX_TYPE(name, bytes, class) {#name, bytes, #class[0]},
    KILN_PTX_TYPES(KILN_PTX_TYPE)
#undef KILN_PTX_TYPE
};

}  // namespace

std::optional<Type> type_named(std::string_view name) {
  for (unsigned i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Type type) { return kTypes[static_cast<unsigned>(type)].name; }
uint32_t bytes_of(Type type) { return kTypes[static_cast<unsigned>(type)].bytes; }
char class_of(Type type) { return kTypes[static_cast<unsigned>(type)].type_class; }

TypeSet parse_type_set(std::string_view names) {
  TypeSet set = 0;
  while (!names.empty()) {
    size_t space = names.find(' ');
    if (auto type = type_named(names.substr(0, space))) set |= set_of(*type);
    names = space == names.npos ? "" : names.substr(space + 1);
  }
  return set;
}

}  // namespace kiln::ptx
