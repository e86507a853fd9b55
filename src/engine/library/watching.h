// SPDX-License-Identifier: Apache-2.0
// What do the watchers give to the library? Three functions. They are joined at link time: a
// program without watchers (the engine's tests, which need not compile what watchers report)
// defines its own.
#pragma once

#include <string>

#include "engine/cudart/environment.h"
#include "engine/machine/events.h"

namespace kiln::engine {

// The watchers that the environment asks for, or null; `problem` is what is wrong with its words.
Sink* watchers_of(const Environment& asked, std::string* problem);

// Begins to check what is launched, with the checks that are named, or, with null, ends it and
// gives the findings as JSON. Not while a kernel runs. {"error": TEXT}: nothing was begun.
const char* sanitize_part(const char* checks);

// Counts what is launched from now on, into a file; with null it ends. Who else watches goes on.
int count_launches_into(const char* path);

}  // namespace kiln::engine
