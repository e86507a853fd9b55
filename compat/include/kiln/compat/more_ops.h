// SPDX-License-Identifier: Apache-2.0
// What of the ops that few sources use? The build includes this header first where a source names
// one: declaring all of them would cost every other source a third of a second.
#pragma once
#define KILN_COMPAT_MORE_OPS

#include <kiln/compat/tensor_api.h>

namespace at {
inline namespace kc {
#include <kiln/compat/generated/more_functions.h>
}  // namespace kc
}  // namespace at
namespace torch {
inline namespace kc {
#include <kiln/compat/generated/more_factories.h>
}  // namespace kc
}  // namespace torch
