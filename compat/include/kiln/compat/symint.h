// SPDX-License-Identifier: Apache-2.0
// Where are the ops that take sizes as symbols (at::empty_symint)? A symbol is a number here, so
// they are the ops themselves. The build includes this header where a source names one.
#pragma once
#include <kiln/compat/generated/more_symint.h>
#include <kiln/compat/generated/symint.h>
// Written by hand (tensor.h).
#define empty_symint empty
