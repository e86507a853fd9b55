// SPDX-License-Identifier: Apache-2.0
// What does torch/extension.h bring? Everything but CUDA's part, which has headers of its own.
#pragma once

#include <kiln/compat/library.h>
#include <kiln/compat/python.h>
#include <kiln/compat/tensor_api.h>
