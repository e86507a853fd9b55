// SPDX-License-Identifier: Apache-2.0
// Which build of the engine is best for this CPU? The same sources are compiled for several levels
// of a CPU, each into its own library next to libkiln_engine.so, which works on every CPU of its
// architecture and opens the best of the others.
//
// Libraries and not tables of handlers: an inline function of the standard library that is compiled
// for two levels is one symbol to the linker, which may keep the wrong one.
#pragma once

#include <string>
#include <string_view>

#include "kiln/engine_abi.h"

namespace kiln::engine {

// The best level first; empty: there is only the baseline.
struct Level {
  const char* name;  // as in -march and in the library's name
  bool (*supported)();
};

// `asked`: KILN_ENGINE_LEVEL, "" for the best, "baseline" for none. Returns "" for the baseline.
std::string_view level_for(std::string_view asked);
// The table of the library for that level next to the library that contains `in_library`. Null:
// there is none, and the baseline is used.
const KilnEngine* engine_of_level(std::string_view level, const void* in_library,
                                  uint32_t abi_version);

}  // namespace kiln::engine
