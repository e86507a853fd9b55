// SPDX-License-Identifier: Apache-2.0
// Who is notified of launches? A profiler; it costs nothing if there is none.
#pragma once

#include <cstdint>

#include "kiln/engine_abi.h"

namespace kiln::engine {

// Null: stop listening.
void listen_to_launches(KilnLaunchListener listener, void* user);

// Returns 0 if there is no listener.
int64_t launch_begins();
void launch_ended(int64_t begin_ns, const KilnEngineLaunch& launch, const char* kernel,
                  uint64_t shared_bytes, int code);

}  // namespace kiln::engine
