// SPDX-License-Identifier: Apache-2.0
// How is an op called through its symbol __tvm_ffi_NAME? Arguments are read by the schema; then
// either nothing follows and the results are returned, or memory for each result follows and they
// are written there.
#include <stdlib.h>
#include <string.h>

#include <exception>

#include "call.h"
#include "ffi_host.h"
#include "ffi_values.h"
#include "front.h"
#include "host_call.h"
#include "kiln/ffi_symbol.h"
#include "memory.h"
#include "registry.h"

namespace kiln::detail {
namespace {

using ffi::Any;

int tensor_results(const OpRecord* op) {
  int count = 0;
  for (int i = 0; i < op->result_count; i++) count += (op->result_kinds[i] & kBaseMask) == kTensor;
  return count;
}

// Trailing arguments may be left out if they have defaults.
int required_parameters(const OpRecord* op) {
  int required = op->parameter_count;
  while (required > 0) {
    const KilnParameter& p = op->state->info.parameters[required - 1];
    if (!(p.flags & (KILN_PARAMETER_HAS_DEFAULT | KILN_PARAMETER_OPTIONAL))) break;
    required--;
  }
  return required;
}

[[noreturn]] void wrong_count(const OpRecord* op, int given) {
  const int results = tensor_results(op);
  Text what, why, text;
  what.addf("%s was called with %d arguments", op->state->info.name, given);
  why.addf("it takes %d: %s", op->parameter_count, op->state->info.schema);
  if (results) why.addf("; or %d, with memory for the results last", op->parameter_count + results);
  add_error(text, what.c_str(), why.c_str(), "pass them in the order of the schema");
  throw_text(static_cast<Text&&>(text));
}

[[noreturn]] void no_rule(const OpRecord* op) {
  Text what, why, fix, text;
  what.addf("cannot call %s with memory for its results", op->state->info.name);
  why.addf("the op has no fake rule, so nobody knows the sizes before it ran (%s:%d)", op->file,
           op->line);
  fix.addf("add one: KILN_OP(%s, ...).fake(\"like(x)\"); kiln docs fake-rules", op->function);
  add_error(text, what.c_str(), why.c_str(), fix.c_str());
  throw_text(static_cast<Text&&>(text));
}

void run(OpRecord* op, const Any* arguments, int count, Any* result) {
  const int parameters = op->parameter_count, buffers = tensor_results(op);
  const bool into = buffers > 0 && count == parameters + buffers;
  if (!into && (count > parameters || count < required_parameters(op))) wrong_count(op, count);
  if (into && !*op->fake) no_rule(op);
  FfiValues values(op, parameters + buffers);
  for (int i = 0; i < parameters; i++)
    i < count ? values.take(i, arguments[i]) : values.take_default(i);
  for (int i = 0; into && i < buffers; i++) values.take_buffer(i, arguments[parameters + i]);
  const UsedStream stream(values.device());
  KilnValue* results = values.results();
  if (into)
    call_op_into(op, values.values(), static_cast<uint32_t>(parameters), results, values.buffers(),
                 buffers);
  else
    call_op(op, values.values(), static_cast<uint32_t>(parameters), results);
  give_results(op, results, result);
}

}  // namespace

int call_from_ffi(OpRecord* op, const void* arguments, int32_t count, void* result) {
  auto* answer = static_cast<Any*>(result);
  *answer = {};
  try {
    if (!registry().count) {
      raise_in_host(registry().fault.c_str());
      return -1;
    }
    run(op, static_cast<const Any*>(arguments), count, answer);
    return 0;
  } catch (const std::exception& e) {
    set_error(e.what());
    raise_in_host(e.what());
  } catch (...) {
    set_error("error: an exception that is not a std::exception");
    raise_in_host("error: an exception that is not a std::exception");
  }
  if (!current_call()) drop_configurations();
  return -1;
}

}  // namespace kiln::detail
