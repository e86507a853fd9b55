// SPDX-License-Identifier: Apache-2.0
// How does the CUDA 13 runtime lay out the properties of a device? A test compares this with the
// toolkit's header where there is one.
#pragma once

#include <cstddef>

namespace kiln::engine {

struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_node_mask;
  size_t global_bytes, shared_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid[3];
  size_t const_bytes;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, can_map_host;
  int textures[25];  // the limits of textures and surfaces: there are none of either here
  int surfaces[14];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines,
      unified_addressing, memory_bus_width, l2_bytes, persisting_l2_bytes,
      max_threads_per_multiprocessor, stream_priorities, global_l1, local_l1;
  size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_group,
      host_native_atomics, pageable_access, concurrent_managed, preemption,
      host_pointer_for_registered, cooperative_launch;
  size_t shared_per_block_optin;
  int pageable_uses_host_tables, direct_managed_access, max_blocks_per_multiprocessor,
      access_policy_window;
  size_t reserved_shared_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools,
      rdma;
  unsigned rdma_flush;
  int rdma_ordering;
  unsigned memory_pool_handles;
  int deferred_arrays, ipc_events, cluster_launch, unified_function_pointers, numa_config, numa_id,
      mps, host_numa_id;
  unsigned pci_device_id, pci_subsystem_id;
  int multinode_ipc;
  int reserved[56];
};

DeviceProperties device_properties();

}  // namespace kiln::engine
