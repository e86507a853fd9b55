// SPDX-License-Identifier: Apache-2.0
// How do printf, assert and the device's malloc run?
#include "engine/builtins.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>

#include "base/number.h"
#include "engine/access.h"
#include "engine/fault.h"
#include "engine/state.h"

namespace kiln::engine {
namespace {

constexpr size_t kMostText = 65536;

// One conversion of a format, with its argument taken from the buffer that the caller filled. False: a fault was
// reported.
bool format_one(const BuiltinCall& call, uint32_t lane, std::string_view spec, uint64_t* buffer, std::string* out) {
  auto take = [&](uint32_t bytes, void* to) {
    *buffer = (*buffer + bytes - 1) / bytes * bytes;
    const std::byte* at = locate_generic(call.warp, call.op, lane, *buffer, bytes, Access::Read);
    if (!at) return false;
    std::memcpy(to, at, bytes);
    *buffer += bytes;
    return true;
  };
  char conversion = spec.back();
  std::string clean;  // without the length, which is given anew below
  std::string length;
  for (char c : spec.substr(0, spec.size() - 1)) {
    if (c == 'l' || c == 'h' || c == 'j' || c == 'z' || c == 't' || c == 'L') {
      length += c;
    } else if (c == '*') {
      int32_t width = 0;
      if (!take(4, &width)) return false;
      clean += std::to_string(width);
    } else {
      clean += c;
    }
  }
  if (clean.size() > 64) clean.resize(1);
  char text[512];
  int written = 0;
  switch (conversion) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'c': {
      bool wide = length == "l" || length == "ll" || length == "j" || length == "z" || length == "t";
      if (conversion == 'c') {
        int32_t value = 0;
        if (!take(4, &value)) return false;
        written = std::snprintf(text, sizeof text, (clean + "c").c_str(), value);
      } else if (wide) {
        int64_t value = 0;
        if (!take(8, &value)) return false;
        written = std::snprintf(text, sizeof text, (clean + "ll" + conversion).c_str(), static_cast<long long>(value));
      } else {
        int32_t value = 0;
        if (!take(4, &value)) return false;
        if (length == "h")
          value = conversion == 'd' || conversion == 'i' ? static_cast<int16_t>(value) : static_cast<uint16_t>(value);
        if (length == "hh")
          value = conversion == 'd' || conversion == 'i' ? static_cast<int8_t>(value) : static_cast<uint8_t>(value);
        written = std::snprintf(text, sizeof text, (clean + conversion).c_str(), value);
      }
      break;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      double value = 0;
      if (!take(8, &value)) return false;
      written = std::snprintf(text, sizeof text, (clean + conversion).c_str(), value);
      break;
    }
    case 'p': {
      uint64_t value = 0;
      if (!take(8, &value)) return false;
      written = std::snprintf(text, sizeof text, (clean + "p").c_str(), reinterpret_cast<void*>(value));
      break;
    }
    case 's': {
      uint64_t value = 0;
      std::string argument;
      if (!take(8, &value) || !read_text(call.warp, call.op, lane, value, kMostText, &argument)) return false;
      if (clean == "%") {
        *out += argument;
        return true;
      }
      written = std::snprintf(text, sizeof text, (clean + "s").c_str(), argument.c_str());
      break;
    }
    default:
      *out += spec;
      return true;
  }
  if (written > 0) out->append(text, std::min<size_t>(static_cast<size_t>(written), sizeof text - 1));
  return true;
}

bool format_lane(const BuiltinCall& call, uint32_t lane, std::string* out) {
  std::string format;
  if (!read_text(call.warp, call.op, lane, call.argument<uint64_t>(0, lane), kMostText, &format)) return false;
  uint64_t buffer = call.argument<uint64_t>(1, lane);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      *out += format[i];
      continue;
    }
    size_t end = format.find_first_of("diouxXcsfFeEgGaAp%", i + 1);
    if (end == format.npos) {
      *out += format.substr(i);
      break;
    }
    if (format[end] == '%') {
      *out += '%';
    } else if (!format_one(call, lane, std::string_view(format).substr(i, end - i + 1), &buffer, out)) {
      return false;
    }
    i = end;
  }
  return true;
}

const Op* run_printf(const BuiltinCall& call) {
  const CLocale locale;
  std::string text;
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!format_lane(call, lane, &text)) return nullptr;
    call.result<int32_t>(lane, 0);
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
      !read_text(call.warp, call.op, lane, call.argument<uint64_t>(3, lane), kMostText, &function)) {
    return nullptr;
  }
  ThreadId thread = thread_of(call.warp, lane);
  const Block& block = *call.warp.block;
  return call.warp.fault(call.op, kAssert, lane,
                         fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.", file,
                                     call.argument<uint32_t>(2, lane), function, block.x, block.y, block.z, thread.x,
                                     thread.y, thread.z, message));
}

const Op* run_malloc(const BuiltinCall& call) {
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t bytes = call.argument<uint64_t>(0, lane);
    void* memory =
        bytes > (uint64_t{1} << 32) ? nullptr : state().heap.allocate(bytes, AllocationKind::Device, "device malloc");
    call.result<uint64_t>(lane, reinterpret_cast<uint64_t>(memory));
  }
  call.warp.block->grid->memory.refresh(state().heap.regions());
  return call.op + 1;
}

const Op* run_free(const BuiltinCall& call) {
  for (uint32_t rest = call.warp.mask; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t at = call.argument<uint64_t>(0, lane);
    if (at && !state().heap.retire(reinterpret_cast<void*>(at))) {
      return call.warp.fault(call.op, kLaunchFailure, lane,
                             fmt::format("Invalid free of 0x{:x}\n{}", at, where(call.warp, *call.op, lane)));
    }
  }
  call.warp.block->grid->memory.refresh(state().heap.regions());
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
