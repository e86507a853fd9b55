// SPDX-License-Identifier: Apache-2.0
// What does the static libstdc++ of this compiler ask of a glibc that is older than the one it was built with?
// Compiled in by kiln_static_libstdcxx where KILN_SYSROOT names an older glibc; hidden, so that nobody else sees it.
#include <stdint.h>
#include <sys/random.h>

// glibc 2.32: true lets reference counts go without atomic instructions. Never: that is always right.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// glibc 2.36; behind std::random_device.
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
