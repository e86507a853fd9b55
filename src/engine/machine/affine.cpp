// SPDX-License-Identifier: Apache-2.0
// How do instructions compute with base and step?
#include "engine/machine/affine.h"

namespace kiln::engine {
namespace {

template <class T>
void write_rows(const Affine& value, T* lanes) {
  const T step = static_cast<T>(value.step);
  for (uint32_t row = 0, lane = 0; lane < kWarpSize; ++row) {
    const T base = static_cast<T>(value.base + row * value.row_step);
    for (uint32_t i = 0; i < value.row_lanes; ++i) lanes[lane++] = base + static_cast<T>(i) * step;
  }
}

}  // namespace

void materialize(Warp& warp, uint32_t offset) {
  Affine& value = affine_at(warp, offset);
  if (value.state != AffineState::Steps) return;
  if (value.row_lanes) {
    if (value.bytes == 8)
      write_rows(value, warp.lanes<uint64_t>(offset + kAffineLanes));
    else
      write_rows(value, warp.lanes<uint32_t>(offset + kAffineLanes));
  } else if (value.bytes == 8) {
    uint64_t* lanes = warp.lanes<uint64_t>(offset + kAffineLanes);
    for (uint32_t i = 0; i < kWarpSize; ++i) lanes[i] = value.base + i * value.step;
  } else {
    uint32_t* lanes = warp.lanes<uint32_t>(offset + kAffineLanes);
    const uint32_t base = static_cast<uint32_t>(value.base),
                   step = static_cast<uint32_t>(value.step);
    for (uint32_t i = 0; i < kWarpSize; ++i) lanes[i] = base + i * step;
  }
  value.state = AffineState::Both;
}

const Op* run_materialize(Warp& warp, const Op* op) {
  materialize(warp, op->d);
  return op + 1;
}

namespace {

struct Term {
  uint64_t base, step;
  uint64_t row = 0;  // the step from row to row
};

const Op* fall_back(Warp& warp, const Op* op, const AffineOp& how) {
  for (const AffineTerm& term : how.terms) {
    if (term.affine) materialize(warp, term.offset);
  }
  how.on_lanes.run(warp, &how.on_lanes);
  affine_at(warp, op->d).state = AffineState::Lanes;
  return op + 1;
}

// Returns false if the term has only lanes.
template <class T, bool kRows>
bool read(Warp& warp, const AffineTerm& from, Term* out) {
  if (!from.affine) {
    *out = {static_cast<uint64_t>(*warp.lanes<T>(from.offset)), 0};
    return true;
  }
  const Affine& value = affine_at(warp, from.offset);
  *out = {value.base, value.step};
  if constexpr (kRows) out->row = value.row_step;
  return value.state != AffineState::Lanes;
}

// Extends to 64 bits. Returns false if a lane wraps around.
template <class T, bool kRows>
bool widen(Warp& warp, const AffineTerm& from, Term* out) {
  if (!from.affine) {
    *out = {static_cast<uint64_t>(static_cast<int64_t>(*warp.lanes<T>(from.offset))), 0};
    return true;
  }
  const Affine& value = affine_at(warp, from.offset);
  T first, last;
  const auto wide = [](uint64_t step) {
    return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(step)));
  };
  if constexpr (kRows) {
    if (!affine_bounds<T>(value, &first, &last)) return false;
    const auto base = static_cast<uint64_t>(static_cast<int64_t>(static_cast<T>(value.base)));
    *out = {base, wide(value.step), wide(value.row_step)};
  } else {
    if (!affine_ends<T>(value, &first, &last)) return false;
    *out = {static_cast<uint64_t>(static_cast<int64_t>(first)), wide(value.step)};
  }
  return true;
}

template <bool kRows>
void write(Warp& warp, const Op* op, Term value, uint32_t bytes) {
  Affine& d = affine_at(warp, op->d);
  if constexpr (kRows) {
    d.row_step = value.row;
    d.row_lanes = warp.block->grid->block_dim.x;
  }
  d.base = value.base;
  d.step = value.step;
  d.state = AffineState::Steps;
  d.bytes = bytes;
}

template <bool kRows>
Term product(Term a, Term b) {
  // One of the two is a scalar.
  if constexpr (kRows) {
    return a.step || a.row ? Term{a.base * b.base, a.step * b.base, a.row * b.base}
                           : Term{a.base * b.base, a.base * b.step, a.base * b.row};
  }
  return a.step ? Term{a.base * b.base, a.step * b.base} : Term{a.base * b.base, a.base * b.step};
}

template <AffineKind kKind, class T, bool kRows>
const Op* run_affine(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  constexpr bool kThree = kKind == AffineKind::Mad;
  Term a, b, c{0, 0};
  if (!read<T, kRows>(warp, how.terms[0], &a) || !read<T, kRows>(warp, how.terms[1], &b) ||
      (kThree && !read<T, kRows>(warp, how.terms[2], &c))) {
    return fall_back(warp, op, how);
  }
  Term result;
  if constexpr (kKind == AffineKind::Add) {
    result = {a.base + b.base, a.step + b.step, a.row + b.row};
  } else if constexpr (kKind == AffineKind::Sub) {
    result = {a.base - b.base, a.step - b.step, a.row - b.row};
  } else if constexpr (kKind == AffineKind::ShiftLeft) {
    uint32_t by = *warp.lanes<uint32_t>(how.terms[1].offset);
    result = by >= sizeof(T) * 8 ? Term{0, 0} : Term{a.base << by, a.step << by, a.row << by};
  } else {
    result = product<kRows>(a, b);
    result = {result.base + c.base, result.step + c.step, result.row + c.row};
  }
  write<kRows>(warp, op, result, sizeof(T));
  return op + 1;
}

template <class T, bool kRows>
const Op* run_widen(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a;
  if (!widen<T, kRows>(warp, how.terms[0], &a)) return fall_back(warp, op, how);
  write<kRows>(warp, op, a, 8);
  return op + 1;
}

template <bool kRows>
const Op* run_narrow(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a;
  if (!read<uint64_t, kRows>(warp, how.terms[0], &a)) return fall_back(warp, op, how);
  write<kRows>(warp, op, a, 4);
  return op + 1;
}

template <class T, bool kAdds, bool kRows>
const Op* run_mul_wide(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a, b, c{0, 0};
  if (!widen<T, kRows>(warp, how.terms[0], &a) || !widen<T, kRows>(warp, how.terms[1], &b) ||
      (kAdds && !read<uint64_t, kRows>(warp, how.terms[2], &c))) {
    return fall_back(warp, op, how);
  }
  Term result = product<kRows>(a, b);
  write<kRows>(warp, op, {result.base + c.base, result.step + c.step, result.row + c.row}, 8);
  return op + 1;
}

template <AffineKind kKind, bool kRows>
Handler of_width(bool wide) {
  return wide ? &run_affine<kKind, uint64_t, kRows> : &run_affine<kKind, uint32_t, kRows>;
}

template <bool kRows>
Handler handler_of(AffineKind kind, bool wide) {
  switch (kind) {
    case AffineKind::Add:
      return of_width<AffineKind::Add, kRows>(wide);
    case AffineKind::Sub:
      return of_width<AffineKind::Sub, kRows>(wide);
    case AffineKind::Mul:
      return of_width<AffineKind::Mul, kRows>(wide);
    case AffineKind::Mad:
      return of_width<AffineKind::Mad, kRows>(wide);
    case AffineKind::ShiftLeft:
      return of_width<AffineKind::ShiftLeft, kRows>(wide);
    case AffineKind::WidenSigned:
      return &run_widen<int32_t, kRows>;
    case AffineKind::WidenUnsigned:
      return &run_widen<uint32_t, kRows>;
    case AffineKind::Narrow:
      return &run_narrow<kRows>;
    case AffineKind::MulWideSigned:
      return &run_mul_wide<int32_t, false, kRows>;
    case AffineKind::MulWideUnsigned:
      return &run_mul_wide<uint32_t, false, kRows>;
    case AffineKind::MadWideSigned:
      return &run_mul_wide<int32_t, true, kRows>;
    default:
      return &run_mul_wide<uint32_t, true, kRows>;
  }
}

}  // namespace

Handler affine_handler(AffineKind kind, uint32_t bytes, bool rows) {
  return rows ? handler_of<true>(kind, bytes == 8) : handler_of<false>(kind, bytes == 8);
}

}  // namespace kiln::engine
