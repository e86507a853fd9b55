// SPDX-License-Identifier: Apache-2.0
// Where is what an edit is compared with, and which steps and headers belong to a source?
//
//   edit/<key>.src    the source for which the host's object was made
//   edit/<key>.fat    the fat binary that was linked, edit/<key>.<arch>.ptx the PTX in it,
//   edit/<key>.stub.c its stub edit/<key>.now    the fat binary of an edit since, behind the hash
//   of what it was made of: that source without its
//                    comments
//   edit/<key>.slice  "right" when NVRTC made of that source's slice what nvcc made of it, else why
//   not edit/linked       the hash of the library that was linked
//
// What is on the disk belongs to a record by contents: a build that was killed may
// have left either.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "build/run/work.h"

namespace kiln::build {

fs::path in_edit(const Work& work, const std::string& name);

const Step* step_of(const Work& work, const Source& source, StepKind kind);
std::vector<const Step*> device_steps(const Work& work, const Source& source);

// Name and text of the headers that are neither the system's nor the toolkit's nor kiln's own.
Result<std::map<std::string, std::string>> users_headers(const Work& work, const Source& source);

}  // namespace kiln::build
