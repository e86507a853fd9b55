// SPDX-License-Identifier: Apache-2.0
// How does TMA copy a box of a tensor? (PTX ISA 9.7.9.27, tile mode) Row by row. Elements outside
// the tensor are read as zero (or NaN) and are not written.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/machine/watching.h"
#include "engine/memory/multicast.h"
#include "engine/memory/tensor_map.h"
#include "engine/numbers/rmw.h"

namespace kiln::engine {
namespace {

struct TensorCopy {
  AddressOperand map, shared, barrier;
  LaneValue coordinates[kMaxTensorRank];
  LaneValue ranks;
  uint32_t rank = 1;
  bool load = true, multicast = false, reduces = false;
  Rmw what = Rmw::Add;
};

// One row of the box: its address in global memory, and which of its elements are inside the
// tensor.
struct Row {
  uint64_t global;
  uint64_t shared;  // bytes from the start of the box
  uint32_t first, count;
};

template <class Body>
bool for_each_row(const TensorMap& map, const int64_t* at, Body body) {
  const uint32_t bytes = tensor_type(map.data_type)->bytes;
  const uint32_t span = swizzle_span(static_cast<Swizzle>(map.swizzle));
  const uint64_t pitch = span ? span : uint64_t{map.box[0]} * bytes;
  uint32_t counts[kMaxTensorRank];
  uint64_t rows = 1;
  for (uint32_t d = 0; d < kMaxTensorRank; ++d) {
    const uint32_t step = d < map.rank ? map.element_strides[d] : 1;
    counts[d] = d < map.rank ? (map.box[d] + step - 1) / step : 1;
    if (d > 0) rows *= counts[d];
  }
  for (uint64_t r = 0; r < rows; ++r) {
    uint64_t rest = r, global = map.address;
    bool inside = true;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const int64_t index = at[d] + static_cast<int64_t>(rest % counts[d]) * map.element_strides[d];
      rest /= counts[d];
      inside &= index >= 0 && index <= int64_t{map.last[d]};
      global += static_cast<uint64_t>(index) * map.strides[d - 1];
    }
    Row row{global, r * pitch, 0, 0};
    const int64_t size = int64_t{map.last[0]} + 1;
    const int64_t begin = std::clamp<int64_t>(-at[0], 0, map.box[0]);
    const int64_t end = std::clamp<int64_t>(size - at[0], begin, map.box[0]);
    if (inside && end > begin) {
      row.first = static_cast<uint32_t>(begin);
      row.count = static_cast<uint32_t>(end - begin);
      row.global += static_cast<uint64_t>((at[0] + begin) * int64_t{bytes});
    }
    if (!body(row)) return false;
  }
  return true;
}

uint64_t box_bytes(const TensorMap& map) {
  uint64_t bytes = tensor_type(map.data_type)->bytes;
  for (uint32_t d = 0; d < map.rank; ++d) {
    const uint32_t step = d ? map.element_strides[d] : 1;
    bytes *= (map.box[d] + step - 1) / step;
  }
  return bytes;
}

// If the map asks for NaN, an H200 writes this to each 16 bits: a NaN in every format.
void fill_outside(std::byte* row, const TensorMap& map, uint32_t bytes) {
  std::memset(row, 0, bytes);
  if (!map.nan_fill) return;
  constexpr uint16_t kNan = 0x7ff7;
  for (uint32_t at = 0; at < bytes; at += sizeof kNan) std::memcpy(row + at, &kNan, sizeof kNan);
}

// Every swizzle keeps chunks of 16 bytes together.
template <class Body>
void for_each_chunk(const TensorMap& map, uint64_t shared, uint32_t bytes, Body body) {
  for (uint32_t at = 0; at < bytes; at += 16) {
    body(swizzled(static_cast<Swizzle>(map.swizzle), shared + at), at);
  }
}

void combine(const TensorMap& map, Rmw what, std::byte* to, const std::byte* from) {
  const ptx::Type type = *ptx::type_named(tensor_type(map.data_type)->ptx);
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) >= 2 && !Packed<T>) {
      T operand;
      std::memcpy(&operand, from, sizeof(T));
      exchange(to, what, operand, operand);
    }
    return true;
  });
}

bool load_box(Warp& warp, const Op* op, const TensorCopy& how, uint32_t lane, const TensorMap& map,
              const int64_t* at, uint64_t to, uint64_t barrier) {
  const uint32_t bytes = tensor_type(map.data_type)->bytes, row_bytes = map.box[0] * bytes;
  const uint64_t total = box_bytes(map);
  // The swizzle depends on the offset in the block's window, which starts at a multiple of 1024.
  std::byte* box = locate_watched(warp, op, lane, how.shared.space, to,
                                  static_cast<uint32_t>(total), 128, Access::Write, true);
  if (!box) return false;
  const uint64_t start = to & ((uint64_t{1} << kPeerShift) - 1);
  std::byte* window = box - start;
  const bool done = for_each_row(map, at, [&](const Row& row) {
    alignas(16) std::byte line[256 * 8];
    if (row.count < map.box[0]) fill_outside(line, map, row_bytes);
    if (row.count) {
      const std::byte* from = locate_watched(warp, op, lane, ptx::Space::Global, row.global,
                                             row.count * bytes, 1, Access::Read, true);
      if (!from) return false;
      std::memcpy(line + size_t{row.first} * bytes, from, size_t{row.count} * bytes);
    }
    for_each_chunk(map, start + row.shared, row_bytes, [&](uint64_t place, uint32_t chunk) {
      std::memcpy(window + place, line + chunk, 16);
    });
    return true;
  });
  if (!done) return false;
  return bytes_came(warp, op, lane, how.barrier.space, barrier, static_cast<int64_t>(total));
}

bool store_box(Warp& warp, const Op* op, const TensorCopy& how, uint32_t lane, const TensorMap& map,
               const int64_t* at, uint64_t from) {
  const uint32_t bytes = tensor_type(map.data_type)->bytes, row_bytes = map.box[0] * bytes;
  std::byte* box = locate_watched(warp, op, lane, how.shared.space, from,
                                  static_cast<uint32_t>(box_bytes(map)), 128, Access::Read, true);
  if (!box) return false;
  const uint64_t start = from & ((uint64_t{1} << kPeerShift) - 1);
  const std::byte* window = box - start;
  return for_each_row(map, at, [&](const Row& row) {
    if (!row.count) return true;
    alignas(16) std::byte line[256 * 8];
    for_each_chunk(map, start + row.shared, row_bytes, [&](uint64_t place, uint32_t chunk) {
      std::memcpy(line + chunk, window + place, 16);
    });
    const Access access = how.reduces ? Access::Atomic : Access::Write;
    std::byte* to = locate_watched(warp, op, lane, ptx::Space::Global, row.global,
                                   row.count * bytes, 1, access, true);
    if (!to) return false;
    const std::byte* inside = line + size_t{row.first} * bytes;
    if (!how.reduces) {
      std::memcpy(to, inside, size_t{row.count} * bytes);
      return true;
    }
    for (uint32_t e = 0; e < row.count; ++e)
      combine(map, how.what, to + size_t{e} * bytes, inside + size_t{e} * bytes);
    return true;
  });
}

const Op* run_tensor_copy(Warp& warp, const Op* op) {
  const TensorCopy& how = *static_cast<const TensorCopy*>(op->data);
  watch_async(warp, op, AsyncStep::Issue, 0, AsyncKind::Bulk);
  return for_each_lane(warp, op, [&](uint32_t lane) {
    const std::byte* bytes = locate_watched(warp, op, lane, how.map.space, how.map.of(warp, lane),
                                            128, 64, Access::Read, true);
    if (!bytes) return false;
    TensorMap map;
    std::memcpy(&map, bytes, sizeof map);
    const char* bad = why_bad_tensor_map(map);
    if (!*bad && map.rank != how.rank) bad = "its rank differs from that of the instruction";
    if (*bad) {
      warp.fault(op, kIllegalInstruction, lane,
                 fmt::format("Invalid tensor map: {}\n{}", bad, where(warp, *op, lane)));
      return false;
    }
    int64_t at[kMaxTensorRank] = {};
    for (uint32_t d = 0; d < how.rank; ++d)
      at[d] = static_cast<int32_t>(how.coordinates[d].of(warp, lane));
    // A row must start at a multiple of 16 bytes, in the tensor or before it. A GPU ends the kernel
    // with the same error.
    const uint32_t element_bytes = tensor_type(map.data_type)->bytes;
    if (at[0] * element_bytes % 16) {
      warp.fault(op, kIllegalInstruction, lane,
                 fmt::format("Invalid tensor coordinate: the innermost is {}, of {} bytes each, "
                             "not a multiple of 16 bytes"
                             "\n{}",
                             at[0], element_bytes, where(warp, *op, lane)));
      return false;
    }
    const uint64_t shared = how.shared.of(warp, lane);
    if (!how.load) return store_box(warp, op, how, lane, map, at, shared);
    const uint64_t barrier = how.barrier.of(warp, lane);
    if (!how.multicast) return load_box(warp, op, how, lane, map, at, shared, barrier);
    return for_each_rank(how.ranks.of(warp, lane), [&](uint32_t rank) {
      return load_box(warp, op, how, lane, map, at, at_rank(shared, rank), at_rank(barrier, rank));
    });
  });
}

}  // namespace

bool copy_tensor(Lowering& l) {
  const auto& operands = l.ins().operands;
  TensorCopy how;
  how.load = !l.has("bulk_group");
  how.reduces = l.has("reduce");
  if (how.reduces) how.what = rmw_of(l.ins());
  how.multicast = l.has("multicast::cluster");
  const ptx::Operand& tensor = operands[how.load ? 1 : 0];
  const ptx::Operand* coordinates =
      tensor.elements.size() == 1 && tensor.elements[0].kind == ptx::OperandKind::Vector
          ? &tensor.elements[0]
          : &tensor;
  for (std::string_view modifier : l.ins().modifiers) {
    if (modifier.size() == 2 && modifier[1] == 'd')
      how.rank = static_cast<uint32_t>(modifier[0] - '0');
  }
  if (coordinates->elements.size() != how.rank)
    return l.refuse("the number of coordinates differs from that of the tensor");
  for (uint32_t d = 0; d < how.rank; ++d) {
    if (!lane_value(l, coordinates->elements[d], ptx::Type::s32, &how.coordinates[d])) return false;
  }
  ptx::Operand map = tensor;
  map.elements.clear();
  if (!address_operand(l, map, ptx::Space::Generic, &how.map) ||
      !address_operand(l, operands[how.load ? 0 : 1], ptx::Space::Shared, &how.shared)) {
    return false;
  }
  size_t next = 2;
  if (how.load && !address_operand(l, operands[next++], ptx::Space::Shared, &how.barrier))
    return false;
  if (operands.size() != next + how.multicast + l.has("L2::cache_hint"))
    return l.refuse("wrong number of operands");
  if (how.multicast && !lane_value(l, operands[next], ptx::Type::u16, &how.ranks)) return false;
  l.emit(&run_tensor_copy).data = l.own(how);
  return true;
}

namespace {

struct Replace {
  AddressOperand map;
  LaneValue value;
  uint32_t field = 0, ordinal = 0;
};

constexpr std::string_view kFields[] = {
    "global_address", "rank",     "box_dim",      "global_dim", "global_stride",
    "element_stride", "elemtype", "swizzle_mode", "fill_mode",  "interleave_layout"};

// PTX numbers the element types differently from the host's enum: f32.ftz, f64 and bf16 are 8, 9
// and 10 here, and 10, 8 and 9 there.
uint8_t host_type(uint64_t type) {
  constexpr uint8_t kHostTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
  return type < std::size(kHostTypes) ? kHostTypes[type] : 0xff;
}

// A tensor map is opaque, so the fields of the engine's own layout are changed, as
// cuTensorMapEncode* of the engine wrote them. Kernels also create a map from 128 bytes of zeros,
// by replacing all fields.
const Op* run_replace(Warp& warp, const Op* op) {
  const Replace& how = *static_cast<const Replace*>(op->data);
  return for_each_lane(warp, op, [&](uint32_t lane) {
    std::byte* bytes = locate_watched(warp, op, lane, how.map.space, how.map.of(warp, lane), 128,
                                      64, Access::Write);
    if (!bytes) return false;
    TensorMap map;
    std::memcpy(&map, bytes, sizeof map);
    const bool is_zero =
        std::all_of(bytes, bytes + sizeof map, [](std::byte each) { return each == std::byte{0}; });
    if (is_zero) map.magic = kTensorMapMagic;
    const uint64_t value = how.value.of(warp, lane);
    switch (how.field) {
      case 0:
        map.address = value;
        break;
      case 1:
        map.rank = static_cast<uint8_t>(value + 1);
        break;
      case 2:
        map.box[how.ordinal] = static_cast<uint16_t>(value);
        break;
      case 3:
        map.last[how.ordinal] = static_cast<uint32_t>(value - 1);
        break;
      case 4:
        if (how.ordinal + 1 < kMaxTensorRank) map.strides[how.ordinal] = value;
        break;
      case 5:
        map.element_strides[how.ordinal] = static_cast<uint8_t>(value);
        break;
      case 6:
        map.data_type = host_type(value);
        break;
      case 7:
        map.swizzle = static_cast<uint8_t>(value);
        break;
      case 8:
        map.nan_fill = value != 0;
        break;
      default:
        map.interleave = static_cast<uint8_t>(value);
    }
    std::memcpy(bytes, &map, sizeof map);
    return true;
  });
}

}  // namespace

bool replace_tensor_map(Lowering& l) {
  const auto& operands = l.ins().operands;
  Replace how;
  for (uint32_t f = 0; f < std::size(kFields); ++f) {
    if (l.has(kFields[f])) how.field = f;
  }
  const bool has_ordinal = operands.size() == 3;
  if (has_ordinal) how.ordinal = static_cast<uint32_t>(operands[1].bits);
  if (how.ordinal >= kMaxTensorRank) return l.refuse("a tensor has at most 5 dimensions");
  const bool shared = l.has("shared::cta");
  const ptx::Space space = shared            ? ptx::Space::Shared
                           : l.has("global") ? ptx::Space::Global
                                             : ptx::Space::Generic;
  // Only the fields .global_address and .global_stride have 64 bits.
  const bool wide = how.field == 0 || how.field == 4;
  if (!address_operand(l, operands[0], space, &how.map) ||
      !lane_value(l, operands.back(), wide ? ptx::Type::b64 : ptx::Type::b32, &how.value)) {
    return false;
  }
  l.emit(&run_replace).data = l.own(how);
  return true;
}

namespace {

struct MapCopy {
  AddressOperand to, from;
};

// One copy for the warp: all lanes name the same places.
const Op* run_copy_map(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const MapCopy& how = *static_cast<const MapCopy*>(op->data);
  const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(warp.mask));
  const std::byte* from = locate_watched(warp, op, lane, how.from.space, how.from.of(warp, lane),
                                         sizeof(TensorMap), 64, Access::Read, true);
  std::byte* to = from ? locate_watched(warp, op, lane, how.to.space, how.to.of(warp, lane),
                                        sizeof(TensorMap), 64, Access::Write, true)
                       : nullptr;
  if (!to) return nullptr;
  std::memcpy(to, from, sizeof(TensorMap));
  return op + 1;
}

}  // namespace

bool copy_tensor_map(Lowering& l) {
  MapCopy how;
  if (l.operand(2).bits != sizeof(TensorMap)) return l.refuse("a tensor map has 128 bytes");
  if (!address_operand(l, l.operand(0), ptx::Space::Global, &how.to) ||
      !address_operand(l, l.operand(1), ptx::Space::Shared, &how.from)) {
    return false;
  }
  l.emit(&run_copy_map).data = l.own(how);
  return true;
}

}  // namespace kiln::engine
