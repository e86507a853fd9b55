// SPDX-License-Identifier: Apache-2.0
// Which functions of the CUDA runtime does the rest of the archive use, and where do launches go?
#pragma once

#include "call.h"
#include "kiln/engine_abi.h"
#include "kiln/launch.h"

namespace kiln::detail {

// A function of the real libcudart; throws, naming what is missing, when there is none.
void* real_function(const char* name);
void* real_symbol(const char* name);  // or null
// The libcudart in use: 13, 12, or 0 when none was found (then `why` says so).
int real_major(Text* why);

// "cudaErrorInvalidValue (1): invalid argument", in words of the runtime that gave the code.
void add_cuda_error(Text&, int code);

// The engine; null when there is none (then `why` has the whole message).
const KilnEngine* find_engine(Text* why);

// Is there a GPU that this process may use? Asked of the file system, since asking the driver would
// initialise it, and a child of fork() could then not use it.
bool machine_has_gpu();

// For a call that ends in an exception: one thrown by an argument of <<<>>> leaves that launch's
// configuration behind.
void drop_configurations();

// KILN_DEVICE=engine or cuda; empty when not set.
enum class Wish { none, engine, cuda };
Wish wished_device();
Wish wished_device_now();  // reads the environment again

}  // namespace kiln::detail
