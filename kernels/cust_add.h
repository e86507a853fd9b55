// SPDX-License-Identifier: Apache-2.0
// What do the parts of cust_add share? The number as it was given, and the functor that adds it.
#pragma once

#include "add.h"

namespace kernels {

// A Python int or float: kept apart, since a double holds not every int64 and a result may be
// either.
struct Number {
  bool is_integer;
  int64_t integer;
  double real;
  template <class V>
  V as() const {
    return is_integer ? static_cast<V>(integer) : static_cast<V>(real);
  }
};

template <class V>
struct NumberAs {
  static V from(const Number& n) { return n.as<V>(); }
};
template <class T>
struct NumberAs<kiln::complex<T>> {
  static kiln::complex<T> from(const Number& n) { return kiln::complex<T>(n.as<T>()); }
};

template <class T>
struct AddNumber {
  using Value = typename kiln::Element<T>::Value;
  Value value;
  bool rounds;

  // torch's CUDA kernels add a number to half tensors in float, its CPU kernels round it to half
  // first; each is followed on its device.
  AddNumber(const Number& number, bool on_cuda)
      : value(NumberAs<Value>::from(number)), rounds(!on_cuda) {}
  __device__ __forceinline__ Value operator()(Value x) const {
    return Add{}(x, rounds ? kiln::rounded_to<T>(value) : value);
  }
};

void cust_add_integers(kiln::Tensor& out, const kiln::Tensor& x, const Number& value);
void cust_add_reals(kiln::Tensor& out, const kiln::Tensor& x, const Number& value);
void cust_add_complex(kiln::Tensor& out, const kiln::Tensor& x, const Number& value);

}  // namespace kernels
