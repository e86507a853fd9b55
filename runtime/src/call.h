// SPDX-License-Identifier: Apache-2.0
// What does the runtime know while an op runs? Which op, on which back end and device, and every
// tensor that it was given or made: the engine checks addresses against them.
#pragma once

#include "kiln/register.h"
#include "kiln/tensor.h"
#include "text.h"

namespace kiln::detail {

enum class Backend : int { real = 0, engine = 1 };  // the index into KilnFrontEntry::target

struct Call;
class ResultBuffers;

// A TensorRep with what only the runtime needs.
struct Rep : TensorRep {
  // A tensor that torch gave has its sizes in torch; one that the op asked torch for has them
  // behind this struct.
  enum class Memory { borrowed, of_torch, of_torch_made_here, own } memory;
  void* handle;      // torch's, or null
  void* allocation;  // what to free, when memory is own
  cudaStream_t allocation_stream;
  const char* name;  // of the parameter; "" for a tensor made by the op
  bool writable;
  // What a kernel may touch, where that is more than the elements: the whole storage behind a view.
  void* region;
  uint64_t region_bytes;
  Call* call;
  Rep* previous;
  Rep* next;
};

struct Call {
  const OpRecord* op;
  Backend backend;
  Device device;
  bool from_torch;
  Call* outer;  // an op that calls another library's op through torch
  Rep* first;
  ResultBuffers* buffers = nullptr;  // memory of the caller for the results
  const Slot* arguments = nullptr;   // where a message finds the name of one
  bool failed;                       // a launch or runtime call of this op failed
  char fault[2048];                  // its text

  Call(const OpRecord* op, bool from_torch);
  ~Call();
  Call(const Call&) = delete;
  // Decides device and back end from the arguments, and makes the device current. Throws when they
  // do not fit.
  void place(const Slot* arguments);
  void place_on(Device where, Backend how);  // for a caller who has decided
  // Throws the first launch error; synchronises first when KILN_SYNC=1.
  void finish();

 private:
  int previous_device_ = -1;
};

Call* current_call();  // of this thread; null outside of ops
const char* current_op_name();
const char* tensor_name(const TensorRep*);

// Where code runs that is in no op (a program, or a caller of the C ABI).
Backend default_backend();

void join_call(Rep*);  // a tensor that was there before the current call becomes one of its own
Rep* new_rep(Rep::Memory memory, int ndim);  // with one reference, in the list of the current call
bool is_contiguous(const int64_t* sizes, const int64_t* strides, int ndim);
void set_dims(Rep*, Span<const int64_t> sizes,
              Span<const int64_t> strides);  // of a rep with room for them
void set_metadata(Rep*);                     // numel and contiguity from sizes and strides

const char* parameter_name(const OpRecord*, int index);

}  // namespace kiln::detail
