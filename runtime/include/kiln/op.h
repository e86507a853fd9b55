// SPDX-License-Identifier: Apache-2.0
// The one header that a kernel author includes. It adds no header to those that nvcc includes by
// itself.
#pragma once

#include <kiln/types.h>
#include <kiln/view.h>

#ifndef __CUDACC_RTC__  // device code alone needs no more
#include <kiln/check.h>
#include <kiln/dispatch.h>
#include <kiln/launch.h>
#include <kiln/register.h>
#include <kiln/tensor.h>
#endif
