// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/machine/fault.h"

namespace kiln::watch {

using namespace engine;
using results::FindingObject;

namespace {

std::string index_text(uint64_t offset, uint32_t bytes) {
  if (bytes == 0) return "";
  if (offset % bytes == 0) return fmt::format("[{}]", offset / bytes);
  return fmt::format(" at byte {}", offset);
}

// "k(float*)::tile" is known to its author as "tile".
std::string short_name(std::string_view mangled) {
  std::string name = demangled(std::string(mangled));
  const size_t colons = name.rfind("::");
  return colons == name.npos ? name : name.substr(colons + 2);
}

// Of the kernel and all it calls.
void collect(const Program& program, std::set<const Program*>* seen,
             std::vector<SharedVariable>* out) {
  if (!seen->insert(&program).second) return;
  out->insert(out->end(), program.shared_variables.begin(), program.shared_variables.end());
  for (const Program* callee : program.callees) {
    if (callee) collect(*callee, seen, out);
  }
}

}  // namespace

FindingObject global_object(const MemoryMap& memory, uint64_t address, uint32_t bytes) {
  FindingObject object;
  const auto region = memory.owner(address);
  if (!region) return object;
  object.offset_bytes = static_cast<int64_t>(address - region->begin);
  object.size_bytes = static_cast<int64_t>(region->end - region->begin);
  object.index = index_text(address - region->begin, bytes);
  const std::string name = region->name ? region->name : "";
  object.kind = name.empty() ? "allocation" : "tensor";
  object.name = name;
  return object;
}

FindingObject shared_object(const LaunchEvent& launch, uint64_t address, uint32_t bytes) {
  std::vector<SharedVariable> variables;
  std::set<const Program*> seen;
  collect(*launch.program, &seen, &variables);
  const uint64_t dynamic = launch.shared_bytes - launch.dynamic_shared_bytes;
  FindingObject object{"shared memory", "", index_text(address, bytes),
                       static_cast<int64_t>(address), static_cast<int64_t>(launch.shared_bytes)};
  for (const SharedVariable& variable : variables) {
    const bool is_extern = variable.bytes == 0;
    const uint64_t begin = is_extern ? dynamic : variable.offset;
    const uint64_t size = is_extern ? launch.dynamic_shared_bytes : variable.bytes;
    if (address < begin || address >= begin + size) continue;
    return {"shared variable", short_name(variable.name), index_text(address - begin, bytes),
            static_cast<int64_t>(address - begin), static_cast<int64_t>(size)};
  }
  return object;
}

std::string text_of(const FindingObject& object) {
  if (!object.name.empty()) {
    // A tensor without a name is described in words by who made the launch.
    const bool words = object.name.find(' ') != std::string::npos;
    return words ? object.name : fmt::format("{} '{}'", object.kind, object.name);
  }
  if (object.kind == "allocation")
    return fmt::format("an allocation of {} bytes", object.size_bytes);
  return object.kind.empty() ? "memory of no allocation" : object.kind;
}

std::string indexed_text_of(const FindingObject& object) { return text_of(object) + object.index; }

void describe_unordered_setup(results::Finding& finding, results::FindingPlace use,
                              results::FindingPlace setup) {
  use.action = "used here";
  setup.action = "set up here";
  finding.message = "mbarrier is used before it is set up, or nothing orders the two";
  finding.places = {std::move(use), std::move(setup)};
  finding.advice = "let all that use it pass a barrier behind the setup: __syncthreads()";
}

}  // namespace kiln::watch
