// SPDX-License-Identifier: Apache-2.0
// How does an ATen op get called? By its name, with tagged arguments, through torch.ops: that takes
// every type of a schema, Scalar included, and its errors arrive with their own type and text.
#pragma once

#include <kiln/compat/tensor.h>

#include "convert.h"

namespace at {
inline namespace kc {
namespace kiln_detail {

struct Arg {
  const char* name;  // null: by position
  kiln::compat::Value value;
};

using kiln::compat::Value;
template <class T>
Arg plain(const T& value) {
  Arg arg{nullptr, {}};
  kiln::compat::Caster<T>::give(arg.value, value);
  return arg;
}
inline Arg plain(const char* text) { return plain(std::string(text)); }
template <class T>
Arg plain(ArrayRef<T> list) {
  return plain(list.vec());
}
template <class T>
Arg plain(const std::optional<ArrayRef<T>>& list) {
  return list ? plain(*list) : Arg{nullptr, {}};
}
inline Arg plain(const OptionalIntArrayRef& list) { return list ? plain(*list) : Arg{nullptr, {}}; }
inline Arg plain(const std::optional<const char*>& text) {
  return text ? plain(*text) : Arg{nullptr, {}};
}
Arg plain(MemoryFormat format);
inline Arg plain(const std::optional<MemoryFormat>& format) {
  return format ? plain(*format) : Arg{nullptr, {}};
}
Arg plain(Layout layout);
inline Arg plain(const std::optional<Layout>& layout) {
  return layout ? plain(*layout) : Arg{nullptr, {}};
}
template <class T>
Arg named(const char* name, const T& value) {
  Arg arg = plain(value);
  arg.name = name;
  return arg;
}
inline std::optional<ScalarType> option_dtype(const TensorOptions& o) {
  return o.has_dtype() ? std::optional<ScalarType>(o.dtype().toScalarType()) : std::nullopt;
}
std::optional<ScalarType> option_dtype_or_default(const TensorOptions& options);
inline std::optional<Layout> option_layout(const TensorOptions& o) { return o.layout_opt(); }
inline std::optional<Device> option_device(const TensorOptions& o) { return o.device_opt(); }
inline std::optional<bool> option_pin_memory(const TensorOptions& o) {
  return o.pinned_memory_opt();
}

// The memory format that the options or the argument gives; both, or options that ask for a
// gradient, are an error, as torch has it.
std::optional<MemoryFormat> format_of(const TensorOptions& options,
                                      const std::optional<MemoryFormat>& format);
// torch:: factories: at::'s, and then the gradient that the options ask for.
inline TensorOptions without_grad(const TensorOptions& options) {
  return options.requires_grad(std::optional<bool>());
}

class Call {
 public:
  Call(const char* op, const char* overload, std::initializer_list<Arg> arguments);
  ~Call();
  template <class T>
  T result() {
    return kiln::compat::Caster<T>::take(load(kiln::compat::Caster<T>::type));
  }

 private:
  Value& load(const kiln::compat::Type& type);
  kiln::compat::Ref result_;
  Value value_;
};
void refresh(const Tensor& tensor);
void refresh(TensorList tensors);

}  // namespace kiln_detail
}  // namespace kc
}  // namespace at
