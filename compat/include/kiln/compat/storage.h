// SPDX-License-Identifier: Apache-2.0
// What do sources ask of the memory behind a tensor? Where it begins, how long it is, whether two
// tensors share it.
#pragma once

#include <kiln/compat/allocator.h>

namespace c10 {
inline namespace kc {

// The tensor that was asked keeps the memory; a Storage never owns any by itself.
class Storage {
 public:
  Storage() = default;
  explicit Storage(const at::Tensor& tensor);
  void* mutable_data() const { return data_; }
  const void* data() const { return data_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  template <class T>
  T* unsafe_data() const {
    return static_cast<T*>(data_);
  }
  DataPtr data_ptr() const { return {data_, device()}; }
  DataPtr mutable_data_ptr() const { return data_ptr(); }
  size_t nbytes() const { return bytes_; }
  size_t sym_nbytes() const { return bytes_; }
  Device device() const { return tensor_.device(); }
  DeviceType device_type() const { return device().type(); }
  bool is_alias_of(const Storage& other) const { return data_ == other.data_; }
  operator bool() const { return tensor_.defined(); }
  const Storage* unsafeGetStorageImpl() const { return this; }

 private:
  at::Tensor tensor_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace kc
}  // namespace c10

namespace at {
inline namespace kc {
inline c10::Storage Tensor::storage() const { return c10::Storage(*this); }
}  // namespace kc
using c10::Storage;
}  // namespace at
