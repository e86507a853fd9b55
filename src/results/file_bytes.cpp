// SPDX-License-Identifier: Apache-2.0
#include "results/file_bytes.h"

namespace kiln::results {

std::string_view name_of(Group group) {
  switch (group) {
    case Group::Header:
      return "headers";
    case Group::HostCode:
      return "host code";
    case Group::HostData:
      return "host data";
    case Group::Sass:
      return "SASS";
    case Group::Ptx:
      return "PTX";
    case Group::Lto:
      return "LTO-IR";
    case Group::Fatbin:
      return "fat binary frame";
    case Group::Symbols:
      return "symbols";
    case Group::Relocations:
      return "relocations";
    case Group::Unwind:
      return "unwind tables";
    case Group::Debug:
      return "debug";
    case Group::Other:
      return "other";
    case Group::Gap:
      break;
  }
  return "padding";
}

}  // namespace kiln::results
