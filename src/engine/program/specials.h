// SPDX-License-Identifier: Apache-2.0
// Which special registers are there, by their names in PTX? (PTX ISA 10)
#pragma once

#include <string_view>

#include "engine/program/program.h"

namespace kiln::engine {

struct SpecialRow {
  std::string_view name;
  Special special;
  bool lanes;  // other values for other lanes
};
inline constexpr SpecialRow kSpecials[] = {
    {"tid.x", Special::TidX, true},
    {"tid.y", Special::TidY, true},
    {"tid.z", Special::TidZ, true},
    {"ntid.x", Special::NtidX, false},
    {"ntid.y", Special::NtidY, false},
    {"ntid.z", Special::NtidZ, false},
    {"ctaid.x", Special::CtaidX, false},
    {"ctaid.y", Special::CtaidY, false},
    {"ctaid.z", Special::CtaidZ, false},
    {"nctaid.x", Special::NctaidX, false},
    {"nctaid.y", Special::NctaidY, false},
    {"nctaid.z", Special::NctaidZ, false},
    {"laneid", Special::LaneId, true},
    {"warpid", Special::WarpId, false},
    {"nwarpid", Special::NwarpId, false},
    {"smid", Special::SmId, false},
    {"nsmid", Special::NsmId, false},
    {"gridid", Special::GridId, false},
    {"lanemask_eq", Special::LanemaskEq, true},
    {"lanemask_le", Special::LanemaskLe, true},
    {"lanemask_lt", Special::LanemaskLt, true},
    {"lanemask_ge", Special::LanemaskGe, true},
    {"lanemask_gt", Special::LanemaskGt, true},
    {"dynamic_smem_size", Special::DynamicSharedBytes, false},
    {"total_smem_size", Special::TotalSharedBytes, false},
    {"clusterid.x", Special::ClusterIdX, false},
    {"clusterid.y", Special::ClusterIdY, false},
    {"clusterid.z", Special::ClusterIdZ, false},
    {"nclusterid.x", Special::NclusterIdX, false},
    {"nclusterid.y", Special::NclusterIdY, false},
    {"nclusterid.z", Special::NclusterIdZ, false},
    {"cluster_ctaid.x", Special::ClusterCtaidX, false},
    {"cluster_ctaid.y", Special::ClusterCtaidY, false},
    {"cluster_ctaid.z", Special::ClusterCtaidZ, false},
    {"cluster_nctaid.x", Special::ClusterNctaidX, false},
    {"cluster_nctaid.y", Special::ClusterNctaidY, false},
    {"cluster_nctaid.z", Special::ClusterNctaidZ, false},
    {"cluster_ctarank", Special::ClusterCtarank, false},
    {"cluster_nctarank", Special::ClusterNctarank, false},
    {"is_explicit_cluster", Special::IsExplicitCluster, false},
    {"aggr_smem_size", Special::TotalSharedBytes, false},
    {"reserved_smem_offset_0", Special::TotalSharedBytes, false},
    {"reserved_smem_offset_1", Special::TotalSharedBytes, false},
    {"envreg1", Special::WorkspaceHigh, false},
    {"envreg2", Special::WorkspaceLow, false},
    {"envreg0", Special::Zero, false},
    {"current_graph_exec", Special::Zero, false},
};

}  // namespace kiln::engine
