// SPDX-License-Identifier: Apache-2.0
// How does a tensor over somebody's memory come about step by step (at::for_blob)? The build
// includes this header where a source names it.
#pragma once

#include <kiln/compat/tensor_api.h>

#include <functional>

namespace c10 {
inline namespace kc {
class Allocator;
}  // namespace kc
}  // namespace c10

namespace at {
inline namespace kc {

class TensorMaker {
 public:
  using ContextDeleter = void (*)(void*);
  TensorMaker(void* data, IntArrayRef sizes) : data_(data), sizes_(sizes) {}
  TensorMaker& strides(OptionalIntArrayRef value) {
    strides_ = value;
    return *this;
  }
  TensorMaker& storage_offset(std::optional<int64_t> value) {
    offset_ = value.value_or(0);
    return *this;
  }
  TensorMaker& deleter(std::function<void(void*)> value) {
    deleter_ = static_cast<std::function<void(void*)>&&>(value);
    return *this;
  }
  // It is given the context, not the memory.
  TensorMaker& context(void* value, ContextDeleter deleter = nullptr) {
    if (deleter) deleter_ = [value, deleter](void*) { deleter(value); };
    return *this;
  }
  TensorMaker& target_device(std::optional<Device> value) {
    device_ = value;
    return *this;
  }
  TensorMaker& options(TensorOptions value) {
    options_ = value;
    return *this;
  }
  TensorMaker& resizeable_storage() { return *this; }
  Tensor make_tensor() {
    const TensorOptions options =
        device_ && !options_.has_device() ? options_.device(*device_) : options_;
    const IntArrayRef strides = strides_.has_value() ? *strides_ : IntArrayRef();
    if (!deleter_) {
      auto nothing = [](void*) {};
      return strides_.has_value() ? from_blob(data_, sizes_, strides, offset_, nothing, options)
                                  : from_blob(data_, sizes_, options);
    }
    auto owned = static_cast<std::function<void(void*)>&&>(deleter_);
    return strides_.has_value()
               ? from_blob(data_, sizes_, strides, offset_, std::move(owned), options)
               : from_blob(data_, sizes_, std::move(owned), options);
  }

 private:
  void* data_;
  IntArrayRef sizes_;
  OptionalIntArrayRef strides_;
  int64_t offset_ = 0;
  std::function<void(void*)> deleter_;
  std::optional<Device> device_;
  TensorOptions options_;
};

inline TensorMaker for_blob(void* data, IntArrayRef sizes) { return TensorMaker(data, sizes); }

}  // namespace kc
}  // namespace at

namespace torch {
using at::for_blob;
using at::TensorMaker;
}  // namespace torch
