// SPDX-License-Identifier: Apache-2.0
// Which functions decode the forms of clusters, mbarriers, bulk copies and warpgroup products?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// warp/cluster.cpp
bool map_to_block(Lowering&);
bool rank_of_address(Lowering&);
bool cluster_barrier(Lowering&);
// async/mbarrier.cpp
bool mbarrier_init(Lowering&);
bool mbarrier_arrive(Lowering&);
bool mbarrier_expect(Lowering&);
bool mbarrier_pending(Lowering&);
bool mbarrier_wait(Lowering&);
bool copy_async_arrive(Lowering&);
// async/bulk.cpp
bool bulk_group(Lowering&);
bool copy_bulk(Lowering&);
bool reduce_bulk(Lowering&);
bool store_async(Lowering&);
bool reduce_async(Lowering&);
// async/tensor.cpp
bool copy_tensor(Lowering&);
bool replace_tensor_map(Lowering&);
bool copy_tensor_map(Lowering&);
// matrix/wgmma.cpp
bool matrix_group(Lowering&);
bool warpgroup_multiply(Lowering&);

}  // namespace kiln::engine
