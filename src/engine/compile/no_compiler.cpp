// SPDX-License-Identifier: Apache-2.0
// What does a build without a code generator answer? This file replaces all others in this folder.
#include "engine/compile/facts.h"
#include "engine/program/tiering.h"

namespace kiln::engine {

std::shared_ptr<Tiering> make_tiering(const Program&) { return nullptr; }

bool compiles() { return false; }

CompiledFacts compiled_facts(const Program&) { return {}; }

void keep_facts() {}

std::vector<KernelFacts> kept_facts() { return {}; }

}  // namespace kiln::engine
