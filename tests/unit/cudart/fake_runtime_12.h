// SPDX-License-Identifier: Apache-2.0
//
// Which functions would a libcudart 12 export? A fake one for the tests of the conversions: it
// knows what a test adds.
#ifndef KILN_TEST_FAKE_RUNTIME_12_H
#define KILN_TEST_FAKE_RUNTIME_12_H

#include <map>
#include <string>

namespace fake_runtime_12 {

inline std::map<std::string, void*> exports;

inline void* symbol(const char* name) {
  const auto found = exports.find(name);
  return found == exports.end() ? nullptr : found->second;
}

template <class Function>
void add(const char* name, Function* function) {
  exports[name] = reinterpret_cast<void*>(function);
}

}  // namespace fake_runtime_12

#endif
