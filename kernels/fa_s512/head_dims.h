// SPDX-License-Identifier: Apache-2.0
// Which head dims does this build have? Both; -D HEAD_DIM=64 or 128 builds one, in half the time,
// where the other defines fit that one alone.
#pragma once

#include <kiln/op.h>

namespace fa {

#ifdef HEAD_DIM
constexpr const char* kHeadDims = HEAD_DIM == 64 ? "64 in this build" : "128 in this build";
inline bool has_head_dim(int64_t d) { return d == HEAD_DIM; }
template <class Function>
void with_head_dim(int64_t d, Function function) {
  kiln::dispatch_value<HEAD_DIM>(d, function);
}
#else
constexpr const char* kHeadDims = "64 or 128";
inline bool has_head_dim(int64_t d) { return d == 64 || d == 128; }
template <class Function>
void with_head_dim(int64_t d, Function function) {
  kiln::dispatch_value<64, 128>(d, function);
}
#endif

}  // namespace fa
