// SPDX-License-Identifier: Apache-2.0
// Which special registers exist, by PTX name? (PTX ISA 10)
#pragma once

#include <string_view>

#include "engine/program/program.h"

namespace kiln::engine {

struct SpecialRow {
  std::string_view name;
  Special special;
  bool lanes;  // lanes have different values
};
inline constexpr SpecialRow kSpecials[] = {
#define SPECIAL(name, ptx, tier, value) {ptx, Special::name, false},
#define LANES(name, ptx, tier, lane_value, value) {ptx, Special::name, true},
#define ALSO(ptx, name) {ptx, Special::name, false},
#define CHANGING(name)
#include "engine/program/specials.def"
};

// How long its value stays the same in a frame that stores it this way.
constexpr Tier tier_of(Special special, [[maybe_unused]] bool lanes, [[maybe_unused]] bool affine) {
  switch (special) {
#define SPECIAL(name, ptx, tier, value) \
  case Special::name:                   \
    return tier;
#define LANES(name, ptx, tier, lane_value, value) SPECIAL_TIER(name, tier)
#define SPECIAL_TIER(name, tier) \
  case Special::name:            \
    return tier;
#define ALSO(ptx, name)
#define CHANGING(name) \
  case Special::name:  \
    break;
#include "engine/program/specials.def"
#undef SPECIAL_TIER
  }
  return Tier::Warp;
}

}  // namespace kiln::engine
