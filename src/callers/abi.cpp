// SPDX-License-Identifier: Apache-2.0
// What does libkiln_callers.so export? A function that makes the callable of an op, and one that
// puts a cheaper way to torch before it (front.cpp). Which library an array belongs to is decided
// by the type of the first one: torch's go to torch's own function.
#include <exception>

#include "callers/caller.h"

namespace kiln::callers {
namespace {

// The first array by position or by name, or the first of a list; null: there is none, which is
// torch's or the op's error.
Ref first_array(const Caller& caller, PyObject* const* args, intptr_t count, PyObject* names) {
  if (caller.first_array < 0) return {};
  const KilnParameter& parameter = caller.info->parameters[caller.first_array];
  PyObject* found = caller.first_array < count ? args[caller.first_array] : nullptr;
  for (intptr_t k = 0; !found && names && k < PyTuple_Size(names); k++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, k), parameter.name) == 0)
      found = args[count + k];
  if (!found) return {};
  if (parameter.type == KILN_TYPE_TENSOR) return shared(found);
  Ref item(PySequence_GetItem(found, 0));
  if (!item) PyErr_Clear();
  return item;
}

// A library's own way of calling gets the op before the arguments.
PyObject* call_with_op(PyObject* route, PyObject* op, PyObject* const* args, intptr_t count,
                       PyObject* names) {
  const intptr_t all = count + (names ? PyTuple_Size(names) : 0);
  std::vector<PyObject*> longer = {op};
  longer.insert(longer.end(), args, args + all);
  return PyObject_Vectorcall(route, longer.data(), static_cast<size_t>(count) + 1, names);
}

PyObject* call(PyObject* self, PyObject* const* args, intptr_t count, PyObject* names) {
  Caller& caller = caller_of(self);
  const Ref array = first_array(caller, args, count, names);
  PyObject* route = array ? route_of(caller, array.get()) : caller.otherwise;
  if (!route) return nullptr;
  if (is_none(route)) {
    route = caller.otherwise;
    if (array && !caller.plain_type && !is_none(route) &&
        caller.info->parameters[caller.first_array].type == KILN_TYPE_TENSOR)
      caller.plain_type = PyObject_Type(array.get());
  }
  const bool here = is_none(route);
  const Ref yes(PyBool_FromLong(1));
  if (!here && route != yes.get()) {
    if (route == caller.otherwise)
      return PyObject_Vectorcall(route, args, static_cast<size_t>(count), names);
    return call_with_op(route, self, args, count, names);
  }
  try {
    PyObject* result = PythonCall(caller).run(args, count, names);
    if (result || is_none(caller.next) || !PyErr_ExceptionMatches(caller.support.argument_error))
      return result;
    PyErr_Clear();
    return PyObject_Vectorcall(caller.next, args, static_cast<size_t>(count), names);
  } catch (const std::exception&) {  // memory
    return nullptr;
  }
}

}  // namespace

PyObject* route_of(const Caller& caller, PyObject* array) {
  const Ref type(PyObject_Type(array));
  PyObject* route = PyDict_GetItemWithError(caller.support.routes, type.get());
  if (route) return route;
  PyObject* arguments[] = {array};
  const Ref found(PyObject_Vectorcall(caller.support.find_route, arguments, 1, nullptr));
  return found ? PyDict_GetItemWithError(caller.support.routes, type.get()) : nullptr;
}

Caller& caller_of(PyObject* self) {
  return *static_cast<Caller*>(PyCapsule_GetPointer(self, nullptr));
}

}  // namespace kiln::callers

extern "C" __attribute__((visibility("default"))) PyObject* kiln_new_caller(
    void* symbol, const KilnLibrary* library, uint32_t op, PyObject* otherwise, PyObject* next,
    PyObject* support) {
  using namespace kiln::callers;
  auto* caller = new Caller{};  // for as long as the process lives, as the library does
  caller->symbol = reinterpret_cast<OpSymbol>(symbol);
  caller->library = library;
  caller->info = &library->ops[op];
  caller->otherwise = shared(otherwise).give();
  caller->next = shared(next).give();
  PyObject** slots[] = {&caller->support.routes,        &caller->support.find_route,
                        &caller->support.makers,        &caller->support.find_maker,
                        &caller->support.fail,          &caller->support.number_of,
                        &caller->support.argument_error};
  for (intptr_t i = 0; i < 7; i++) *slots[i] = shared(PyTuple_GetItem(support, i)).give();
  caller->first_array = -1;
  for (uint32_t i = 0; i < caller->info->parameter_count; i++) {
    const KilnParameter& p = caller->info->parameters[i];
    caller->names.push_back(PyUnicode_InternFromString(p.name));
    const bool first = caller->first_array < 0 && p.type == KILN_TYPE_TENSOR_LIST;
    const bool plain = p.type == KILN_TYPE_TENSOR &&
                       (caller->first_array < 0 ||
                        caller->info->parameters[caller->first_array].type != KILN_TYPE_TENSOR);
    if (first || plain) caller->first_array = static_cast<int>(i);
  }
  caller->method = {caller->info->name, call, kFastWithKeywords, caller->info->schema};
  const Ref self(PyCapsule_New(caller, nullptr, nullptr));
  return self ? PyCFunction_NewEx(&caller->method, self.get(), nullptr) : nullptr;
}
