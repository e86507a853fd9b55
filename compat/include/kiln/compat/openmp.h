// SPDX-License-Identifier: Apache-2.0
// Where do sources have OpenMP's functions from that do not include its header? torch's own
// includes it where the compiler has OpenMP switched on.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif
