// SPDX-License-Identifier: Apache-2.0
// What does a build without a code generator answer? It takes the place of the other files here.
#include "engine/compile/facts.h"
#include "engine/program/tiering.h"

namespace kiln::engine {

std::shared_ptr<Tiering> make_tiering(const Program&) { return nullptr; }

bool compiles() { return false; }

CompiledFacts compiled_facts(const Program&) { return {}; }

void keep_facts() {}

std::vector<KernelFacts> kept_facts() { return {}; }

}  // namespace kiln::engine
