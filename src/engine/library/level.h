// SPDX-License-Identifier: Apache-2.0
// Which build of the engine suits this CPU? The same sources are compiled for several levels of a
// processor, each into a library of its own next to libkiln_engine.so, which is for every CPU of
// its kind and opens the best of the others.
//
// Libraries and not tables of handlers: an inline function of the standard library that two levels
// compile is one symbol to the linker, and the wrong one of the two may be kept.
#pragma once

#include <string>
#include <string_view>

#include "kiln/engine_abi.h"

namespace kiln::engine {

// The best level first; empty: the baseline is all there is.
struct Level {
  const char* name;  // as in -march and in the library's name
  bool (*supported)();
};

// `asked`: KILN_ENGINE_LEVEL, "" for the best, "baseline" for none. Empty: the baseline.
std::string_view level_for(std::string_view asked);
// The table of the library for that level next to `library`; null: it is not there, and the
// baseline serves.
const KilnEngine* engine_of_level(std::string_view level, const void* in_library,
                                  uint32_t abi_version);

}  // namespace kiln::engine
