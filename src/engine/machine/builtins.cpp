// SPDX-License-Identifier: Apache-2.0
// How do printf, assert, malloc and free of device code run?
#include "engine/machine/builtins.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>

#include "base/number.h"
#include "engine/machine/access.h"
#include "engine/machine/fault.h"
#include "engine/machine/print.h"
#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

constexpr size_t kMostText = 65536;

// The caller has stored the arguments in a buffer, each at a multiple of its size.
class BufferArguments : public PrintArguments {
 public:
  BufferArguments(const BuiltinCall& call, uint32_t lane) : call_(call), lane_(lane) {
    buffer_ = call.argument<uint64_t>(1, lane);
  }
  bool word(uint32_t* value) override { return take(value, 4); }
  bool wide(uint64_t* value) override { return take(value, 8); }
  bool text(uint64_t address, std::string* value) override {
    return read_text(call_.warp, call_.op, lane_, address, kMostText, value);
  }

 private:
  bool take(void* to, uint32_t bytes) {
    buffer_ = (buffer_ + bytes - 1) / bytes * bytes;
    const std::byte* at = locate_generic(call_.warp, call_.op, lane_, buffer_, bytes, Access::Read);
    if (!at) return false;
    std::memcpy(to, at, bytes);
    buffer_ += bytes;
    return true;
  }

  const BuiltinCall& call_;
  uint32_t lane_;
  uint64_t buffer_;
};

const Op* run_printf(const BuiltinCall& call) {
  const CLocale locale;
  std::string text;
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t address = call.argument<uint64_t>(0, lane);
    std::string format;
    int32_t count = -1;  // for a null format
    if (address) {
      BufferArguments arguments(call, lane);
      if (!read_text(call.warp, call.op, lane, address, kMostText, &format)) return nullptr;
      if (!print(format, arguments, &text, &count)) return nullptr;
    }
    call.result<int32_t>(lane, count);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return call.op + 1;
}

// __assertfail(message, file, line, function, character size)
const Op* run_assert(const BuiltinCall& call) {
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(call.warp.mask));
  std::string message, file, function;
  if (!read_text(call.warp, call.op, lane, call.argument<uint64_t>(0, lane), kMostText, &message) ||
      !read_text(call.warp, call.op, lane, call.argument<uint64_t>(1, lane), kMostText, &file) ||
      !read_text(call.warp, call.op, lane, call.argument<uint64_t>(3, lane), kMostText,
                 &function)) {
    return nullptr;
  }
  ThreadId thread = thread_of(call.warp, lane);
  const Block& block = *call.warp.block;
  return call.warp.fault(
      call.op, kAssert, lane,
      fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.", file,
                  call.argument<uint32_t>(2, lane), function, block.x, block.y, block.z, thread.x,
                  thread.y, thread.z, message));
}

// Like calls of the host: reports what a lane allocates or frees.
void watch_heap(const BuiltinCall& call, uint32_t lane, HostKind kind, uint64_t at, uint64_t bytes,
                int code) {
  Sink* sink = sink_for(call.warp, kHostEvents);
  if (!sink) return;
  HostEvent event;
  event.kind = kind;
  event.by = actor(call.warp, call.op);
  event.by.mask = 1u << lane;
  event.to.at = at;
  event.width = bytes;
  event.waits = true;
  event.code = code;
  event.call = kind == HostKind::Free ? "free()" : "malloc()";
  sink->on(event);
}

bool free_recovered(const BuiltinCall& call, uint32_t lane, uint64_t at) {
  Sink* sink = call.warp.block->grid->sink;
  if (!sink) return false;
  FaultEvent event;
  event.by = actor(call.warp, call.op);
  event.by.mask = 1u << lane;
  event.kind = FaultKind::Free;
  event.code = kLaunchFailure;
  event.address = at;
  return sink->recovers(event);
}

const Op* run_malloc(const BuiltinCall& call) {
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t bytes = call.argument<uint64_t>(0, lane);
    void* memory = bytes > (uint64_t{1} << 32)
                       ? nullptr
                       : call.warp.block->grid->device->heap.allocate(bytes, AllocationKind::Device,
                                                                      "device malloc");
    call.result<uint64_t>(lane, reinterpret_cast<uint64_t>(memory));
    watch_heap(call, lane, HostKind::Allocate, reinterpret_cast<uint64_t>(memory), bytes,
               memory ? 0 : kMemoryAllocation);
  }
  call.warp.block->grid->memory.refresh(call.warp.block->grid->device->heap.regions());
  return call.op + 1;
}

const Op* run_free(const BuiltinCall& call) {
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t at = call.argument<uint64_t>(0, lane);
    if (!at) continue;
    Heap& heap = call.warp.block->grid->device->heap;
    const auto known = heap.find(at);
    const bool good = known && known->begin == at;
    watch_heap(call, lane, HostKind::Free, at, good ? known->bytes : 0, good ? 0 : kInvalidValue);
    if (!heap.release(reinterpret_cast<void*>(at)) && !free_recovered(call, lane, at)) {
      return call.warp.fault(
          call.op, kLaunchFailure, lane,
          fmt::format("Invalid free of 0x{:x}\n{}", at, where(call.warp, *call.op, lane)));
    }
  }
  call.warp.block->grid->memory.refresh(call.warp.block->grid->device->heap.regions());
  return call.op + 1;
}

}  // namespace

const Builtin kBuiltins[] = {
    {"vprintf", 2, 1, &run_printf},
    {"__assertfail", 5, 0, &run_assert},
    {"malloc", 1, 1, &run_malloc},
    {"free", 1, 0, &run_free},
};

int builtin_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kBuiltins); ++i) {
    if (kBuiltins[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace kiln::engine
