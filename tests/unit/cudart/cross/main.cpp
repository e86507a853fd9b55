// SPDX-License-Identifier: Apache-2.0
//
// Do the trampolines of the other CPU work? The cases of trampoline_calls.h as a program for an
// emulator, where GoogleTest is not at hand for that CPU.
#include "trampoline_calls.h"

extern "C" void* kiln_front_symbol(const char*) { return nullptr; }

int main() {
  int failures = 0;
  for (const auto& each : trampoline_calls::kCases) {
    const char* wrong = each.run();
    if (*wrong) {
      printf("FAILED %s: %s\n", each.name, wrong);
      ++failures;
    }
  }
  printf("%d failures in %zu cases\n", failures,
         sizeof trampoline_calls::kCases / sizeof trampoline_calls::kCases[0]);
  return failures != 0;
}
