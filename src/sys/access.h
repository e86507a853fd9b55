// SPDX-License-Identifier: Apache-2.0
// May this user write there? Asked without writing anything.
#pragma once

#include "sys/files.h"

namespace kiln::sys {

// The path itself, or the first one above it that exists.
fs::path nearest_existing(const Files& files, fs::path path);

// Whether files can be put into the directory, which is made if it is not there. The disk may still be full.
Status may_write(const Files& files, const fs::path& directory);

}  // namespace kiln::sys
