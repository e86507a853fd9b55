// SPDX-License-Identifier: Apache-2.0
// Which shared variable is an address computed from?
//
// A compiler computes the address of an element from the variable's symbol and an index, never from
// the symbol of another variable. An address is followed through operations that keep it in its
// variable: additions, alignment, conversions between spaces. If two variables are combined, by a
// selection or a difference, the variable is unknown and nothing is checked.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ptx/forms.h"
#include "ptx/module.h"

namespace kiln::engine {

class SharedBases {
 public:
  using IsShared = std::function<bool(std::string_view)>;
  SharedBases(const ptx::Body& body, std::span<const ptx::FormMatch> matches, IsShared is_shared);

  // The variable's name; empty: unknown.
  std::string_view of(const ptx::Instruction& instruction) const;

 private:
  enum class State : uint8_t { Unset, None, One, Mixed };
  struct Base {
    State state = State::Unset;
    std::string_view name;  // of One

    bool operator==(const Base&) const = default;
  };

  Base of_operand(const ptx::Operand& operand) const;
  Base made_by(const ptx::Form& form, const ptx::Instruction& instruction) const;
  static Base either(const Base& a, const Base& b);
  static Base sum(const Base& a, const Base& b);

  IsShared is_shared_;
  std::vector<Base> registers_;
};

}  // namespace kiln::engine
