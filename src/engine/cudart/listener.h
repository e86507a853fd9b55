// SPDX-License-Identifier: Apache-2.0
// Who wants to hear of launches? A profiler; nobody else pays for it.
#pragma once

#include <cstdint>

#include "kiln/engine_abi.h"

namespace kiln::engine {

// Null: nobody.
void listen_to_launches(KilnLaunchListener listener, void* user);

// 0 when nobody listens.
int64_t launch_begins();
void launch_ended(int64_t begin_ns, const KilnEngineLaunch& launch, const char* kernel,
                  uint64_t shared_bytes, int code);

}  // namespace kiln::engine
