// SPDX-License-Identifier: Apache-2.0
// How do the arguments of a command reach another language? As JSON, read by the host's grammar, so
// that `kiln bench --against` in Python calls with what `kiln call` calls with.
#pragma once

#include <kiln/abi.h>

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "host/arguments.h"

namespace kiln::measure {

// {"kind", "value"}: none; bool; int; float, as a text that has inf and nan too; str; dtype,
// torch's number; device; ints; floats; tensor, a spec; tensors.
Json argument_json(const host::Argument& argument);

// [{"name", "kind", "value"}], with name "" for those by position. By the parameters of an op,
// without those that have their defaults:
Result<Json> bound_arguments(std::span<const KilnOpInfo> ops, const std::string& name,
                             const std::vector<std::string>& texts);
// For a function whose parameters are not known, each text means what it is written as:
Result<Json> free_arguments(const std::vector<std::string>& texts);

}  // namespace kiln::measure
