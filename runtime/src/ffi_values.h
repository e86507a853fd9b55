// SPDX-License-Identifier: Apache-2.0
// How do values of TVM-FFI become those of the C ABI, and back? By the types of the schema; what
// does not fit is refused by the parameter's name.
#pragma once

#include "kiln/abi.h"
#include "kiln/ffi_abi.h"
#include "kiln/register.h"

namespace kiln::detail {

class FfiValues {
 public:
  FfiValues(const OpRecord* op, int most_tensors);
  ~FfiValues();
  FfiValues(const FfiValues&) = delete;

  void take(int parameter, const ffi::Any& from);
  void take_default(int parameter);
  void take_buffer(int result, const ffi::Any& from);

  const KilnValue* values() const { return values_; }
  KilnValue* results() const { return values_ + op_->parameter_count; }
  const KilnTensor* buffers() const { return buffers_; }
  Device device() const { return device_; }  // of the first tensor

 private:
  // Sizes are the caller's; strides are made here where the caller gives none.
  struct Held {
    KilnTensor tensor;
    int64_t strides[Sizes::kMost];
  };
  struct List;
  const char* name_of(int parameter) const;
  [[noreturn]] void refuse(int parameter, const ffi::Any& from) const;
  void read(const ffi::DlTensor& from, const char* name, bool written, Held& to);
  bool take_tensor(int parameter, const ffi::Any& from, KilnValue& to);
  bool take_number(uint32_t type, const ffi::Any& from, KilnValue& to) const;
  bool take_text(const ffi::Any& from, KilnValue& to) const;
  bool take_numbers(const ffi::Any& from, KilnValue& to);
  bool take_tensors(int parameter, const ffi::Any& from, KilnValue& to);
  void* keep(size_t bytes);  // until the call has ended

  const OpRecord* op_;
  KilnValue* values_;
  KilnTensor* buffers_;
  Held* held_;
  int held_count_ = 0;
  Device device_;
  bool has_device_ = false;
  List* lists_ = nullptr;
};

// None, the one result, or an array of them.
void give_results(const OpRecord* op, KilnValue* results, ffi::Any* to);

}  // namespace kiln::detail
