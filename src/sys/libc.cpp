// SPDX-License-Identifier: Apache-2.0
// Which C library runs this process?
#include "sys/libc.h"

#include <unistd.h>

#include <string_view>

namespace kiln::sys {

std::string glibc_version() {
#ifdef _CS_GNU_LIBC_VERSION
  constexpr std::string_view kMark = "glibc ";
  char text[64] = "";
  confstr(_CS_GNU_LIBC_VERSION, text, sizeof text);
  std::string_view told(text);
  if (told.starts_with(kMark)) return std::string(told.substr(kMark.size()));
#endif
  return "";
}

}  // namespace kiln::sys
