// SPDX-License-Identifier: Apache-2.0
// What are torch::fft, torch::linalg and torch::special? Other names of ATen's ops, which begin
// with the name of the group.
#pragma once

#include <kiln/compat/more_ops.h>

// clang-format off
#define KILN_FFT_OPS(X) \
  X(fft) X(ifft) X(rfft) X(irfft) X(hfft) X(ihfft) X(fft2) X(ifft2) X(fftn) X(ifftn) \
  X(rfft2) X(irfft2) X(rfftn) X(irfftn) X(fftfreq) X(rfftfreq) X(fftshift) X(ifftshift) \
  X(hfft2) X(ihfft2) X(hfftn) X(ihfftn)
#define KILN_LINALG_OPS(X) \
  X(cholesky) X(cholesky_ex) X(cond) X(cross) X(det) X(diagonal) X(eig) X(eigh) \
  X(eigvals) X(eigvalsh) X(householder_product) X(inv) X(inv_ex) X(lstsq) X(lu) \
  X(lu_factor) X(matmul) X(matrix_exp) X(matrix_norm) X(matrix_power) X(matrix_rank) \
  X(multi_dot) X(norm) X(pinv) X(qr) X(slogdet) X(solve) X(solve_triangular) X(svd) \
  X(svdvals) X(tensorinv) X(tensorsolve) X(vander) X(vecdot) X(vector_norm) X(ldl_factor) \
  X(ldl_solve) X(lu_solve) X(solve_ex)
#define KILN_SPECIAL_OPS(X) \
  X(digamma) X(psi) X(entr) X(erf) X(erfc) X(erfcx) X(erfinv) X(exp2) X(expit) X(expm1) \
  X(gammainc) X(gammaincc) X(gammaln) X(i0) X(i0e) X(i1) X(i1e) X(log1p) X(log_ndtr) \
  X(log_softmax) X(logit) X(logsumexp) X(multigammaln) X(ndtr) X(ndtri) X(polygamma) \
  X(round) X(sinc) X(softmax) X(xlog1py) X(xlogy) X(zeta) X(bessel_j0) X(bessel_j1) \
  X(bessel_y0) X(bessel_y1) X(modified_bessel_i0) X(modified_bessel_i1) \
  X(modified_bessel_k0) X(modified_bessel_k1)
// clang-format on

namespace torch {
namespace fft {
#define X(name)                                            \
  template <class... A>                                    \
  decltype(auto) name(A&&... arguments) {                  \
    return at::fft_##name(static_cast<A&&>(arguments)...); \
  }
KILN_FFT_OPS(X)
#undef X
}  // namespace fft
namespace linalg {
#define X(name)                                               \
  template <class... A>                                       \
  decltype(auto) name(A&&... arguments) {                     \
    return at::linalg_##name(static_cast<A&&>(arguments)...); \
  }
KILN_LINALG_OPS(X)
#undef X
}  // namespace linalg
namespace special {
#define X(name)                                                \
  template <class... A>                                        \
  decltype(auto) name(A&&... arguments) {                      \
    return at::special_##name(static_cast<A&&>(arguments)...); \
  }
KILN_SPECIAL_OPS(X)
#undef X
}  // namespace special
}  // namespace torch
