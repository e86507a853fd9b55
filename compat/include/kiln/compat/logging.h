// SPDX-License-Identifier: Apache-2.0
// What of c10/util/Logging.h do sources use? Comparisons in glog's manner.
#pragma once

#include <kiln/compat/check.h>

#define CHECK_EQ(a, b) TORCH_CHECK_EQ(a, b)
#define CHECK_NE(a, b) TORCH_CHECK_NE(a, b)
#define CHECK_LE(a, b) TORCH_CHECK_LE(a, b)
#define CHECK_LT(a, b) TORCH_CHECK_LT(a, b)
#define CHECK_GE(a, b) TORCH_CHECK_GE(a, b)
#define CHECK_GT(a, b) TORCH_CHECK_GT(a, b)
#define CHECK_NOTNULL(value) TORCH_CHECK_NOTNULL(value)
