// SPDX-License-Identifier: Apache-2.0
// What happens around a function that pybind11 itself calls? pybind11 loads the arguments, makes
// its call guard, runs the function and destroys the guard. So a call begins with the first tensor
// that is loaded, and the guard takes it over: the tensors are the call's then.
#include <exception>
#include <memory>

#include "call.h"
#include "convert.h"
#include "front.h"
#include "shim.h"

namespace kiln::compat {

namespace {

using kiln::detail::Backend;
using kiln::detail::Call;

// A call whose function does not run yet. If no overload takes the arguments, the next one gets it:
// a call owns no tensor, and one that dies leaves its list.
thread_local Call* t_begun = nullptr;

Call* begun_call() {
  static const kiln::detail::OpRecord record = [] {
    kiln::detail::OpRecord made = {};
    made.function = "a function of the extension";
    return made;
  }();
  if (!t_begun) {
    t_begun = new Call(&record, true);
    t_begun->place_on({kiln::DeviceType::cpu, 0}, kiln::detail::default_backend());
  }
  return t_begun;
}

bool has_tensors(const Type& type) {
  if (type.kind == Type::Kind::tensor) return true;
  for (const Type* const* inner = type.inner; inner && *inner; inner++)
    if (has_tensors(**inner)) return true;
  return false;
}

// The first on a GPU says where the function runs.
void place_by(const Value& value, Call* call) {
  if (call->device.type == kiln::DeviceType::cuda) return;
  if (value.kind == Value::Kind::tensor) {
    auto* rep = reinterpret_cast<kiln::detail::TensorRep*>(value.tensor.unsafe_rep());
    if (rep->device.type == kiln::DeviceType::cuda)
      call->place_on({kiln::DeviceType::cuda, rep->device.index}, Backend::real);
  }
  for (const Value& one : value.list) place_by(one, call);
}

}  // namespace

bool load_argument(const Type& type, PyObject* object, bool convert, Value& value) {
  if (!has_tensors(type)) return load(type, object, convert, value);
  Call* call = begun_call();
  if (!load(type, object, convert, value)) return false;
  place_by(value, call);
  return true;
}

PyObject* result_object(const Value& value) { return object_from(value).take(); }

PythonCall::PythonCall() : call_(begun_call()) {
  t_begun = nullptr;
  if (const char* why = load_failure()) {
    delete static_cast<Call*>(call_);
    throw at::Error(why);
  }
}

PythonCall::~PythonCall() noexcept(false) {
  const std::unique_ptr<Call> call(static_cast<Call*>(call_));
  if (!std::uncaught_exceptions()) call->finish();
}

void set_error_of_torch() { set_python_error(); }

}  // namespace kiln::compat
