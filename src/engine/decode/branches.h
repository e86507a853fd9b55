// SPDX-License-Identifier: Apache-2.0
// Which branches can become one?
//
// `if (x < 1 || y < 1) return; if (x >= n || y >= n) return;` is two branches to one place, with a
// few comparisons between them. Lanes that take the first may as well compute along up to the
// second, as long as nobody can tell: then a warp goes apart once instead of twice, and the code
// behind is under one predicate.
#pragma once

#include <vector>

#include "ptx/forms.h"
#include "ptx/module.h"

namespace kiln::engine {

// `matches` has one row for each instruction, before and after it.
void join_branches(ptx::Body& body, std::vector<ptx::FormMatch>& matches);

}  // namespace kiln::engine
