// SPDX-License-Identifier: Apache-2.0
// Which torch is this? Its own header says so: sources choose between spellings by
// TORCH_VERSION_MAJOR.
#pragma once

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include_next <torch/version.h>
#endif
