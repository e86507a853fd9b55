// SPDX-License-Identifier: Apache-2.0
// How does torch::autograd::Function reach torch's graph? One class in Python, derived from
// torch.autograd.Function, serves all: its forward and backward call back into the node that
// apply() made.
#include <cxxabi.h>
#include <kiln/compat/autograd.h>
#include <stdlib.h>

#include "convert.h"
#include "invoke.h"
#include "shim.h"

using kiln::compat::checked;
using kiln::compat::object_from;
using kiln::compat::py_none;
using kiln::compat::Ref;
using kiln::compat::tensor_from;
using kiln::compat::torch_attribute;
using kiln::compat::Value;
using kiln::compat::WithGil;

namespace at {
inline namespace kc {

bool GradMode::is_enabled() {
  static const auto get = kiln::compat::shim<bool (*)()>("aoti_torch_grad_mode_is_enabled");
  return get();
}
void GradMode::set_enabled(bool enabled) {
  static const auto set = kiln::compat::shim<void (*)(bool)>("aoti_torch_grad_mode_set_enabled");
  set(enabled);
}

}  // namespace kc
}  // namespace at

namespace c10 {
inline namespace kc {

namespace {
constexpr const char* kKindNames[] = {"None",   "Tensor", "Double",  "Int",        "Bool",
                                      "String", "Device", "IntList", "DoubleList", "TensorList"};
}

std::string IValue::tagKind() const { return kKindNames[static_cast<int>(kind_)]; }
void IValue::wrong_kind(Kind wanted) const {
  throw Error(str("Expected ", kKindNames[static_cast<int>(wanted)], " but got ", tagKind()));
}
Scalar IValue::toScalar() const {
  if (isDouble()) return Scalar(f_);
  if (isBool()) return Scalar(i_ != 0);
  return Scalar(toInt());
}

}  // namespace kc
}  // namespace c10

namespace torch {
namespace autograd {
inline namespace kc {

namespace detail {

struct Node {
  Backward backward;
  std::string name;
  AutogradContext context;
  variable_list tensors;  // the inputs, until forward has run
  enum class Input : uint8_t { other, tensor, undefined };
  std::vector<Input> inputs;  // each argument of forward
  Forward forward = nullptr;
  void* call = nullptr;

  // The context is Python's while one of the two runs.
  struct Entered {
    AutogradContext& context;
    Entered(Node& node, PyObject* python) : context(node.context) { context.python_ = python; }
    ~Entered() { context.python_ = nullptr; }
  };
  static PyObject* python_of(const AutogradContext& context) {
    if (!context.python_)
      throw at::Error("AutogradContext: used outside of the forward and backward of its function");
    return static_cast<PyObject*>(context.python_);
  }
};

namespace {

Ref tuple_of(const variable_list& tensors) {
  const auto count = static_cast<Py_ssize_t>(tensors.size());
  Ref tuple = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(tuple.get(), i, object_from(tensors[static_cast<size_t>(i)]).take());
  return tuple;
}

variable_list list_from(PyObject* sequence) {
  variable_list tensors;
  const Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count; i++) {
    Ref item = checked(PySequence_GetItem(sequence, i));
    tensors.push_back(item.get() == py_none() ? at::Tensor() : tensor_from(item.get()));
  }
  return tensors;
}

std::string shown(const char* type_name) {
  char* plain = abi::__cxa_demangle(type_name, nullptr, nullptr, nullptr);
  std::string text = std::string("torch::autograd::CppNode<") + (plain ? plain : type_name) + ">";
  free(plain);
  return text;
}

// What backward returns, one for each argument of forward: the part that belongs to tensors.
variable_list for_tensors(const Node& node, variable_list gradients) {
  const size_t wanted = node.inputs.size();
  bool rest_undefined = true;
  for (size_t i = wanted; i < gradients.size(); i++) rest_undefined &= !gradients[i].defined();
  if (gradients.size() > wanted && rest_undefined) gradients.resize(wanted);
  if (gradients.size() != wanted)
    throw at::Error(c10::str("function ", node.name,
                             " returned an incorrect number of gradients (expected ", wanted,
                             ", got ", gradients.size(), ")"));
  variable_list chosen;
  for (size_t i = 0; i < wanted; i++) {
    if (node.inputs[i] == Node::Input::tensor)
      chosen.push_back(gradients[i]);
    else if (node.inputs[i] == Node::Input::undefined)
      chosen.emplace_back();
    else if (gradients[i].defined())
      throw at::Error(c10::str("function ", node.name,
                               " returned a gradient different that is defined at position ", i + 1,
                               ", std the corresponding forward input was not a Variable"));
  }
  return chosen;
}

// A call of its own: kernels that backward starts belong to it.
variable_list run_backward(Node& node, variable_list gradients) {
  struct Both {
    Node& node;
    variable_list gradients, results;
  } both{node, static_cast<variable_list&&>(gradients), {}};
  std::vector<Value> arguments(1);
  kiln::compat::Caster<variable_list>::give(arguments[0], both.gradients);
  kiln::compat::Function function = {&both,
                                     [](void* data, Value*, Value&) {
                                       auto& b = *static_cast<Both*>(data);
                                       b.results = b.node.backward(&b.node.context, b.gradients);
                                     },
                                     1, nullptr, nullptr};
  Value nothing;
  kiln::compat::invoke(function, node.name.c_str(), arguments.data(), nothing);
  return for_tensors(node, static_cast<variable_list&&>(both.results));
}

Node* node_of(PyObject* capsule) {
  return static_cast<Node*>(PyCapsule_GetPointer(capsule, nullptr));
}

// call(context, None): forward. call(context, gradients): backward. Both give a tuple.
PyObject* enter(PyObject* self, PyObject* arguments, PyObject*) {
  try {
    Node& node = *node_of(self);
    PyObject* gradients = PyTuple_GetItem(arguments, 1);
    Node::Entered entered(node, PyTuple_GetItem(arguments, 0));
    if (gradients == py_none()) return tuple_of(node.forward(node.call, &node.context)).take();
    return tuple_of(run_backward(node, list_from(gradients))).take();
  } catch (...) {
    kiln::compat::set_python_error();
    return nullptr;
  }
}

constexpr const char* kPython =
    "import torch\n"
    "class CppFunction(torch.autograd.Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, call, *tensors):\n"
    "        ctx.call = call\n"
    "        return call(ctx, None)\n"
    "    @staticmethod\n"
    "    def backward(ctx, *gradients):\n"
    "        return None, *ctx.call(ctx, gradients)\n"
    "apply = CppFunction.apply\n";

PyObject* python_apply() {
  static PyObject* const apply = [] {
    Ref names = checked(PyDict_New());
    Ref arguments = checked(PyTuple_New(2));
    const std::string text = kPython;
    PyTuple_SetItem(
        arguments.get(), 0,
        checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())))
            .take());
    PyTuple_SetItem(arguments.get(), 1, Ref::to(names.get()).take());
    checked(PyObject_CallObject(torch_attribute("builtins", "exec").get(), arguments.get()));
    return Ref::to(PyDict_GetItemString(names.get(), "apply"))
        .take();  // kept for the life of the process
  }();
  return apply;
}

}  // namespace

Node* new_node(Backward backward, const char* type_name) {
  if (!kiln::compat::has_python())
    throw at::Error(
        "error: cannot run a torch::autograd::Function\n  why: a library built with kiln's compat "
        "headers reaches "
        "torch's graph through Python, and there is none in this process\n  fix: kiln build "
        "--compat=never");
  auto* node = new Node;
  node->backward = backward;
  node->name = shown(type_name);
  return node;
}
void add_tensor(Node* node, const at::Tensor& tensor) {
  node->inputs.push_back(tensor.defined() ? Node::Input::tensor : Node::Input::undefined);
  node->tensors.push_back(tensor);
}
void add_other(Node* node) { node->inputs.push_back(Node::Input::other); }

variable_list run_forward(Node* node, Forward forward, void* call) {
  static PyMethodDef method = {"call", enter, 1 | 2, ""};
  node->forward = forward;
  node->call = call;
  WithGil gil;
  Ref capsule = checked(PyCapsule_New(node, nullptr, [](PyObject* gone) { delete node_of(gone); }));
  Ref callable = checked(PyCFunction_NewEx(&method, capsule.get(), nullptr));
  const auto count = static_cast<Py_ssize_t>(node->tensors.size());
  Ref arguments = checked(PyTuple_New(count + 1));
  PyTuple_SetItem(arguments.get(), 0, callable.take());
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(arguments.get(), i + 1,
                    object_from(node->tensors[static_cast<size_t>(i)]).take());
  node->tensors.clear();
  Ref results = checked(PyObject_CallObject(python_apply(), arguments.get()));
  return list_from(results.get());
}

}  // namespace detail

void increment_version(const at::Tensor& tensor) {
  WithGil gil;
  Ref arguments = checked(PyTuple_New(1));
  PyTuple_SetItem(arguments.get(), 0, object_from(tensor).take());
  checked(PyObject_CallObject(torch_attribute("torch.autograd.graph", "increment_version").get(),
                              arguments.get()));
}

namespace {

void tell(const AutogradContext& context, const char* method, const variable_list& tensors) {
  PyObject* python = detail::Node::python_of(context);
  WithGil gil;
  Ref bound = checked(PyObject_GetAttrString(python, method));
  checked(PyObject_CallObject(bound.get(), detail::tuple_of(tensors).get()));
}

}  // namespace

void AutogradContext::save_for_backward(variable_list tensors) {
  tell(*this, "save_for_backward", tensors);
}
void AutogradContext::mark_dirty(const variable_list& inputs) { tell(*this, "mark_dirty", inputs); }
void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  tell(*this, "mark_non_differentiable", outputs);
}
void AutogradContext::set_materialize_grads(bool wanted) {
  WithGil gil;
  Ref value = checked(PyBool_FromLong(wanted));
  if (PyObject_SetAttrString(detail::Node::python_of(*this), "materialize_grads", value.get()))
    kiln::compat::throw_python_error();
}
variable_list AutogradContext::get_saved_variables() const {
  WithGil gil;
  Ref saved = checked(PyObject_GetAttrString(detail::Node::python_of(*this), "saved_tensors"));
  return detail::list_from(saved.get());
}
bool AutogradContext::needs_input_grad(size_t tensor) const {
  WithGil gil;
  Ref needs = checked(PyObject_GetAttrString(detail::Node::python_of(*this), "needs_input_grad"));
  const auto at = static_cast<Py_ssize_t>(tensor) + 1;  // the first is `call`
  if (at >= PySequence_Size(needs.get())) throw at::Error("Index out of range");
  Ref one = checked(PySequence_GetItem(needs.get(), at));
  return PyObject_IsTrue(one.get()) == 1;
}

}  // namespace kc
}  // namespace autograd
}  // namespace torch
