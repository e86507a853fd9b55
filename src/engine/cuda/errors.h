// SPDX-License-Identifier: Apache-2.0
// Which numbers of cudaError_t does the engine give? (errors.def has the names and texts of all.)
#pragma once

namespace kiln::engine {

// Numbers of cudaError_t that the engine gives.
enum CudaError : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidConfiguration = 9,
  kInvalidPitchValue = 12,
  kInvalidSymbol = 13,
  kInvalidDevicePointer = 17,
  kInvalidChannelDescriptor = 20,
  kInvalidMemcpyDirection = 21,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kInvalidKernelImage = 200,
  kNoKernelImageForDevice = 209,
  kPeerAccessUnsupported = 217,
  kInvalidPtx = 218,
  kInvalidResourceHandle = 400,
  kIllegalState = 401,
  kSymbolNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kLaunchFailure = 719,
  kCooperativeLaunchTooLarge = 720,
  kInvalidClusterSize = 912,
  kNotPermitted = 800,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureMerge = 902,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kCapturedEvent = 907,
  kGraphExecUpdateFailure = 910,
  kUnknown = 999
};

// What a message says that there is no memory to put together.
constexpr const char* kNoMemoryText =
    "Out of memory: the engine could not get the memory that the call needs\n"
    "  fix: raise the limit of the process (ulimit -v), or launch fewer threads or less local "
    "memory at a time";

}  // namespace kiln::engine
