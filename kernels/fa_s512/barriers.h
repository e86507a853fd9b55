// SPDX-License-Identifier: Apache-2.0
// How do the warps of a block wait for each other and for copies? mbarriers and named barriers,
// each PTX instruction under a name of its own. (PTX ISA, "Parallel Synchronization and
// Communication Instructions".)
#pragma once

#include <stdint.h>

// 1: a wait that lasts half a second is reported and given up, and so is every later one. The
// kernel then ends with wrong results instead of never. For tests: it costs a synchronisation a
// call.
#ifndef FA_DEBUG_TIMEOUT
#define FA_DEBUG_TIMEOUT 0
#endif

namespace fa {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Which wait: what a report of a timeout says.
enum Site : unsigned {
  kQueryFull = 1,
  kQueryEmpty,
  kKeyFull,
  kKeyEmpty,
  kValueFull,
  kValueEmpty,
  kPieceFull,
  kOwnFull,
  kOwnEmpty,
  kStepFull,
  kStepEmpty
};

// Where a timeout is reported: four words, all zero before. {site, block, thread, parity}.
struct Watch {
#if FA_DEBUG_TIMEOUT
  unsigned* report;
#endif
};

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes the inits visible to TMA, which is another proxy; a __syncthreads has to follow.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect(uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// True once the phase of this parity is complete; may suspend the thread for a while.
__device__ __forceinline__ bool mbarrier_try_wait(uint32_t barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

#if FA_DEBUG_TIMEOUT
__device__ __forceinline__ uint64_t now_ns() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// A call or a printf here would serialise wgmma, hence the report in memory.
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, unsigned parity, Watch watch,
                                              Site site) {
  if (mbarrier_try_wait(barrier, parity)) return;
  const uint64_t start = now_ns();
  while (!mbarrier_try_wait(barrier, parity)) {
    if (*static_cast<volatile unsigned*>(watch.report) != 0) return;
    if (now_ns() - start > 500'000'000) {
      if (atomicCAS(watch.report, 0u, static_cast<unsigned>(site)) == 0) {
        watch.report[1] = blockIdx.x;
        watch.report[2] = threadIdx.x;
        watch.report[3] = parity;
      }
      return;
    }
  }
}
#else
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, unsigned parity, Watch, Site) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}
#endif

// The threads that sync and those that arrive together make up `threads`.
__device__ __forceinline__ void named_barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// All warps of a warpgroup together. The pool of registers is the block's.
template <int kRegisters>
__device__ __forceinline__ void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// A place in a ring of buffers and the parity of the round: full is waited for with `parity`, empty
// with `parity ^ 1`.
template <int kCount>
struct Ring {
  unsigned at = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++at == kCount) at = 0, parity ^= 1;
  }
};

}  // namespace fa
