// SPDX-License-Identifier: Apache-2.0
// Who may write there? This user, asked without writing anything; and other users, who must not.
#pragma once

#include <optional>
#include <string>

#include "sys/files.h"

namespace kiln::sys {

// The path itself, or the first one above it that exists.
fs::path nearest_existing(const Files& files, fs::path path);

// Whether files can be put into the directory, which is made if it is not there. The disk may still
// be full.
Status may_write(const Files& files, const fs::path& directory);

// How another user could put files into a folder whose content this one trusts.
struct Exposure {
  fs::path path;  // where they come in: a folder, or a link on the way
  std::string why, fix;
};

// Whether a folder above that others cannot enter makes up for one that they may write to.
enum class Above { Ignored, Counts };

// Nothing when only this user and root can change what is in `folder`, which need not be there.
// Looked at from `own`, the folder itself or one above it, on down: whoever swaps a folder above
// that one for another cannot make it this user's. Below a folder that others cannot enter only the
// owner counts.
std::optional<Exposure> exposure_of(const fs::path& folder, const fs::path& own,
                                    Above above = Above::Ignored);
inline std::optional<Exposure> exposure_of(const fs::path& folder) {
  return exposure_of(folder, folder);
}

}  // namespace kiln::sys
