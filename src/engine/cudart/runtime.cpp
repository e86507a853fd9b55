// SPDX-License-Identifier: Apache-2.0
// How is a function of the CUDA runtime found by name?
#include "engine/cudart/runtime.h"

#include <string_view>
#include <unordered_map>

#include "engine/cudart/state.h"

namespace kiln::engine {

namespace {

std::unordered_map<std::string_view, void*> make_table() {
  std::unordered_map<std::string_view, void*> table;
  for (const auto& list :
       {runtime_memory(), runtime_copies(), runtime_arrays(), runtime_streams(), runtime_capture(),
        runtime_graphs(), runtime_graph_nodes(), runtime_device(), runtime_launch(),
        runtime_errors(), runtime_driver()}) {
    for (const RuntimeFunction& function : list) table.emplace(function.name, function.address);
  }
  return table;
}

}  // namespace

void* runtime_function(const char* name) {
  static const auto* table = new std::unordered_map<std::string_view, void*>(make_table());
  std::string_view wanted = name;
  // A thread's default stream is a stream like any other here: work is done when a call returns.
  for (std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (wanted.size() > suffix.size() && wanted.substr(wanted.size() - suffix.size()) == suffix)
      wanted.remove_suffix(suffix.size());
  }
  auto found = table->find(wanted);
  return found == table->end() ? nullptr : found->second;
}

}  // namespace kiln::engine
