// SPDX-License-Identifier: Apache-2.0
// Do the functions whose ABI differs between libcudart 12 and 13 do what 13's headers say? With
// KILN_CUDART naming a libcudart.so.12 every call below goes through a conversion or a new name
// (runtime/src/cudart.def).
#include "expect.h"

__global__ void add_one(int* p) { p[threadIdx.x] += 1; }

constexpr int kCount = 64;

int version() {
  int found = 0;
  EXPECT_OK(cudaRuntimeGetVersion(&found));
  return found;
}

// 12.8 brought the batches of copies.
bool has_batches() { return !on_the_engine() && version() >= 12080; }

void device_properties() {
  cudaDeviceProp prop;
  std::memset(&prop, 0xab, sizeof prop);
  EXPECT_OK(cudaGetDeviceProperties(&prop, 0));
  const struct {
    long long field;
    cudaDeviceAttr attribute;
  } fields[] = {
      {prop.multiProcessorCount, cudaDevAttrMultiProcessorCount},
      {prop.major, cudaDevAttrComputeCapabilityMajor},
      {prop.minor, cudaDevAttrComputeCapabilityMinor},
      {prop.warpSize, cudaDevAttrWarpSize},
      {prop.maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock},
      {prop.maxGridSize[0], cudaDevAttrMaxGridDimX},
      {prop.maxGridSize[2], cudaDevAttrMaxGridDimZ},
      {prop.maxThreadsDim[2], cudaDevAttrMaxBlockDimZ},
      {static_cast<long long>(prop.sharedMemPerBlock), cudaDevAttrMaxSharedMemoryPerBlock},
      {static_cast<long long>(prop.sharedMemPerBlockOptin),
       cudaDevAttrMaxSharedMemoryPerBlockOptin},
      {static_cast<long long>(prop.sharedMemPerMultiprocessor),
       cudaDevAttrMaxSharedMemoryPerMultiprocessor},
      {prop.regsPerBlock, cudaDevAttrMaxRegistersPerBlock},
      {prop.l2CacheSize, cudaDevAttrL2CacheSize},
      {prop.maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor},
      {prop.memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth},
      {prop.asyncEngineCount, cudaDevAttrAsyncEngineCount},
      {prop.concurrentKernels, cudaDevAttrConcurrentKernels},
      {prop.pciBusID, cudaDevAttrPciBusId},
      {prop.pciDeviceID, cudaDevAttrPciDeviceId},
      {prop.unifiedAddressing, cudaDevAttrUnifiedAddressing},
      {prop.managedMemory, cudaDevAttrManagedMemory},
      {prop.cooperativeLaunch, cudaDevAttrCooperativeLaunch},
      {prop.maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor},
  };
  for (const auto& each : fields) {
    int value = -1;
    EXPECT_OK(cudaDeviceGetAttribute(&value, each.attribute, 0));
    if (value != each.field)
      std::printf("attribute %d: the field says %lld, not %d\n", each.attribute, each.field, value);
    EXPECT(value == each.field);
  }
  EXPECT(prop.name[0] && std::strlen(prop.name) < sizeof prop.name);
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  EXPECT(prop.totalGlobalMem >= total_bytes / 2 && prop.totalGlobalMem <= 2 * total_bytes);
  int chosen = -1;
  EXPECT_OK(cudaChooseDevice(&chosen, &prop));
  EXPECT(chosen == 0);
}

void pointers(int* device) {
  void* pinned = nullptr;
  int plain = 0;
  EXPECT_OK(cudaMallocHost(&pinned, 64));
  const struct {
    const void* pointer;
    cudaMemoryType type;
  } cases[] = {{device + 3, cudaMemoryTypeDevice},
               {pinned, cudaMemoryTypeHost},
               {&plain, cudaMemoryTypeUnregistered}};
  for (const auto& each : cases) {
    cudaPointerAttributes found;
    std::memset(&found, 0xab, sizeof found);
    EXPECT_OK(cudaPointerGetAttributes(&found, each.pointer));
    EXPECT(found.type == each.type);
    if (each.type == cudaMemoryTypeDevice)
      EXPECT(found.devicePointer == each.pointer && found.device == 0);
    if (each.type == cudaMemoryTypeHost) EXPECT(found.hostPointer == each.pointer);
    if (version() < 13000)  // the struct of 12 ends before them
      for (long reserved : found.reserved) EXPECT(reserved == 0);
  }
  EXPECT_OK(cudaFreeHost(pinned));
}

void textures_and_surfaces(int* device) {
  cudaResourceDesc linear = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = device;
  linear.res.linear.desc = cudaCreateChannelDesc<int>();
  linear.res.linear.sizeInBytes = kCount * sizeof(int);
  cudaTextureDesc how = {};
  cudaTextureObject_t texture = 0;
  EXPECT_OK(cudaCreateTextureObject(&texture, &linear, &how, nullptr));
  cudaResourceDesc found;
  std::memset(&found, 0xab, sizeof found);
  EXPECT_OK(cudaGetTextureObjectResourceDesc(&found, texture));
  EXPECT(found.resType == cudaResourceTypeLinear && found.res.linear.devPtr == device);
  EXPECT(found.res.linear.sizeInBytes == kCount * sizeof(int) && found.res.linear.desc.x == 32);
  EXPECT_OK(cudaDestroyTextureObject(texture));

  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  EXPECT_OK(cudaMallocArray(&array, &channel, 16, 8, cudaArraySurfaceLoadStore));
  cudaResourceDesc of_array = {};
  of_array.resType = cudaResourceTypeArray;
  of_array.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  EXPECT_OK(cudaCreateSurfaceObject(&surface, &of_array));
  std::memset(&found, 0xab, sizeof found);
  EXPECT_OK(cudaGetSurfaceObjectResourceDesc(&found, surface));
  EXPECT(found.resType == cudaResourceTypeArray && found.res.array.array == array);
  EXPECT_OK(cudaDestroySurfaceObject(surface));
  if (!on_the_engine()) {
    cudaResourceViewDesc view = {}, found_view;
    view.format = cudaResViewFormatFloat1;
    view.width = 16;
    view.height = 8;
    EXPECT_OK(cudaCreateTextureObject(&texture, &of_array, &how, &view));
    std::memset(&found_view, 0xab, sizeof found_view);
    EXPECT_OK(cudaGetTextureObjectResourceViewDesc(&found_view, texture));
    EXPECT(found_view.format == cudaResViewFormatFloat1 && found_view.width == 16 &&
           found_view.height == 8);
    EXPECT_OK(cudaDestroyTextureObject(texture));
  }
  EXPECT_OK(cudaFreeArray(array));
}

void batches_of_copies(int* device) {
  if (!has_batches()) return;
  cudaStream_t stream;  // the legacy one takes no batch
  EXPECT_OK(cudaStreamCreate(&stream));
  int *from = nullptr, *back = nullptr;
  EXPECT_OK(cudaMallocHost(&from, kCount * sizeof(int)));
  EXPECT_OK(cudaMallocHost(&back, kCount * sizeof(int)));
  for (int i = 0; i < kCount; i++) from[i] = 3 * i, back[i] = -1;
  cudaMemcpyAttributes how = {};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  constexpr size_t kHalf = kCount / 2 * sizeof(int);
  const size_t sizes[] = {kHalf, kHalf};
  void* const to_device[] = {device, device + kCount / 2};
  const void* const of_host[] = {from, from + kCount / 2};
  EXPECT_OK(cudaMemcpyBatchAsync(to_device, of_host, sizes, 2, &how, &first, 1, stream));
  cudaMemcpy3DBatchOp op = {};
  op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
  op.src.op.ptr.ptr = device;
  op.dst.op.ptr.ptr = back;
  op.extent = make_cudaExtent(kCount * sizeof(int), 1, 1);
  op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  EXPECT_OK(cudaMemcpy3DBatchAsync(1, &op, 0, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; i++) EXPECT(back[i] == 3 * i);
  EXPECT_OK(cudaFreeHost(from));
  EXPECT_OK(cudaFreeHost(back));
  EXPECT_OK(cudaStreamDestroy(stream));
}

void functions_of_the_driver() {
  if (on_the_engine()) return;
  using GetVersion = int (*)(int*);
  int expected = 0, got = 0;
  EXPECT_OK(cudaDriverGetVersion(&expected));
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &function, 12000,
                                             cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSuccess && function);
  if (function) EXPECT(reinterpret_cast<GetVersion>(function)(&got) == 0 && got == expected);
  // Some versions return an error beside the status.
  cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault,
                                   &status);
  EXPECT(status == cudaDriverEntryPointSymbolNotFound && !function);
  cudaGetLastError();
  if (expected < 13000) return;
  // Without a version: the function that 13's headers declare, whatever the runtime's own version
  // is.
  void *of_13 = nullptr, *of_12 = nullptr, *unnamed = nullptr;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuMemPrefetchAsync", &of_13, 13000, cudaEnableDefault,
                                             &status));
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuMemPrefetchAsync", &of_12, 12000, cudaEnableDefault,
                                             &status));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  EXPECT_OK(cudaGetDriverEntryPoint("cuMemPrefetchAsync", &unnamed, cudaEnableDefault, &status));
#pragma GCC diagnostic pop
  EXPECT(of_13 && of_12 && of_13 != of_12 && unnamed == of_13);
}

void managed_memory() {
  int* managed = nullptr;
  EXPECT_OK(cudaMallocManaged(&managed, kCount * sizeof(int)));
  for (int i = 0; i < kCount; i++) managed[i] = i;
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
                        host = {cudaMemLocationTypeHost, 0};
  EXPECT_OK(
      cudaMemAdvise(managed, kCount * sizeof(int), cudaMemAdviseSetPreferredLocation, device));
  EXPECT_OK(cudaMemPrefetchAsync(managed, kCount * sizeof(int), device, 0, nullptr));
  add_one<<<1, kCount>>>(managed);
  EXPECT_OK(cudaMemPrefetchAsync(managed, kCount * sizeof(int), host, 0, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; i++) EXPECT(managed[i] == i + 1);
  EXPECT_OK(cudaFree(managed));
}

cudaGraphNode_t add_memset(cudaGraph_t graph, int* to, unsigned value,
                           const cudaGraphNode_t* after) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeMemset;
  params.memset.dst = to;
  params.memset.elementSize = 4;
  params.memset.value = value;
  params.memset.width = kCount;
  params.memset.height = 1;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, &params));
  return node;
}

void graphs(int* device) {
  cudaGraph_t graph;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  const cudaGraphNode_t first = add_memset(graph, device, 5, nullptr),
                        second = add_memset(graph, device, 9, &first),
                        third = add_memset(graph, device, 7, nullptr);
  EXPECT_OK(cudaGraphAddDependencies(graph, &second, &third, nullptr, 1));
  cudaGraphNode_t from[4] = {}, to[4] = {};
  cudaGraphEdgeData data[4];
  std::memset(data, 0xab, sizeof data);
  size_t count = 4;
  EXPECT_OK(cudaGraphGetEdges(graph, from, to, data, &count));
  EXPECT(count == 2 && data[0].type == 0 && data[1].from_port == 0);
  count = 4;
  EXPECT_OK(cudaGraphNodeGetDependencies(third, from, data, &count));
  EXPECT(count == 1 && from[0] == second);
  count = 4;
  EXPECT_OK(cudaGraphNodeGetDependentNodes(first, to, data, &count));
  EXPECT(count == 1 && to[0] == second);
  EXPECT_OK(cudaGraphRemoveDependencies(graph, &second, &third, nullptr, 1));
  EXPECT_OK(cudaGraphAddDependencies(graph, &second, &third, nullptr, 1));
  cudaGraphExec_t ready;
  EXPECT_OK(cudaGraphInstantiate(&ready, graph, 0));
  EXPECT_OK(cudaGraphLaunch(ready, nullptr));
  int value = 0;
  EXPECT_OK(cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost));
  EXPECT(value == 7);
  EXPECT_OK(cudaGraphExecDestroy(ready));
  EXPECT_OK(cudaGraphDestroy(graph));
}

void captures_and_times(int* device) {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add_one<<<1, kCount, 0, stream>>>(device);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 99;
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &edges, &count));
  EXPECT(status == cudaStreamCaptureStatusActive && graph && count == 1 && dependencies && id != 0);
  cudaGraphNode_t last = dependencies ? dependencies[0] : nullptr;
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, &last, nullptr, 1,
                                                cudaStreamSetCaptureDependencies));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphDestroy(graph));

  cudaEvent_t start, end;
  EXPECT_OK(cudaEventCreate(&start));
  EXPECT_OK(cudaEventCreate(&end));
  EXPECT_OK(cudaEventRecord(start, stream));
  add_one<<<1, kCount, 0, stream>>>(device);
  EXPECT_OK(cudaEventRecord(end, stream));
  EXPECT_OK(cudaEventSynchronize(end));
  float ms = -1;
  EXPECT_OK(cudaEventElapsedTime(&ms, start, end));
  EXPECT(ms >= 0);
  EXPECT_OK(cudaEventDestroy(start));
  EXPECT_OK(cudaEventDestroy(end));
  EXPECT_OK(cudaStreamDestroy(stream));
}

int main() {
  int* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, kCount * sizeof(int)));
  std::printf("libcudart %d, %s\n", version(),
              has_batches() ? "with batches of copies" : "without batches of copies");
  device_properties();
  pointers(device);
  textures_and_surfaces(device);
  batches_of_copies(device);
  functions_of_the_driver();
  managed_memory();
  graphs(device);
  captures_and_times(device);
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaGetLastError());
  return finish();
}
