// SPDX-License-Identifier: Apache-2.0
// Do graphs run, captured from streams or built node by node?
#include <vector>

#include "expect.h"

__global__ void add_one(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 1;
}
__global__ void add(int* p, int value) { p[threadIdx.x] += value; }

constexpr int kCount = 64;

int value_of(const int* p) {
  int value = -1;
  EXPECT_OK(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
  return value;
}

void captured_work_runs_only_when_launched(int* p) {
  cudaStream_t stream, other;
  cudaEvent_t forked, joined;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamCreate(&other));
  EXPECT_OK(cudaEventCreate(&forked));
  EXPECT_OK(cudaEventCreate(&joined));
  EXPECT_OK(cudaMemset(p, 0, kCount * 4));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add_one<<<1, kCount, 0, stream>>>(p, kCount);
  EXPECT_OK(cudaEventRecord(forked, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, forked, 0));
  add<<<1, kCount, 0, other>>>(p, 10);
  EXPECT_OK(cudaEventRecord(joined, other));
  EXPECT_OK(cudaStreamWaitEvent(stream, joined, 0));
  add_one<<<1, kCount, 0, stream>>>(p, kCount);
  cudaStreamCaptureStatus status;
  EXPECT_OK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT_OK(cudaStreamDestroy(other));
  cudaGraph_t graph;
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT(value_of(p) == 0);
  size_t nodes = 0, edges = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(nodes == 3 && edges == 3);
  cudaGraphExec_t executable;
  EXPECT_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) EXPECT_OK(cudaGraphLaunch(executable, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(value_of(p) == 36);
  EXPECT_OK(cudaGraphExecDestroy(executable));
}

void wrong_captures_are_told(int* p) {
  cudaStream_t stream, other;
  cudaGraph_t graph;
  cudaEvent_t event;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamCreate(&other));
  EXPECT_OK(cudaEventCreate(&event));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported,
              cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  EXPECT_CODE(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  add_one<<<1, 32, 0, other>>>(p, 32);
  EXPECT_CODE(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
  cudaGetLastError();
}

void nodes_can_be_built_and_changed(int* p) {
  EXPECT_OK(cudaMemset(p, 0, kCount * 4));
  cudaGraph_t graph;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  int value = 5, called = 0;
  void* arguments[] = {&p, &value};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kCount);
  kernel.kernelParams = arguments;
  cudaMemsetParams fill = {};
  fill.dst = p;
  fill.value = 100;
  fill.elementSize = 4;
  fill.width = kCount;
  fill.height = 1;
  cudaHostNodeParams host = {[](void* count) { ++*static_cast<int*>(count); }, &called};
  int copied[kCount] = {};
  cudaGraphNode_t fill_node, kernel_node, copy_node, host_node;
  EXPECT_OK(cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill));
  EXPECT_OK(cudaGraphAddKernelNode(&kernel_node, graph, &fill_node, 1, &kernel));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, copied, p, sizeof copied,
                                     cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &host));
  cudaGraphExec_t executable;
  EXPECT_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_OK(cudaGraphLaunch(executable, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(copied[kCount - 1] == 105 && called == 1);
  value = 6;
  EXPECT_OK(cudaGraphExecKernelNodeSetParams(executable, kernel_node, &kernel));
  EXPECT_OK(cudaGraphLaunch(executable, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(copied[0] == 106 && called == 2);
  value = 7;
  EXPECT_OK(cudaGraphKernelNodeSetParams(kernel_node, &kernel));
  cudaGraphExecUpdateResultInfo result;
  EXPECT_OK(cudaGraphExecUpdate(executable, graph, &result));
  EXPECT_OK(cudaGraphLaunch(executable, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(copied[0] == 107 && called == 3);
  EXPECT_OK(cudaGraphNodeSetEnabled(executable, kernel_node, 0));
  EXPECT_OK(cudaGraphLaunch(executable, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(copied[0] == 100 && called == 4);
  cudaGraphNode_t child_node;
  cudaGraph_t parent;
  EXPECT_OK(cudaGraphCreate(&parent, 0));
  EXPECT_OK(cudaGraphAddChildGraphNode(&child_node, parent, nullptr, 0, graph));
  EXPECT_CODE(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(executable, parent, &result));
  EXPECT(result.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  cudaGraphExec_t nested;
  EXPECT_OK(cudaGraphInstantiate(&nested, parent, 0));
  EXPECT_OK(cudaGraphLaunch(nested, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(copied[0] == 107 && called == 5);
  // A cycle cannot be instantiated.
  EXPECT_OK(cudaGraphAddDependencies(graph, &host_node, &fill_node, nullptr, 1));
  EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&nested, graph, 0));
  cudaGetLastError();
}

void memory_of_a_graph_outlives_its_making() {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int* inside = nullptr;
  int host[kCount] = {};
  EXPECT_OK(cudaMallocAsync(&inside, kCount * 4, stream));
  EXPECT_OK(cudaMemsetAsync(inside, 0, kCount * 4, stream));
  add_one<<<1, kCount, 0, stream>>>(inside, kCount);
  EXPECT_OK(cudaMemcpyAsync(host, inside, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaFreeAsync(inside, stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphLaunch(executable, stream));
  EXPECT_OK(cudaGraphLaunch(executable, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 1 && host[kCount - 1] == 1);
}

int main() {
  int* p = nullptr;
  EXPECT_OK(cudaMalloc(&p, kCount * 4));
  captured_work_runs_only_when_launched(p);
  wrong_captures_are_told(p);
  nodes_can_be_built_and_changed(p);
  memory_of_a_graph_outlives_its_making();
  return finish();
}
