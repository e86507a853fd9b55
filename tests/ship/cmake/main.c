/* SPDX-License-Identifier: Apache-2.0
 * The same header in C. */
#include <scale_ops.h>
#include <stdio.h>

int main(void) {
  const KilnLibrary* ops = scale_ops_library();
  printf("%s: %u op, %s\n", ops->name, ops->op_count, ops->ops[0].schema);
  return 0;
}
