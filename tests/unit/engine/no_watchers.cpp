// SPDX-License-Identifier: Apache-2.0
// The library of these tests has no watchers: what the environment could ask for is tested in
// tests/unit/watch and through the command.
#include "engine/cuda/errors.h"
#include "engine/library/watching.h"

namespace kiln::engine {

Sink* watchers_of(const Environment&, std::string*) { return nullptr; }

const char* sanitize_part(const char*) { return "{\"error\": \"no watchers in this program\"}"; }

int count_launches_into(const char*) { return kInvalidValue; }

}  // namespace kiln::engine
