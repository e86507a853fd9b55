// SPDX-License-Identifier: Apache-2.0
// What do the watchers provide to the library? Three functions, which the linker joins: a program
// without watchers (the engine's tests, which need not compile what watchers report) defines its
// own.
#pragma once

#include <string>

#include "engine/cudart/environment.h"
#include "engine/machine/events.h"

namespace kiln::engine {

// The watchers that the environment asks for, or null. `problem`: what is wrong with its values.
Sink* watchers_of(const Environment& asked, std::string* problem);

// Starts to check launches, with the named checks; with null, stops and returns the findings as
// JSON. Must not be called while a kernel runs. {"error": TEXT}: checks were not started.
const char* sanitize_part(const char* checks);

// Counts launches from now on, into a file; with null, stops. Other watchers continue.
int count_launches_into(const char* path);

}  // namespace kiln::engine
