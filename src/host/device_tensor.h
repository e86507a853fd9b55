// SPDX-License-Identifier: Apache-2.0
// How do tensors get to a device and back? Through the op library's own memory functions.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "host/array.h"
#include "host/library.h"

namespace kiln::host {

// A copy of an Array, storage and all, in memory that the library allocated; freed with it.
class DeviceTensor {
 public:
  static Result<DeviceTensor> upload(const OpLibrary& library, const Array& array, Device device);
  DeviceTensor(DeviceTensor&&) noexcept = default;
  DeviceTensor& operator=(DeviceTensor&&) noexcept = default;

  // As an op takes it. Valid as long as this object, which may move.
  KilnTensor* view() const { return &state_->view; }
  Device device() const { return state_->device; }
  // The whole storage as it is on the device now, with the layout of the Array that came.
  Result<Array> download() const;

 private:
  struct State {
    OpLibrary library;
    Device device;
    void* memory = nullptr;
    size_t bytes = 0;
    int32_t dtype = 0;
    Layout layout;
    KilnTensor view{};
    State(const OpLibrary& from, Device on) : library(from), device(on) {}
    State(const State&) = delete;
    ~State();
  };
  explicit DeviceTensor(std::unique_ptr<State> state) : state_(std::move(state)) {}
  std::unique_ptr<State> state_;
};

// A copy of a tensor that an op returned; `what` names it in messages. Does not release it.
Result<Array> download(const OpLibrary& library, const KilnTensor& tensor, const std::string& what);

}  // namespace kiln::host
