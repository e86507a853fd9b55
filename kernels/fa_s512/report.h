// SPDX-License-Identifier: Apache-2.0
// How does a wait that timed out on the GPU become an error of the op? Under FA_DEBUG_TIMEOUT the
// kernel leaves four words, which the host reads when the kernel has ended. Without it there is
// nothing here.
#pragma once

#include <kiln/op.h>

#include "barriers.h"

namespace fa {

#if FA_DEBUG_TIMEOUT
class Report {
 public:
  explicit Report(const kiln::Tensor& like)
      : words_(kiln::zeros({4}, kiln::Dtype::i32, like.device())) {}
  unsigned* words() { return static_cast<unsigned*>(words_.raw()); }
  void check(const kiln::Tensor& like) {
    static constexpr const char* kSites[] = {"none",     "Q full",    "Q empty",   "K full",
                                             "K empty",  "V full",    "V empty",   "piece full",
                                             "own full", "own empty", "step full", "step empty"};
    unsigned seen[4] = {};
    cudaError_t error = cudaMemcpyAsync(seen, words_.raw(), sizeof seen, cudaMemcpyDeviceToHost,
                                        kiln::stream(like));
    if (error == cudaSuccess) error = cudaStreamSynchronize(kiln::stream(like));
    KILN_CHECK(error == cudaSuccess, "the kernel failed: ", cudaGetErrorString(error));
    KILN_CHECK(seen[0] == 0, "a wait timed out: ", kSites[seen[0] < 12 ? seen[0] : 0], " (",
               seen[0], "), block ", seen[1], ", thread ", seen[2], ", parity ", seen[3]);
  }

 private:
  kiln::Tensor words_;
};
#else
class Report {
 public:
  explicit Report(const kiln::Tensor&) {}
  unsigned* words() { return nullptr; }
  void check(const kiln::Tensor&) {}
};
#endif

}  // namespace fa
