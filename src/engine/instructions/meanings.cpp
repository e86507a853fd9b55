// SPDX-License-Identifier: Apache-2.0
// Which handlers does the compiler know? Asked when a program has run long enough to be compiled.
#include "engine/decode/meanings.h"

namespace kiln::engine {

const Meaning* meaning_of(Handler handler) {
  static const Meanings kAll = [] {
    Meanings all;
    describe_float(all);
    describe_rounded(all);
    describe_integer(all);
    describe_bits(all);
    describe_compare(all);
    describe_select(all);
    describe_convert(all);
    describe_memory(all);
    describe_move(all);
    describe_control(all);
    return all;
  }();
  return kAll.find(handler);
}

}  // namespace kiln::engine
