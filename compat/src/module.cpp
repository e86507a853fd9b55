// SPDX-License-Identifier: Apache-2.0
// How does PYBIND11_MODULE become a module that Python imports? One C function serves all: it finds
// the overload whose parameters take the arguments, as pybind11 does, first without and then with
// conversions.
#include <kiln/compat/python.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "invoke.h"
#include "shim.h"

namespace kiln::compat {

struct ArgumentSpec {
  const char* name;
  bool has_default;
  Value default_value;
};
struct FunctionSpec {
  std::string name;
  const char* doc = "";
  std::vector<ArgumentSpec> arguments;
  bool release_gil = false;
  int keyword_only_from = -1;
};

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

FunctionSpec* new_spec(const char* name) {
  auto* spec = new FunctionSpec;
  spec->name = name;
  return spec;
}
void spec_doc(FunctionSpec* spec, const char* text) { spec->doc = text; }
void spec_argument(FunctionSpec* spec, const char* name, bool, const Value* default_value) {
  spec->arguments.push_back(
      {name, default_value != nullptr, default_value ? Value(*default_value) : Value()});
}
void spec_keyword_only(FunctionSpec* spec) {
  spec->keyword_only_from = static_cast<int>(spec->arguments.size());
}
void spec_release_gil(FunctionSpec* spec) { spec->release_gil = true; }

namespace {

struct Overload {
  FunctionSpec spec;
  Function function;
  std::vector<Ref> defaults;  // by argument; empty where there is none
};

struct Callable {
  std::string name;
  std::string doc;
  PyMethodDef method;
  std::vector<Overload*> overloads;
};

constexpr int kVarArgs = 1, kKeywords = 2;

std::string argument_name(const Overload& o, int i) {
  const char* name = static_cast<size_t>(i) < o.spec.arguments.size()
                         ? o.spec.arguments[static_cast<size_t>(i)].name
                         : nullptr;
  return name ? name : "arg" + std::to_string(i);
}

// A result is what it is; an argument is what converts to it.
std::string result_name(const Type& type) {
  switch (type.kind) {
    case Type::Kind::integer:
      return "int";
    case Type::Kind::real:
      return "float";
    case Type::Kind::optional:
      return result_name(*type.inner[0]) + " | None";
    case Type::Kind::list:
      return "list[" + result_name(*type.inner[0]) + "]";
    case Type::Kind::tuple: {
      std::string text = "tuple[";
      for (int i = 0; i < type.count; i++) text += (i ? ", " : "") + result_name(*type.inner[i]);
      return text + "]";
    }
    default:
      return name_of(type);
  }
}

std::string signature(const Overload& o, bool with_name) {
  std::string text = with_name ? o.spec.name : "";
  text += "(";
  for (int i = 0; i < o.function.parameter_count; i++) {
    if (i) text += ", ";
    if (i == o.spec.keyword_only_from) text += "*, ";
    text += argument_name(o, i) + ": " + name_of(*o.function.parameters[i]);
    const auto at = static_cast<size_t>(i);
    if (at < o.defaults.size() && o.defaults[at]) {
      Ref shown(PyObject_Repr(o.defaults[at].get()));
      text += " = " + (shown ? text_of(shown.get()) : std::string("..."));
    }
  }
  text += ") -> ";
  return text + (o.function.result ? result_name(*o.function.result) : "None");
}

void write_doc(Callable& c) {
  c.doc.clear();
  if (c.overloads.size() > 1) c.doc = c.name + "(*args, **kwargs)\nOverloaded function.\n\n";
  int number = 1;
  for (const Overload* o : c.overloads) {
    if (c.overloads.size() > 1) c.doc += std::to_string(number++) + ". ";
    c.doc += signature(*o, true) + "\n";
    if (*o->spec.doc) c.doc += std::string("\n") + o->spec.doc + "\n";
    if (c.overloads.size() > 1 && o != c.overloads.back()) c.doc += "\n";
  }
  c.method.ml_doc = c.doc.c_str();
}

// The object for each parameter, borrowed; false where the call does not fit.
bool match(const Overload& o, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& found) {
  const auto count = static_cast<size_t>(o.function.parameter_count);
  const auto given = static_cast<size_t>(PyTuple_Size(args));
  const size_t most =
      o.spec.keyword_only_from >= 0 ? static_cast<size_t>(o.spec.keyword_only_from) : count;
  if (given > most) return false;
  found.assign(count, nullptr);
  for (size_t i = 0; i < given; i++) found[i] = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i));
  size_t named = 0;
  for (size_t i = 0; i < count; i++) {
    const char* name = i < o.spec.arguments.size() ? o.spec.arguments[i].name : nullptr;
    PyObject* by_name = kwargs && name ? PyDict_GetItemString(kwargs, name) : nullptr;
    if (by_name) {
      if (found[i]) return false;
      found[i] = by_name;
      named++;
    }
    if (!found[i] && i < o.defaults.size() && o.defaults[i]) found[i] = o.defaults[i].get();
    if (!found[i]) return false;
  }
  return !kwargs || static_cast<size_t>(PyDict_Size(kwargs)) == named;
}

bool load_all(const Overload& o, const std::vector<PyObject*>& objects, bool convert,
              std::vector<Value>& values) {
  values.clear();
  values.resize(objects.size());
  for (size_t i = 0; i < objects.size(); i++)
    if (!load(*o.function.parameters[i], objects[i], convert, values[i])) return false;
  return true;
}

PyObject* run(const Overload& o, std::vector<Value>& values) {
  Value result;
  if (o.spec.release_gil) {
    struct Released {
      void* state = PyEval_SaveThread();
      ~Released() { PyEval_RestoreThread(state); }
    } released;
    invoke(o.function, o.spec.name.c_str(), values.data(), result);
  } else {
    invoke(o.function, o.spec.name.c_str(), values.data(), result);
  }
  return object_from(result).take();
}

std::string shown_call(PyObject* args, PyObject* kwargs) {
  std::string text;
  auto add = [&](PyObject* object) {
    Ref shown(PyObject_Repr(object));
    if (!shown) PyErr_Clear();
    text += shown ? text_of(shown.get()) : "<repr raised Error>";
  };
  for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
    if (i) text += ", ";
    add(PyTuple_GetItem(args, i));
  }
  if (kwargs && PyDict_Size(kwargs)) {
    text += PyTuple_Size(args) ? "; kwargs: " : "kwargs: ";
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (bool first = true; PyDict_Next(kwargs, &at, &key, &value); first = false) {
      if (!first) text += ", ";
      text += text_of(key) + "=";
      add(value);
    }
  }
  return text;
}

PyObject* no_overload_fits(const Callable& c, PyObject* args, PyObject* kwargs) {
  std::string text =
      c.name + "(): incompatible function arguments. The following argument types are supported:\n";
  int number = 1;
  for (const Overload* o : c.overloads)
    text += "    " + std::to_string(number++) + ". " + signature(*o, false) + "\n";
  text += "\nInvoked with: " + shown_call(args, kwargs);
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return nullptr;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* c = static_cast<Callable*>(PyCapsule_GetPointer(self, nullptr));
  try {
    std::vector<PyObject*> objects;
    std::vector<Value> values;
    // One function: what converts, converts at once.
    for (int convert = c->overloads.size() == 1 ? 1 : 0; convert < 2; convert++)
      for (const Overload* o : c->overloads)
        if (match(*o, args, kwargs, objects) && load_all(*o, objects, convert != 0, values))
          return run(*o, values);
    return no_overload_fits(*c, args, kwargs);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// PyModuleDef as every Python from 3.3 on lays it out; behind the head of an object, which has two
// words more in the free-threaded build.
struct ModuleDef {
  void* m_init;
  Py_ssize_t m_index;
  PyObject* m_copy;
  const char* m_name;
  const char* m_doc;
  Py_ssize_t m_size;
  PyMethodDef* m_methods;
  void* m_slots;
  void *m_traverse, *m_clear, *m_free;
};

constexpr int kModuleApi = 1013;

PyObject* new_module(const char* name) {
  const bool free_threaded = strstr(Py_GetVersion(), "free-threading") != nullptr;
  const size_t head = free_threaded ? 32 : 16;
  auto* memory =
      static_cast<char*>(calloc(1, head + sizeof(ModuleDef)));  // as long as the process lives
  const Py_ssize_t one = 1;
  if (!free_threaded) memcpy(memory, &one, sizeof one);
  auto* def = reinterpret_cast<ModuleDef*>(memory + head);
  def->m_name = strdup(name);
  def->m_size = -1;
  return PyModule_Create2(memory, kModuleApi);
}

}  // namespace

struct Module {
  PyObject* object;
  std::string name;
  std::vector<Callable*> callables;
};

void define_function(Module* module, FunctionSpec* spec, const Function& function) {
  auto* o = new Overload{std::move(*spec), function, {}};
  delete spec;
  for (ArgumentSpec& a : o->spec.arguments)
    o->defaults.push_back(a.has_default ? object_from(a.default_value) : Ref());
  if (!o->spec.arguments.empty() &&
      o->spec.arguments.size() != static_cast<size_t>(function.parameter_count))
    throw at::Error("pybind11: " + o->spec.name +
                    ": the number of py::arg differs from the number of parameters");
  for (Callable* c : module->callables)
    if (c->name == o->spec.name) {
      c->overloads.push_back(o);
      write_doc(*c);
      return;
    }
  auto* c = new Callable{o->spec.name, "", {}, {o}};
  c->method = {c->name.c_str(), call, kVarArgs | kKeywords, ""};
  write_doc(*c);
  module->callables.push_back(c);
  Ref self = checked(PyCapsule_New(c, nullptr, nullptr));
  Ref name = checked(PyUnicode_FromStringAndSize(module->name.data(),
                                                 static_cast<Py_ssize_t>(module->name.size())));
  Ref made = checked(PyCFunction_NewEx(&c->method, self.get(), name.get()));
  if (PyObject_SetAttrString(module->object, c->name.c_str(), made.get())) throw_python_error();
}

void set_attribute(Module* module, const char* name, const Value& value) {
  if (PyObject_SetAttrString(module->object, name, object_from(value).get())) throw_python_error();
}

void set_doc(Module* module, const char* text) {
  Value value;
  Caster<std::string>::give(value, text);
  set_attribute(module, "__doc__", value);
}

Module* submodule(Module* module, const char* name, const char* doc) {
  std::string full = module->name + "." + name;
  auto* made = new Module{checked(PyModule_New(full.c_str())).take(), full, {}};
  if (*doc) set_doc(made, doc);
  if (PyObject_SetAttrString(module->object, name, made->object)) throw_python_error();
  return made;
}

PyObject* make_module(const char* name, void (*fill)(Module*)) {
  try {
    if (const char* why = load_failure()) {
      PyErr_SetString(PyExc_ImportError, why);
      return nullptr;
    }
    PyObject* object = new_module(name);
    if (!object) return nullptr;
    fill(new Module{object, name, {}});
    return object;
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace kiln::compat

namespace pybind11 {
inline namespace kc {
gil_scoped_release::gil_scoped_release() : state_(PyEval_SaveThread()) {}
gil_scoped_release::~gil_scoped_release() { PyEval_RestoreThread(state_); }
gil_scoped_acquire::gil_scoped_acquire() : state_(PyGILState_Ensure()) {}
gil_scoped_acquire::~gil_scoped_acquire() { PyGILState_Release(state_); }
}  // namespace kc
}  // namespace pybind11
