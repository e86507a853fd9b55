// SPDX-License-Identifier: Apache-2.0
// Where does a result go when the caller brings the memory for it? The op allocates its results
// itself; what it asks for is answered with the caller's memory if it fits, and what ended up
// elsewhere is copied.
#pragma once

#include "call.h"
#include "kiln/abi.h"

namespace kiln::detail {

class ResultBuffers {
 public:
  ResultBuffers(const KilnTensor* buffers, int count);
  ~ResultBuffers();
  ResultBuffers(const ResultBuffers&) = delete;

  // Compares the buffers with the arguments of the call: memory that an argument shares is written
  // only after the op has read it.
  void prepare(Call& call);
  // The first buffer of these sizes that was not handed out yet, or null.
  void* take(Span<const int64_t> sizes, Span<const int64_t> strides, Dtype dtype, Device device);
  // Every result that is a tensor gets into its buffer. Throws when its sizes or dtype differ.
  void fill(const OpRecord* op, Slot* results);

 private:
  struct State {
    bool handed_out;
    bool shared;  // with an argument
  };
  void check(const OpRecord* op, int at, const Tensor& result) const;
  void copy(const OpRecord* op, int at, const Tensor& result, void* to);

  const KilnTensor* buffers_;
  int count_;
  State* states_;
};

// How many results were copied into the caller's memory since the library was loaded.
uint64_t copied_results();

}  // namespace kiln::detail
