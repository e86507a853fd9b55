// SPDX-License-Identifier: Apache-2.0
// What does each byte of a file belong to? Pieces that cover the file once, so that their total is
// its size.
#pragma once

#include <string>
#include <vector>

#include "inspect/images.h"
#include "results/file_bytes.h"

namespace kiln::inspect {

using results::Group;
using results::name_of;
using results::Piece;
using GroupTotal = results::GroupBytes;

// In the order of the file, none empty, none overlapping: the second claim on a byte is ignored.
std::vector<Piece> picture_of(binary::Bytes file, const ImageList& images);

// Largest first.
std::vector<GroupTotal> totals_of(const std::vector<Piece>& pieces);

}  // namespace kiln::inspect
