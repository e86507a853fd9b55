// SPDX-License-Identifier: Apache-2.0
// How does a space come from kiln.toml or from flags, and how are its points numbered?
#include "tune/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace kiln::tune {

namespace {

Error bad_space(std::string why) {
  return {Fault::Usage, "cannot read the search space", std::move(why),
          "in kiln.toml: [tune.OP] vary = { BLOCK = [64, 128] }, or --vary BLOCK=64,128"};
}

Result<std::string> value_text(const std::string& axis, const Json& value) {
  if (value.is_boolean()) return std::string(value.get<bool>() ? "1" : "0");
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_string()) return value.get<std::string>();
  return bad_space(
      fmt::format("{} has the value {}; a value must be an integer, a string, true or false", axis,
                  dump(value)));
}

}  // namespace

Result<Space> Space::from_json(const Json& axes, const Json& constraints) {
  if (!axes.is_object()) return bad_space("vary is not a table of defines and their values");
  std::vector<Axis> read;
  for (const auto& [name, values] : axes.items()) {
    if (!values.is_array()) return bad_space(fmt::format("{} is not a list of values", name));
    Axis axis{name, {}};
    for (const Json& value : values) {
      TRY(std::string text, value_text(name, value));
      axis.values.push_back(std::move(text));
    }
    read.push_back(std::move(axis));
  }
  std::vector<std::string> texts;
  if (!constraints.is_null() && !constraints.is_array())
    return bad_space("where is not a list of strings");
  for (const Json& constraint : constraints) {
    if (!constraint.is_string())
      return bad_space(fmt::format("the constraint {} is not a string", dump(constraint)));
    texts.push_back(constraint.get<std::string>());
  }
  return make(std::move(read), texts);
}

Result<Space> Space::from_flags(const std::vector<std::string>& axes,
                                const std::vector<std::string>& constraints) {
  std::vector<Axis> read;
  for (const std::string& flag : axes) {
    const size_t equals = flag.find('=');
    if (equals == std::string::npos)
      return bad_space(fmt::format("'{}' does not have the form NAME=VALUE,VALUE", flag));
    Axis axis{flag.substr(0, equals), {}};
    for (std::string_view value : text::split(std::string_view(flag).substr(equals + 1), ','))
      axis.values.emplace_back(text::trim(value));
    read.push_back(std::move(axis));
  }
  return make(std::move(read), constraints);
}

Result<Space> Space::make(std::vector<Axis> axes, const std::vector<std::string>& constraints) {
  if (axes.empty()) return bad_space("it has no axis");
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    if (!text::is_identifier(axis.name))
      return bad_space(fmt::format("'{}' cannot be the name of a define", axis.name));
    if (std::ranges::find(names, axis.name) != names.end())
      return bad_space(fmt::format("the axis {} is given twice", axis.name));
    if (axis.values.empty()) return bad_space(fmt::format("the axis {} has no values", axis.name));
    for (size_t i = 0; i < axis.values.size(); i++) {
      if (axis.values[i].empty())
        return bad_space(fmt::format("the axis {} has an empty value", axis.name));
      if (std::find(axis.values.begin(), axis.values.begin() + static_cast<std::ptrdiff_t>(i),
                    axis.values[i]) != axis.values.begin() + static_cast<std::ptrdiff_t>(i))
        return bad_space(fmt::format("{} has the value {} twice", axis.name, axis.values[i]));
    }
    names.push_back(axis.name);
  }
  Space space;
  space.axes_ = std::move(axes);
  for (const std::string& constraint : constraints) {
    TRY(Expression read, Expression::parse(constraint));
    for (const std::string& name : read.names()) {
      if (std::ranges::find(names, name) != names.end()) continue;
      const std::optional<std::string> meant = text::closest(name, names);
      return bad_space(fmt::format("the constraint \"{}\" names {}, which is not an axis{}",
                                   constraint, name,
                                   meant ? fmt::format("; did you mean {}?", *meant) : ""));
    }
    space.constraints_.push_back(std::move(read));
  }
  return space;
}

uint64_t Space::size() const {
  uint64_t size = 1;
  for (const Axis& axis : axes_)
    if (__builtin_mul_overflow(size, axis.values.size(), &size) ||
        size > std::numeric_limits<int64_t>::max())
      return std::numeric_limits<int64_t>::max();
  return size;
}

Point Space::point(uint64_t number) const {
  Point point(axes_.size());
  for (size_t i = axes_.size(); i-- > 0;) {
    point[i] = number % axes_[i].values.size();
    number /= axes_[i].values.size();
  }
  return point;
}

uint64_t Space::number(const Point& point) const {
  uint64_t number = 0;
  for (size_t i = 0; i < axes_.size(); i++) number = number * axes_[i].values.size() + point[i];
  return number;
}

Result<std::string> Space::forbidden_by(const Point& point) const {
  const auto value = [&](std::string_view name) -> std::optional<int64_t> {
    for (size_t i = 0; i < axes_.size(); i++)
      if (axes_[i].name == name) return text::to_int(axes_[i].values[point[i]]);
    return std::nullopt;
  };
  for (const Expression& constraint : constraints_) {
    TRY(int64_t holds, constraint.value(value));
    if (!holds) return constraint.text();
  }
  return std::string();
}

std::vector<std::string> Space::defines(const Point& point) const {
  std::vector<std::string> defines;
  for (size_t i = 0; i < axes_.size(); i++)
    defines.push_back(axes_[i].name + "=" + axes_[i].values[point[i]]);
  return defines;
}

std::string Space::text(const Point& point) const { return text::join(defines(point), " "); }

std::vector<Point> Space::neighbours(const Point& point) const {
  std::vector<Point> found;
  for (size_t i = 0; i < axes_.size(); i++) {
    Point next = point;
    for (next[i] = 0; next[i] < axes_[i].values.size(); next[i]++)
      if (next[i] != point[i]) found.push_back(next);
  }
  return found;
}

std::optional<Point> Space::find(const std::vector<std::string>& defines) const {
  if (defines.size() != axes_.size()) return std::nullopt;
  Point point(axes_.size());
  for (size_t i = 0; i < axes_.size(); i++) {
    bool found = false;
    for (size_t v = 0; v < axes_[i].values.size() && !found; v++) {
      found = std::ranges::find(defines, axes_[i].name + "=" + axes_[i].values[v]) != defines.end();
      if (found) point[i] = v;
    }
    if (!found) return std::nullopt;
  }
  return point;
}

}  // namespace kiln::tune
