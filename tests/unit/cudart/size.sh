#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What do the trampolines add to a library? Prints stripped sizes in bytes: with no call to the CUDA runtime, with five (one of them
# converted), and with five but without --gc-sections. Usage: size.sh [compiler prefix, as x86_64-linux-gnu-]
set -eu
prefix=${1-}
source=$(cd "$(dirname "$0")/../../../runtime/src" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > front.c <<'C'
__attribute__((visibility("hidden"))) void* kiln_front_target(void* entry) { return entry; }
__attribute__((visibility("hidden"))) void* kiln_front_symbol(const char* name) { return (void*)name; }
C
cat > none.c <<'C'
__attribute__((visibility("default"))) int run(void) { return 0; }
C
cat > five.c <<'C'
int cudaMalloc(), cudaFree(), cudaMemcpyAsync(), cudaGetDeviceProperties(), cudaStreamSynchronize();
__attribute__((visibility("default"))) int run(void) {
  return cudaMalloc() + cudaFree() + cudaMemcpyAsync() + cudaGetDeviceProperties() + cudaStreamSynchronize();
}
C
flags="-O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections"
"${prefix}gcc" $flags -c front.c none.c five.c "$source/cudart_trampoline.S"
"${prefix}g++" -std=c++17 $flags -c "$source/cudart_convert.cpp"
"${prefix}ar" rcs front.a cudart_trampoline.o cudart_convert.o front.o
link() { "${prefix}gcc" -shared -s "$@" front.a -o out.so && wc -c < out.so; }
"${prefix}gcc" --version | head -1
echo "no call:                    $(link -Wl,--gc-sections none.o)"
echo "five calls:                 $(link -Wl,--gc-sections five.o)"
echo "five, all sections kept:    $(link five.o)"
echo "no call, -z norelro:        $(link -Wl,--gc-sections -Wl,-z,norelro none.o)"
echo "five calls, -z norelro:     $(link -Wl,--gc-sections -Wl,-z,norelro five.o)"
