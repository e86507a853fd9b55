// SPDX-License-Identifier: Apache-2.0
// How does a source define an op with its derivative? torch::autograd::Function, whose graph node
// is made by Python's torch.autograd.Function: saved tensors, versions, hooks and threads are
// torch's own.
#pragma once

#include <kiln/compat/list.h>

#include <typeinfo>
#include <unordered_map>

namespace at {
inline namespace kc {
struct GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};
struct AutoGradMode {
  explicit AutoGradMode(bool enabled) : before(GradMode::is_enabled()) {
    GradMode::set_enabled(enabled);
  }
  AutoGradMode(const AutoGradMode&) = delete;
  ~AutoGradMode() { GradMode::set_enabled(before); }
  bool before;
};
}  // namespace kc
}  // namespace at

namespace torch {
using at::AutoGradMode;
using at::GradMode;
namespace autograd {
inline namespace kc {

using at::AutoGradMode;
using at::GradMode;
using tensor_list = std::vector<at::Tensor>;
using optional_variable_list = std::vector<std::optional<at::Tensor>>;

void increment_version(const at::Tensor& tensor);
inline bool any_variable_requires_grad(const variable_list& tensors) {
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.requires_grad()) return true;
  return false;
}

namespace detail {
struct Node;
}

class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  std::unordered_map<std::string, c10::IValue> saved_data;
  void save_for_backward(variable_list tensors);
  variable_list get_saved_variables() const;
  void mark_dirty(const variable_list& inputs);
  void mark_non_differentiable(const variable_list& outputs);
  void set_materialize_grads(bool wanted);
  bool needs_input_grad(size_t tensor) const;

 private:
  friend struct detail::Node;
  void* python_ =
      nullptr;  // the context of torch.autograd.Function, while forward or backward runs
};

namespace detail {

using Backward = variable_list (*)(AutogradContext*, const variable_list&);
using Forward = variable_list (*)(void* call, AutogradContext*);
Node* new_node(Backward backward, const char* type_name);
void add_tensor(Node* node, const at::Tensor& tensor);
void add_other(Node* node);
variable_list run_forward(Node* node, Forward forward, void* call);  // takes the node over

inline void add(Node* node, const at::Tensor& tensor) { add_tensor(node, tensor); }
inline void add(Node* node, const std::optional<at::Tensor>& tensor) {
  if (tensor && tensor->defined())
    add_tensor(node, *tensor);
  else
    add_other(node);
}
inline void add(Node* node, const at::TensorList& list) {
  for (const at::Tensor& tensor : list) add_tensor(node, tensor);
}
template <class T>
void add(Node* node, const T&) {
  add_other(node);
}

inline variable_list list_of(at::Tensor one) { return {static_cast<at::Tensor&&>(one)}; }
inline variable_list list_of(variable_list all) { return all; }
template <class R>
R result_of(variable_list& list) {
  if constexpr (std::is_same_v<R, at::Tensor>)
    return list[0];
  else
    return static_cast<R&&>(list);
}

}  // namespace detail

template <class T>
struct Function {
  template <class X = T, class... A>
  static auto apply(A&&... arguments)
      -> std::enable_if_t<std::is_same_v<X, T>,
                          decltype(X::forward(nullptr, std::declval<A>()...))> {
    using Result = decltype(X::forward(nullptr, std::declval<A>()...));
    detail::Node* node = detail::new_node(
        [](AutogradContext* context, const variable_list& gradients) -> variable_list {
          return X::backward(context, gradients);
        },
        typeid(X).name());
    (detail::add(node, arguments), ...);
    auto call = [&](AutogradContext* context) {
      return detail::list_of(X::forward(context, static_cast<A&&>(arguments)...));
    };
    variable_list outputs = detail::run_forward(
        node,
        [](void* c, AutogradContext* context) {
          return (*static_cast<decltype(call)*>(c))(context);
        },
        &call);
    return detail::result_of<Result>(outputs);
  }
};

}  // namespace kc
}  // namespace autograd
}  // namespace torch
