// SPDX-License-Identifier: Apache-2.0
// Which configurations are there to try? Axes of defines, each with its values, and constraints
// between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tune/expression.h"

namespace kiln::tune {

struct Axis {
  std::string name;                 // a define
  std::vector<std::string> values;  // as -DNAME=VALUE will have them; at least one, each once
};

// The index of a value on each axis, in the order of the axes.
using Point = std::vector<size_t>;

class Space {
 public:
  // {"BLOCK_M": [64, 128], "FAST": [true, false]} and ["BLOCK_M % 64 == 0"].
  static Result<Space> from_json(const Json& axes, const Json& constraints);
  // "BLOCK_M=64,128" each.
  static Result<Space> from_flags(const std::vector<std::string>& axes,
                                  const std::vector<std::string>& constraints);

  const std::vector<Axis>& axes() const { return axes_; }
  // Of all points, those that a constraint forbids too; saturates at 2^63 - 1.
  uint64_t size() const;
  // Numbers count with the last axis fastest.
  Point point(uint64_t number) const;
  uint64_t number(const Point& point) const;

  // "" if it may be tried, else the constraint that forbids it. An error where a constraint cannot
  // be evaluated.
  Result<std::string> forbidden_by(const Point& point) const;
  // {"BLOCK_M=64", "FAST=1"}
  std::vector<std::string> defines(const Point& point) const;
  // "BLOCK_M=64 FAST=1"
  std::string text(const Point& point) const;
  // Another value on one axis.
  std::vector<Point> neighbours(const Point& point) const;
  // The point with these defines, or nothing.
  std::optional<Point> find(const std::vector<std::string>& defines) const;

 private:
  static Result<Space> make(std::vector<Axis> axes, const std::vector<std::string>& constraints);
  std::vector<Axis> axes_;
  std::vector<Expression> constraints_;
};

}  // namespace kiln::tune
