// SPDX-License-Identifier: Apache-2.0
// Which branches can be joined?
//
// `if (x < 1 || y < 1) return; if (x >= n || y >= n) return;` is two branches to one place, with a
// few comparisons between them. Lanes that take the first branch may compute along up to the second
// if this cannot be observed. Then a warp diverges once instead of twice, and the code after the
// branch is under one predicate.
#pragma once

#include <vector>

#include "ptx/forms.h"
#include "ptx/module.h"

namespace kiln::engine {

// `matches` has one row per instruction, before and after the call.
void join_branches(ptx::Body& body, std::vector<ptx::FormMatch>& matches);

}  // namespace kiln::engine
