// SPDX-License-Identifier: Apache-2.0
#include "python_kernel.h"

#include "convert.h"
#include "invoke.h"
#include "python_api.h"

namespace kiln::compat {

namespace {

Ref text_object(const std::string& text) {
  return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

template <class... R>
Ref tuple_of(R... parts) {
  Ref tuple = checked(PyTuple_New(sizeof...(R)));
  Py_ssize_t i = 0;
  (PyTuple_SetItem(tuple.get(), i++, parts.take()), ...);
  return tuple;
}

// The arguments of a kernel's schema: torch leaves out those that have their default, and passes
// some by keyword.
Ref schema_arguments(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  Ref all = checked(
      PyObject_CallObject(torch_attribute("torch._C", "_jit_get_schemas_for_operator").get(),
                          tuple_of(text_object(name.substr(0, dot))).get()));
  for (Py_ssize_t i = 0; i < PySequence_Size(all.get()); i++) {
    Ref one = checked(PySequence_GetItem(all.get(), i));
    if (text_of(checked(PyObject_GetAttrString(one.get(), "overload_name")).get()) == overload)
      return checked(PyObject_GetAttrString(one.get(), "arguments"));
  }
  throw at::Error("torch has no schema of " + name);
}

Ref left_out(const Ref& arguments, Py_ssize_t number, PyObject* keywords) {
  Ref argument = checked(PySequence_GetItem(arguments.get(), number));
  const std::string name = text_of(checked(PyObject_GetAttrString(argument.get(), "name")).get());
  PyObject* given = keywords ? PyDict_GetItemString(keywords, name.c_str()) : nullptr;
  return given ? Ref::to(given) : checked(PyObject_GetAttrString(argument.get(), "default_value"));
}

PyObject* call_kernel(PyObject* self, PyObject* given, PyObject* keywords) {
  try {
    const auto& kernel = *static_cast<Kernel*>(PyCapsule_GetPointer(self, nullptr));
    const Function& f = kernel.function;
    std::vector<Value> arguments(static_cast<size_t>(f.parameter_count) + 1);
    const Py_ssize_t count = PyTuple_Size(given);
    Ref schema;
    if (count < f.parameter_count) schema = schema_arguments(kernel.name);
    for (int i = 0; i < f.parameter_count; i++) {
      Ref one = i < count ? Ref::to(PyTuple_GetItem(given, i)) : left_out(schema, i, keywords);
      if (!load(*f.parameters[i], one.get(), true, arguments[static_cast<size_t>(i)]))
        throw at::Error(
            c10::str(kernel.name, ": argument ", i, " is no ", name_of(*f.parameters[i])));
    }
    Value result;
    invoke(f, kernel.name.c_str(), arguments.data(), result);
    return object_from(result).take();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace

void implement_in_python(const std::string& ns, const std::string& key, const std::string& name,
                         const Kernel& kernel) {
  if (!has_python())
    throw at::Error(c10::str("error: cannot register ", kernel.name,
                             "\n  why: a type of it does not cross torch's C shim, and there is "
                             "no Python in this process\n  fix: kiln build --compat=never"));
  static PyMethodDef method = {"kernel", call_kernel, 1 | 2, ""};
  WithGil gil;
  Ref capsule = checked(PyCapsule_New(const_cast<Kernel*>(&kernel), nullptr, nullptr));
  Ref callable = checked(PyCFunction_NewEx(&method, capsule.get(), nullptr));
  Ref library = checked(
      PyObject_CallObject(torch_attribute("torch.library", "Library").get(),
                          tuple_of(text_object(ns), text_object("IMPL"), text_object(key)).get()));
  Ref implement = checked(PyObject_GetAttrString(library.get(), "impl"));
  checked(PyObject_CallObject(implement.get(),
                              tuple_of(text_object(name), static_cast<Ref&&>(callable)).get()));
  library.take();  // kept: it would take its kernels along
}

}  // namespace kiln::compat
