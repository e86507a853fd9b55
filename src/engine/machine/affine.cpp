// SPDX-License-Identifier: Apache-2.0
// How do instructions compute with base and step?
#include "engine/machine/affine.h"

namespace kiln::engine {

void materialize(Warp& warp, uint32_t offset) {
  Affine& value = affine_at(warp, offset);
  if (value.state != AffineState::Steps) return;
  if (value.bytes == 8) {
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
};

const Op* fall_back(Warp& warp, const Op* op, const AffineOp& how) {
  for (const AffineTerm& term : how.terms) {
    if (term.affine) materialize(warp, term.offset);
  }
  how.on_lanes.run(warp, &how.on_lanes);
  affine_at(warp, op->d).state = AffineState::Lanes;
  return op + 1;
}

// False: the term has only lanes left.
template <class T>
bool read(Warp& warp, const AffineTerm& from, Term* out) {
  if (!from.affine) {
    *out = {static_cast<uint64_t>(*warp.lanes<T>(from.offset)), 0};
    return true;
  }
  const Affine& value = affine_at(warp, from.offset);
  *out = {value.base, value.step};
  return value.state != AffineState::Lanes;
}

// As a 64-bit number; false: some lane wraps around.
template <class T>
bool widen(Warp& warp, const AffineTerm& from, Term* out) {
  if (!from.affine) {
    *out = {static_cast<uint64_t>(static_cast<int64_t>(*warp.lanes<T>(from.offset))), 0};
    return true;
  }
  const Affine& value = affine_at(warp, from.offset);
  T first, last;
  if (!affine_ends<T>(value, &first, &last)) return false;
  *out = {static_cast<uint64_t>(static_cast<int64_t>(first)),
          static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value.step)))};
  return true;
}

void write(Warp& warp, const Op* op, Term value, uint32_t bytes) {
  Affine& d = affine_at(warp, op->d);
  d.base = value.base;
  d.step = value.step;
  d.state = AffineState::Steps;
  d.bytes = bytes;
}

Term product(Term a, Term b) {
  // One of the two is a scalar.
  return a.step ? Term{a.base * b.base, a.step * b.base} : Term{a.base * b.base, a.base * b.step};
}

template <AffineKind kKind, class T>
const Op* run_affine(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  constexpr bool kThree = kKind == AffineKind::Mad;
  Term a, b, c{0, 0};
  if (!read<T>(warp, how.terms[0], &a) || !read<T>(warp, how.terms[1], &b) ||
      (kThree && !read<T>(warp, how.terms[2], &c))) {
    return fall_back(warp, op, how);
  }
  Term result;
  if constexpr (kKind == AffineKind::Add) {
    result = {a.base + b.base, a.step + b.step};
  } else if constexpr (kKind == AffineKind::Sub) {
    result = {a.base - b.base, a.step - b.step};
  } else if constexpr (kKind == AffineKind::ShiftLeft) {
    uint32_t by = *warp.lanes<uint32_t>(how.terms[1].offset);
    result = by >= sizeof(T) * 8 ? Term{0, 0} : Term{a.base << by, a.step << by};
  } else {
    result = product(a, b);
    result = {result.base + c.base, result.step + c.step};
  }
  write(warp, op, result, sizeof(T));
  return op + 1;
}

template <class T>
const Op* run_widen(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a;
  if (!widen<T>(warp, how.terms[0], &a)) return fall_back(warp, op, how);
  write(warp, op, a, 8);
  return op + 1;
}

const Op* run_narrow(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a;
  if (!read<uint64_t>(warp, how.terms[0], &a)) return fall_back(warp, op, how);
  write(warp, op, a, 4);
  return op + 1;
}

template <class T, bool kAdds>
const Op* run_mul_wide(Warp& warp, const Op* op) {
  const AffineOp& how = *static_cast<const AffineOp*>(op->data);
  Term a, b, c{0, 0};
  if (!widen<T>(warp, how.terms[0], &a) || !widen<T>(warp, how.terms[1], &b) ||
      (kAdds && !read<uint64_t>(warp, how.terms[2], &c))) {
    return fall_back(warp, op, how);
  }
  Term result = product(a, b);
  write(warp, op, {result.base + c.base, result.step + c.step}, 8);
  return op + 1;
}

}  // namespace

Handler affine_handler(AffineKind kind, uint32_t bytes) {
  bool wide = bytes == 8;
  switch (kind) {
    case AffineKind::Add:
      return wide ? &run_affine<AffineKind::Add, uint64_t> : &run_affine<AffineKind::Add, uint32_t>;
    case AffineKind::Sub:
      return wide ? &run_affine<AffineKind::Sub, uint64_t> : &run_affine<AffineKind::Sub, uint32_t>;
    case AffineKind::Mul:
      return wide ? &run_affine<AffineKind::Mul, uint64_t> : &run_affine<AffineKind::Mul, uint32_t>;
    case AffineKind::Mad:
      return wide ? &run_affine<AffineKind::Mad, uint64_t> : &run_affine<AffineKind::Mad, uint32_t>;
    case AffineKind::ShiftLeft:
      return wide ? &run_affine<AffineKind::ShiftLeft, uint64_t>
                  : &run_affine<AffineKind::ShiftLeft, uint32_t>;
    case AffineKind::WidenSigned:
      return &run_widen<int32_t>;
    case AffineKind::WidenUnsigned:
      return &run_widen<uint32_t>;
    case AffineKind::Narrow:
      return &run_narrow;
    case AffineKind::MulWideSigned:
      return &run_mul_wide<int32_t, false>;
    case AffineKind::MulWideUnsigned:
      return &run_mul_wide<uint32_t, false>;
    case AffineKind::MadWideSigned:
      return &run_mul_wide<int32_t, true>;
    default:
      return &run_mul_wide<uint32_t, true>;
  }
}

}  // namespace kiln::engine
