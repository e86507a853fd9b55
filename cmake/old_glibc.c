// SPDX-License-Identifier: Apache-2.0
// What do kiln and the static libstdc++ of this compiler ask of a glibc that is older than the one they were made with?
// Compiled in by kiln_static_libstdcxx where KILN_SYSROOT names an older glibc; hidden, so that nobody else sees it.
#include <stdint.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32: true lets reference counts go without atomic instructions. Never: that is always right.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.36; behind std::random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

// These have a new version since glibc 2.29, which does not set errno, and the same values. With the older one
// nothing above 2.28 is left. The linker's --wrap leads calls of NAME to __wrap_NAME.
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif
#define OLD_VERSION_1(name)                                 \
  double kiln_old_##name(double);                           \
  __asm__(".symver kiln_old_" #name ", " #name "@" OLDEST); \
  HIDDEN double __wrap_##name(double x) { return kiln_old_##name(x); }
OLD_VERSION_1(exp)
OLD_VERSION_1(exp2)
OLD_VERSION_1(log)
OLD_VERSION_1(log2)
double kiln_old_pow(double, double);
__asm__(".symver kiln_old_pow, pow@" OLDEST);
HIDDEN double __wrap_pow(double x, double y) { return kiln_old_pow(x, y); }
