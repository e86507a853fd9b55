// SPDX-License-Identifier: Apache-2.0
// Where does kiln keep code and commands that its next run trusts? In a folder that nobody else can
// write to.
#pragma once

#include "project/home.h"

namespace kiln::project {

// cache_folder(), made for this user alone if it is not there; an error if others may write to it.
Result<sys::fs::path> own_cache_folder(sys::Files& files, const sys::Environment& env);

}  // namespace kiln::project
