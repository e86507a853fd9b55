// SPDX-License-Identifier: Apache-2.0
// Which glibc and libstdc++ does an op library need? None newer than GLIBC_2.17, GLIBCXX_3.4.19,
// CXXABI_1.3.7, and no library but libc, libstdc++ and libgcc. Read off a real library that holds
// the whole archive.
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>
#include <string>

namespace {

std::string output_of(const std::string& command) {
  std::string all;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (size_t size = fread(buffer, 1, sizeof buffer, pipe)) all.append(buffer, size);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return all;
}

int version_number(const std::string& text) {  // "3.4.19" -> 30419
  int parts[3] = {};
  sscanf(text.c_str(), "%d.%d.%d", &parts[0], &parts[1], &parts[2]);
  return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

TEST(Floor, NoSymbolIsNewerThanTheFloor) {
  const std::string text = output_of("readelf -V " KILN_WHOLE_ARCHIVE_LIBRARY);
  const std::regex version("Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)");
  int seen = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), version), end; it != end; ++it, seen++) {
    const std::string kind = (*it)[1], number = (*it)[2];
    const int most = kind == "GLIBC" ? 21700 : kind == "GLIBCXX" ? 30419 : 10307;
    EXPECT_LE(version_number(number), most) << kind << "_" << number;
  }
  EXPECT_GE(seen, 3);
}

TEST(Floor, NoCudaAndNoTorchIsNeeded) {
  const std::string text = output_of("readelf -d " KILN_WHOLE_ARCHIVE_LIBRARY);
  const std::regex needed("NEEDED.*\\[([^\\]]+)\\]");
  for (std::sregex_iterator it(text.begin(), text.end(), needed), end; it != end; ++it) {
    const std::string name = (*it)[1];
    EXPECT_TRUE(name == "libc.so.6" || name == "libstdc++.so.6" || name == "libgcc_s.so.1" ||
                name.rfind("ld-linux", 0) == 0)
        << name;
  }
}

TEST(Floor, OnlyTwoSymbolsAreExported) {
  const std::string text =
      output_of("nm -D --defined-only " KILN_WHOLE_ARCHIVE_LIBRARY " | cut -d' ' -f3 | sort");
  EXPECT_EQ(text, "kiln_library\nkiln_unregister_torch\n");
}

}  // namespace
