// SPDX-License-Identifier: Apache-2.0
// Which functions of torch::nn::functional do extensions call? Those without parameters of a
// module: padding, activations, norms, losses. What has options takes them as torch's does, with
// setters that can be chained.
#pragma once

#include <kiln/compat/tensor_api.h>

#define KILN_OPTION(Owner, type, name, initial) \
 public:                                        \
  Owner& name(const type& given) {              \
    name##_ = given;                            \
    return *this;                               \
  }                                             \
  const type& name() const { return name##_; }  \
                                                \
 private:                                       \
  type name##_ = initial

namespace torch {
namespace enumtype {
#define KILN_ENUM(name, word)                 \
  struct k##name {                            \
    const char* text() const { return word; } \
  };
KILN_ENUM(Constant, "constant")
KILN_ENUM(Reflect, "reflect")
KILN_ENUM(Replicate, "replicate")
KILN_ENUM(Circular, "circular")
#undef KILN_ENUM
}  // namespace enumtype
#define KILN_ENUM(name) inline constexpr enumtype::k##name k##name{};
KILN_ENUM(Constant)
KILN_ENUM(Reflect)
KILN_ENUM(Replicate)
KILN_ENUM(Circular)
#undef KILN_ENUM

namespace nn {
namespace functional {
inline namespace kc {

// A word that is one of torch's enumerators, or its text.
class Mode {
 public:
  template <class T, class = decltype(std::declval<const T&>().text())>
  Mode(const T& one) : text_(one.text()) {}
  const char* text() const { return text_; }

 private:
  const char* text_;
};

class PadFuncOptions {
 public:
  PadFuncOptions(std::vector<int64_t> given) : pad_(static_cast<std::vector<int64_t>&&>(given)) {}
  PadFuncOptions(std::initializer_list<int64_t> given) : pad_(given) {}
  const std::vector<int64_t>& pad() const { return pad_; }

 private:
  std::vector<int64_t> pad_;
  KILN_OPTION(PadFuncOptions, Mode, mode, kConstant);
  KILN_OPTION(PadFuncOptions, double, value, 0);
};
inline Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  if (options.mode().text()[0] == 'c' && options.mode().text()[1] == 'o')
    return at::constant_pad_nd(input, options.pad(), options.value());
  return at::pad(input, options.pad(), options.mode().text());
}

class SoftmaxFuncOptions {
 public:
  SoftmaxFuncOptions(int64_t given) : dim_(given) {}
  int64_t dim() const { return dim_; }

 private:
  int64_t dim_;
};
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
inline Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return at::softmax(input, options.dim());
}
inline Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return at::log_softmax(input, options.dim());
}

inline Tensor relu(const Tensor& input) { return at::relu(input); }
inline Tensor silu(const Tensor& input) { return at::silu(input); }
inline Tensor gelu(const Tensor& input) { return at::gelu(input); }
inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return bias.defined() ? at::linear(input, weight, bias) : at::linear(input, weight);
}

class NormalizeFuncOptions {
  KILN_OPTION(NormalizeFuncOptions, double, p, 2);
  KILN_OPTION(NormalizeFuncOptions, int64_t, dim, 1);
  KILN_OPTION(NormalizeFuncOptions, double, eps, 1e-12);
};
inline Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {}) {
  const Tensor norm = input.norm(at::Scalar(options.p()), {options.dim()}, true);
  return input / norm.clamp_min(options.eps()).expand_as(input);
}

class LayerNormFuncOptions {
 public:
  LayerNormFuncOptions(std::vector<int64_t> given)
      : shape_(static_cast<std::vector<int64_t>&&>(given)) {}
  const std::vector<int64_t>& normalized_shape() const { return shape_; }

 private:
  std::vector<int64_t> shape_;
  KILN_OPTION(LayerNormFuncOptions, Tensor, weight, {});
  KILN_OPTION(LayerNormFuncOptions, Tensor, bias, {});
  KILN_OPTION(LayerNormFuncOptions, double, eps, 1e-5);
};
inline Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  std::optional<Tensor> weight, bias;
  if (options.weight().defined()) weight = options.weight();
  if (options.bias().defined()) bias = options.bias();
  return at::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}

inline Tensor one_hot(const Tensor& input, int64_t classes = -1) {
  return at::one_hot(input, classes);
}

}  // namespace kc
}  // namespace functional
}  // namespace nn
}  // namespace torch
#undef KILN_OPTION
