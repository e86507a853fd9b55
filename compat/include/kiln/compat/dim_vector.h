// SPDX-License-Identifier: Apache-2.0
// What do torch's own light headers keep sizes and strides in? In its SmallVector.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>

namespace c10 {

constexpr size_t kDimVectorStaticSize = 5;
using DimVector = SmallVector<int64_t, kDimVectorStaticSize>;

}  // namespace c10
namespace at {
using c10::DimVector;
}  // namespace at
