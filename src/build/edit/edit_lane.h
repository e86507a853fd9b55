// SPDX-License-Identifier: Apache-2.0
// Can a build be done by compiling device code alone? When one source changed, and inside its
// kernels' bodies and its comments only: the host's object stays, and the new device code is put
// into the library that is there.
#pragma once

#include <optional>

#include "build/run/state.h"
#include "build/run/work.h"

namespace kiln::build {

// After a build of the full lane: what a later edit is compared with.
Status remember_for_edits(const Work& work);

struct Edit {
  const Source* source = nullptr;
  std::string text;  // as it is now
  BuildState state;  // the former one, with the source as it was when its text was read
};

// The source that alone changed since `former`, inside kernels' bodies and comments; else
// nothing, and why.
std::optional<Edit> find_edit(const Work& work, BuildState former, std::string& why);

struct EditedLibrary {
  std::string bytes;
  std::string lane;  // "slice", "device", or "none" when nothing had to be compiled
  std::string why;
};
// Nothing when device code alone will not do after all: `why` says what the compiler made
// different.
Result<std::optional<EditedLibrary>> build_edit(Work& work, const Edit& edit, std::string& why);

}  // namespace kiln::build
