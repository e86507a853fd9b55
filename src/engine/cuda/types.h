// SPDX-License-Identifier: Apache-2.0
// Which structs of the CUDA 13 runtime does the engine read and write? The engine is built without
// CUDA's headers; tests/unit/engine/cuda_types_test.cpp compares these with them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/engine_abi.h"

namespace kiln::engine {

struct Array;  // cudaArray

// cudaMemcpyKind.
enum CopyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kDefault = 4
};

// cudaChannelFormatKind.
enum ChannelKind : int {
  kSignedChannel = 0,
  kUnsignedChannel = 1,
  kFloatChannel = 2,
  kNoChannel = 3
};
struct ChannelDesc {
  int x, y, z, w;  // bits
  int kind;
};

struct Extent {
  size_t width, height, depth;
};
struct Position {
  size_t x, y, z;
};
struct PitchedPointer {
  void* at;
  size_t pitch, width, height;
};

// cudaMemcpy3DParms.
struct Copy3D {
  Array* from_array;
  Position from_position;
  PitchedPointer from;
  Array* to_array;
  Position to_position;
  PitchedPointer to;
  Extent extent;
  int kind;
};
struct Copy3DPeer {
  Array* from_array;
  Position from_position;
  PitchedPointer from;
  int from_device;
  Array* to_array;
  Position to_position;
  PitchedPointer to;
  int to_device;
  Extent extent;
};

// cudaMemsetParams.
struct Fill {
  void* at;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};

using HostFunction = void (*)(void*);
struct HostCall {
  HostFunction function;
  void* argument;
};

// cudaKernelNodeParams.
struct KernelNode {
  void* function;
  KilnDim3 grid, block;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};

struct MemoryLocation {
  int type, id;
};
struct PoolProperties {
  int allocation_type, handle_types;
  MemoryLocation location;
  void* security;
  size_t most_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};
struct AllocationNode {
  PoolProperties pool;
  const void* access;
  size_t access_count;
  size_t bytes;
  void* at;
};

// cudaGraphNodeType.
enum class NodeType : int {
  Kernel = 0,
  Copy = 1,
  Fill = 2,
  Host = 3,
  Graph = 4,
  Empty = 5,
  WaitEvent = 6,
  RecordEvent = 7,
  Allocate = 10,
  Free = 11,
};
struct NodeParameters {
  int type;
  int reserved_0[3];
  union {
    long long reserved_1[29];
    KernelNode kernel;
    struct {
      int flags;
      int reserved[3];
      Copy3D copy;
    } copy;
    Fill fill;
    HostCall host;
    struct {
      void* graph;
      int ownership;
    } child;
    void* event;
    AllocationNode allocate;
    void* free;
  };
  long long reserved_2;
};
struct EdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
struct InstantiateParameters {
  unsigned long long flags;
  void* upload_stream;
  void* error_node;
  int result;
};
struct UpdateResult {
  int result;
  void* error_node;
  void* error_from_node;
};

// cudaPointerAttributes.
struct PointerAttributes {
  int type;  // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

// cudaLaunchAttribute and cudaLaunchConfig_t.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
    KilnDim3 cluster;
  } value;
};
struct LaunchConfig {
  KilnDim3 grid, block;
  size_t dynamic_shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
enum : int { kAttributeCooperative = 2, kAttributeCluster = 4 };

// cudaFuncAttributes.
struct FunctionAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared,
      carveout;
  int cluster_dim_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy,
      nonportable_cluster;
  int reserved[16];
};

// cudaResourceType.
enum ResourceType : int {
  kArrayResource = 0,
  kMipmapResource = 1,
  kLinearResource = 2,
  kPitch2DResource = 3
};
struct ResourceDesc {
  int type;
  union {
    Array* array;
    struct {
      void* at;
      ChannelDesc desc;
      size_t bytes;
    } linear;
    struct {
      void* at;
      ChannelDesc desc;
      size_t width, height, pitch;
    } pitch_2d;
    int reserved[32];
  };
  unsigned flags;
};
enum AddressMode : int { kWrap = 0, kClamp = 1, kMirror = 2, kBorder = 3 };
struct TextureDesc {
  int address_mode[3];
  int filter;     // 0 point, 1 linear
  int read_mode;  // 0 element, 1 normalised float
  int srgb;
  float border[4];
  int normalized;
  unsigned max_anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_min, mipmap_max;
  int no_trilinear, seamless_cubemap;
};

}  // namespace kiln::engine
