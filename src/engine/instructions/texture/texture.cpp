// SPDX-License-Identifier: Apache-2.0
// How does a kernel read textures and surfaces? (PTX ISA 9.7.9.3 to 9.7.9.6) From objects of
// arrays.h, with the addressing and filtering of the CUDA programming guide.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/operand_parts.h"
#include "engine/instructions/lowerings_texture.h"
#include "engine/machine/fault.h"
#include "engine/machine/watching.h"
#include "engine/memory/arrays.h"
#include "engine/numbers/small_formats.h"

namespace kiln::engine {
namespace {

enum Geometry : uint8_t { k1D, k2D, k3D, k1DLayered, k2DLayered, kCube, kCubeLayered };
enum Outside : uint8_t { kTrap, kClampToEdge, kZero };

struct TextureOp {
  uint32_t handle = 0;
  uint32_t coordinates[4] = {};
  uint32_t count = 0;
  uint32_t registers[4] = {};
  uint32_t register_count = 0;
  uint32_t register_bytes = 4, bytes = 4;  // for a surface
  Geometry geometry = k1D;
  Outside outside = kTrap;
  bool integer_coordinates = false;
  bool float_result = true;
};

// The object that a lane names, after checking that its memory exists. Null: a fault was reported.
const TextureObject* object_of(Warp& warp, const Op* op, uint32_t lane, uint64_t handle) {
  const Device& device = *warp.block->grid->device;
  const TextureObject* object = device.textures.find(handle);
  bool alive = object != nullptr;
  if (alive && object->resource.type == kArrayResource)
    alive = device.textures.is_array(object->resource.array);
  if (alive && object->resource.type != kArrayResource) {
    const auto at = reinterpret_cast<uint64_t>(object->data);
    auto memory = device.heap.find(at);
    alive =
        memory && memory->begin + memory->bytes - at >=
                      object->pitch * (object->height - 1) + object->width * object->element_bytes;
  }
  if (alive) return object;
  warp.fault(op, kIllegalAddress, lane,
             fmt::format("Invalid texture or surface object 0x{:x}, or its memory is gone\n{}",
                         handle, where(warp, *op, lane)));
  return nullptr;
}

template <class F>
const Op* for_each_lane(Warp& warp, const Op* op, const TextureOp& t, F&& f) {
  const uint64_t* handles = warp.lanes<uint64_t>(t.handle);
  const TextureObject* object = nullptr;
  uint64_t known = 0;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!object || handles[lane] != known) {
      known = handles[lane];
      object = object_of(warp, op, lane, known);
      if (!object) return nullptr;
    }
    if (!f(*object, lane)) return nullptr;
  }
  return op + 1;
}

// ---- Texels

struct Texel {
  float f[4] = {};
  uint32_t bits[4] = {};
};

int channel_bits(const ChannelDesc& desc, int channel) {
  const int bits[4] = {desc.x, desc.y, desc.z, desc.w};
  return bits[channel];
}

// The lane that reads a texel; for watchers.
struct Reader {
  Warp& warp;
  const Op* op;
  uint32_t lane;

  void touches(const std::byte* at, uint32_t bytes, Access access) const {
    watch_lane(warp, op, lane, ptx::Space::Global, reinterpret_cast<uint64_t>(at), bytes, access,
               false);
  }
};

Texel read_texel(const Reader& by, const TextureObject& object, size_t x, size_t y, size_t z) {
  Texel texel;
  const std::byte* at =
      object.data + (z * object.height + y) * object.pitch + x * object.element_bytes;
  by.touches(at, object.element_bytes, Access::Read);
  for (int channel = 0; channel < 4; ++channel) {
    const int bits = channel_bits(object.desc, channel);
    if (bits == 0) break;
    uint32_t raw = 0;
    std::memcpy(&raw, at, static_cast<size_t>(bits / 8));
    at += bits / 8;
    if (object.desc.kind == kFloatChannel) {
      texel.f[channel] =
          bits == 16 ? half_to_float(static_cast<uint16_t>(raw)) : std::bit_cast<float>(raw);
      texel.bits[channel] = std::bit_cast<uint32_t>(texel.f[channel]);
      continue;
    }
    const bool is_signed = object.desc.kind == kSignedChannel;
    const int32_t value = static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits);
    texel.bits[channel] = is_signed ? static_cast<uint32_t>(value) : raw;
    const float most =
        is_signed ? std::ldexp(1.0f, bits - 1) - 1.0f : std::ldexp(1.0f, bits) - 1.0f;
    texel.f[channel] = is_signed ? std::max(-1.0f, static_cast<float>(value) / most)
                                 : static_cast<float>(raw) / most;
  }
  return texel;
}

// An index inside the texture, or -1 for the border.
int64_t wrapped(int64_t index, int64_t size, int mode) {
  switch (mode) {
    case kWrap:
      return ((index % size) + size) % size;
    case kMirror: {
      int64_t twice = ((index % (2 * size)) + 2 * size) % (2 * size);
      return twice < size ? twice : 2 * size - 1 - twice;
    }
    case kBorder:
      return index < 0 || index >= size ? -1 : index;
    default:
      return std::clamp<int64_t>(index, 0, size - 1);
  }
}

Texel texel_at(const Reader& by, const TextureObject& object, int64_t x, int64_t y, int64_t z,
               int dimensions) {
  // Wrap and mirror exist only for normalised coordinates; otherwise they mean clamp.
  auto mode = [&](int axis) {
    int wanted = object.texture.address_mode[axis];
    return object.texture.normalized || wanted == kBorder ? wanted : int{kClamp};
  };
  x = wrapped(x, static_cast<int64_t>(object.width), mode(0));
  if (dimensions > 1) y = wrapped(y, static_cast<int64_t>(object.height), mode(1));
  if (dimensions > 2) z = wrapped(z, static_cast<int64_t>(object.depth), mode(2));
  if (x < 0 || y < 0 || z < 0) {
    Texel border;
    for (int i = 0; i < 4; ++i) {
      border.f[i] = object.texture.border[i];
      border.bits[i] = object.desc.kind == kFloatChannel ? std::bit_cast<uint32_t>(border.f[i])
                                                         : static_cast<uint32_t>(border.f[i]);
    }
    return border;
  }
  return read_texel(by, object, static_cast<size_t>(x), static_cast<size_t>(y),
                    static_cast<size_t>(z));
}

// The weight of the upper neighbour has 8 fractional bits in the hardware.
float weight_of(float fraction) { return std::floor(fraction * 256.0f + 0.5f) / 256.0f; }

int64_t index_of(float value) {
  constexpr float kFar = 1e9f;
  return static_cast<int64_t>(
      std::floor(std::isnan(value) ? 0.0f : std::clamp(value, -kFar, kFar)));
}

// `position` is in texels; `layer` is the slice of layered textures and cubes.
Texel sample(const Reader& by, const TextureObject& object, const float (&position)[3],
             int dimensions, int64_t layer) {
  if (object.texture.filter == 0) {
    int64_t at[3] = {0, 0, layer};
    for (int axis = 0; axis < dimensions; ++axis) at[axis] = index_of(position[axis]);
    return texel_at(by, object, at[0], at[1], at[2], dimensions);
  }
  int64_t low[3] = {0, 0, layer};
  float weight[3] = {};
  for (int axis = 0; axis < dimensions; ++axis) {
    const float shifted = position[axis] - 0.5f;
    low[axis] = index_of(shifted);
    weight[axis] = weight_of(shifted - std::floor(shifted));
  }
  Texel sum;
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    float share = 1.0f;
    int64_t at[3] = {low[0], low[1], low[2]};
    for (int axis = 0; axis < dimensions; ++axis) {
      const bool upper = corner >> axis & 1;
      share *= upper ? weight[axis] : 1.0f - weight[axis];
      at[axis] += upper;
    }
    if (share == 0.0f) continue;
    const Texel texel = texel_at(by, object, at[0], at[1], at[2], dimensions);
    for (int i = 0; i < 4; ++i) sum.f[i] += share * texel.f[i];
  }
  for (int i = 0; i < 4; ++i) sum.bits[i] = std::bit_cast<uint32_t>(sum.f[i]);
  return sum;
}

// The face of a cube in some direction, and the point on it (CUDA programming guide, cubemap
// textures).
int64_t cube_face(const float (&direction)[3], float* s, float* t) {
  const float x = direction[0], y = direction[1], z = direction[2];
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  int64_t face;
  float m, u, v;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1, m = ax, u = x >= 0 ? -z : z, v = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3, m = ay, u = x, v = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5, m = az, u = z >= 0 ? x : -x, v = -y;
  }
  *s = (u / m + 1.0f) / 2.0f;
  *t = (v / m + 1.0f) / 2.0f;
  return face;
}

// Follows appendix "Texture Fetching" of the CUDA guide step by step, with its 8 fractional bits:
// filtering in full precision would give nicer, but different numbers.
Texel fetch(const Reader& by, const TextureObject& object, const TextureOp& t) {
  Warp& warp = by.warp;
  const uint32_t lane = by.lane;
  const bool layered =
      t.geometry == k1DLayered || t.geometry == k2DLayered || t.geometry == kCubeLayered;
  const bool cube = t.geometry == kCube || t.geometry == kCubeLayered;
  const int dimensions = t.geometry == k1D || t.geometry == k1DLayered ? 1
                         : t.geometry == k3D                           ? 3
                                                                       : 2;
  const uint32_t first = layered ? 1 : 0;
  int64_t layer = layered ? static_cast<int64_t>(warp.lanes<uint32_t>(t.coordinates[0])[lane]) : 0;
  const auto layers = static_cast<int64_t>(cube ? object.depth / 6 : object.depth);
  layer = std::clamp<int64_t>(layer, 0, std::max<int64_t>(layers - 1, 0));
  if (t.integer_coordinates) {
    int64_t at[3] = {0, 0, layer};
    for (int axis = 0; axis < dimensions; ++axis)
      at[axis] = warp.lanes<int32_t>(t.coordinates[first + static_cast<uint32_t>(axis)])[lane];
    const int64_t size[3] = {static_cast<int64_t>(object.width),
                             static_cast<int64_t>(object.height),
                             static_cast<int64_t>(object.depth)};
    for (int axis = 0; axis < dimensions; ++axis) {
      if (at[axis] < 0 || at[axis] >= size[axis]) return {};
    }
    return read_texel(by, object, static_cast<size_t>(at[0]), static_cast<size_t>(at[1]),
                      static_cast<size_t>(at[2]));
  }
  float position[3] = {};
  const int given = cube ? 3 : dimensions;
  for (int axis = 0; axis < given; ++axis)
    position[axis] = warp.lanes<float>(t.coordinates[first + static_cast<uint32_t>(axis)])[lane];
  if (cube) {
    float s = 0, v = 0;
    layer = layer * 6 + cube_face(position, &s, &v);
    position[0] = s * static_cast<float>(object.width);
    position[1] = v * static_cast<float>(object.height);
  } else if (object.texture.normalized) {
    const float size[3] = {static_cast<float>(object.width), static_cast<float>(object.height),
                           static_cast<float>(object.depth)};
    for (int axis = 0; axis < dimensions; ++axis) position[axis] *= size[axis];
  }
  return sample(by, object, position, dimensions, layer);
}

const Op* run_texture(Warp& warp, const Op* op) {
  const TextureOp& t = *static_cast<const TextureOp*>(op->data);
  return for_each_lane(warp, op, t, [&](const TextureObject& object, uint32_t lane) {
    const Texel texel = fetch({warp, op, lane}, object, t);
    // Integers read as floats are normalised; otherwise a float result is the element itself.
    for (uint32_t i = 0; i < t.register_count; ++i) {
      if (!t.registers[i]) continue;
      const bool normalised = object.texture.read_mode == 1 || object.desc.kind == kFloatChannel;
      warp.lanes<uint32_t>(t.registers[i])[lane] =
          t.float_result && normalised ? std::bit_cast<uint32_t>(texel.f[i]) : texel.bits[i];
    }
    return true;
  });
}

// ---- Surfaces

// The bytes of one access. Null with `*skip`: out of bounds, and the access is skipped. Null
// without it: a fault was reported.
std::byte* surface_at(const TextureObject& object, const TextureOp& t, Warp& warp, const Op* op,
                      uint32_t lane, bool* skip) {
  const bool layered = t.geometry == k1DLayered || t.geometry == k2DLayered;
  const int dimensions = t.geometry == k1D || t.geometry == k1DLayered ? 1
                         : t.geometry == k3D                           ? 3
                                                                       : 2;
  const uint32_t first = layered ? 1 : 0;
  int64_t at[3] = {0, 0, layered ? warp.lanes<int32_t>(t.coordinates[0])[lane] : 0};
  for (int axis = 0; axis < dimensions; ++axis)
    at[axis] = warp.lanes<int32_t>(t.coordinates[first + static_cast<uint32_t>(axis)])[lane];
  const auto bytes = int64_t{t.bytes} * t.register_count;
  const int64_t most[3] = {static_cast<int64_t>(object.width * object.element_bytes) - bytes,
                           static_cast<int64_t>(object.height) - 1,
                           static_cast<int64_t>(object.depth) - 1};
  *skip = false;
  for (int axis = 0; axis < 3; ++axis) {
    if (at[axis] >= 0 && at[axis] <= most[axis]) continue;
    if (t.outside == kZero) {
      *skip = true;
      return nullptr;
    }
    if (t.outside == kTrap) {
      warp.fault(
          op, kIllegalAddress, lane,
          fmt::format(
              "Invalid surface access at ({}, {}, {}) of a surface of {} bytes x {} x {}\n{}",
              at[0], at[1], at[2], object.width * object.element_bytes, object.height, object.depth,
              where(warp, *op, lane)));
      return nullptr;
    }
    at[axis] = std::clamp<int64_t>(at[axis], 0, std::max<int64_t>(most[axis], 0));
  }
  return object.data +
         (static_cast<size_t>(at[2]) * object.height + static_cast<size_t>(at[1])) * object.pitch +
         at[0];
}

const Op* run_surface_load(Warp& warp, const Op* op) {
  const TextureOp& t = *static_cast<const TextureOp*>(op->data);
  return for_each_lane(warp, op, t, [&](const TextureObject& object, uint32_t lane) {
    bool skip = false;
    const std::byte* from = surface_at(object, t, warp, op, lane, &skip);
    if (!from && !skip) return false;
    if (from) Reader{warp, op, lane}.touches(from, t.bytes * t.register_count, Access::Read);
    for (uint32_t i = 0; i < t.register_count; ++i) {
      if (!t.registers[i]) continue;
      std::byte* to = warp.lanes<std::byte>(t.registers[i]) + lane * t.register_bytes;
      std::memset(to, 0, t.register_bytes);
      if (from) std::memcpy(to, from + i * t.bytes, t.bytes);
    }
    return true;
  });
}

const Op* run_surface_store(Warp& warp, const Op* op) {
  const TextureOp& t = *static_cast<const TextureOp*>(op->data);
  return for_each_lane(warp, op, t, [&](const TextureObject& object, uint32_t lane) {
    bool skip = false;
    std::byte* to = surface_at(object, t, warp, op, lane, &skip);
    if (!to) return skip;
    Reader{warp, op, lane}.touches(to, t.bytes * t.register_count, Access::Write);
    for (uint32_t i = 0; i < t.register_count; ++i) {
      std::memcpy(to + i * t.bytes, warp.lanes<std::byte>(t.registers[i]) + lane * t.register_bytes,
                  t.bytes);
    }
    return true;
  });
}

// ---- Decoding

bool prepare(Lowering& l, const ptx::Operand& address, ptx::Type coordinate, TextureOp* t) {
  constexpr std::pair<const char*, Geometry> kNames[] = {{"1d", k1D},
                                                         {"2d", k2D},
                                                         {"3d", k3D},
                                                         {"a1d", k1DLayered},
                                                         {"a2d", k2DLayered},
                                                         {"cube", kCube},
                                                         {"acube", kCubeLayered}};
  for (const auto& [name, geometry] : kNames) {
    if (l.has(name)) t->geometry = geometry;
  }
  if (!address.base_is_register)
    return l.refuse("texture references are not supported: use texture objects");
  ptx::Operand handle;
  handle.kind = ptx::OperandKind::Register;
  handle.reg = address.reg;
  if (!l.lanes(handle, ptx::Type::b64, &t->handle)) return false;
  if (address.elements.size() != 1)
    return l.refuse("an access with an offset or a sampler is not supported");
  auto coordinates = parts(address.elements[0]);
  if (coordinates.empty() || coordinates.size() > 4)
    return l.refuse("expected one to four coordinates");
  const bool layered =
      t->geometry == k1DLayered || t->geometry == k2DLayered || t->geometry == kCubeLayered;
  for (const ptx::Operand* one : coordinates) {
    const ptx::Type type = layered && t->count == 0 ? ptx::Type::b32 : coordinate;
    if (!l.lanes(*one, type, &t->coordinates[t->count++])) return false;
  }
  constexpr uint32_t kWanted[] = {1, 2, 3, 2, 3, 3, 4};
  if (t->count < kWanted[t->geometry]) return l.refuse("the geometry has more coordinates");
  t->outside = l.has("clamp") ? kClampToEdge : l.has("zero") ? kZero : kTrap;
  return true;
}

bool targets(Lowering& l, const ptx::Operand& operand, uint32_t bytes, TextureOp* t) {
  for (const ptx::Operand* one : parts(operand)) {
    Dest d;
    if (t->register_count == 4) return l.refuse("more than four registers");
    if (one->kind == ptx::OperandKind::Sink) {
      t->registers[t->register_count++] = 0;
      continue;
    }
    if (!l.dest(*one, bytes, false, &d)) return false;
    t->registers[t->register_count++] = d.offset;
  }
  return true;
}

}  // namespace

bool texture_fetch(Lowering& l) {
  TextureOp t;
  t.integer_coordinates = l.other_type() == ptx::Type::s32;
  t.float_result = l.type() == ptx::Type::f32;
  if (!prepare(l, l.operand(1), t.integer_coordinates ? ptx::Type::b32 : ptx::Type::f32, &t))
    return false;
  if (!targets(l, l.operand(0), 4, &t)) return false;
  Op& op = l.emit(&run_texture);
  op.data = l.own(t);
  return true;
}

bool surface_load(Lowering& l) {
  TextureOp t;
  t.bytes = ptx::bytes_of(l.type());
  for (const ptx::Operand* one : parts(l.operand(0))) {
    if (one->kind == ptx::OperandKind::Register) t.register_bytes = l.register_bytes(*one);
  }
  if (!prepare(l, l.operand(1), ptx::Type::b32, &t)) return false;
  if (!targets(l, l.operand(0), t.register_bytes, &t)) return false;
  Op& op = l.emit(&run_surface_load);
  op.data = l.own(t);
  return true;
}

bool surface_store(Lowering& l) {
  TextureOp t;
  t.bytes = ptx::bytes_of(l.type());
  t.register_bytes = t.bytes;
  for (const ptx::Operand* one : parts(l.operand(1))) {
    if (one->kind == ptx::OperandKind::Register) t.register_bytes = l.register_bytes(*one);
  }
  if (!prepare(l, l.operand(0), ptx::Type::b32, &t)) return false;
  const ptx::Type type = t.register_bytes == 8   ? ptx::Type::b64
                         : t.register_bytes == 4 ? ptx::Type::b32
                                                 : ptx::Type::b16;
  for (const ptx::Operand* one : parts(l.operand(1))) {
    if (t.register_count == 4) return l.refuse("more than four registers");
    if (!l.lanes(*one, type, &t.registers[t.register_count++])) return false;
  }
  Op& op = l.emit(&run_surface_store);
  op.data = l.own(t);
  return true;
}

}  // namespace kiln::engine
