// SPDX-License-Identifier: Apache-2.0
// How is an op called, once or many times, and what came out?
#pragma once

#include <kiln/abi.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/arguments.h"
#include "host/device_tensor.h"
#include "host/library.h"

namespace kiln::host {

// A result, or an argument that the op wrote to.
struct Output {
  std::string name;       // "result", "result 2", "x"
  bool in_place = false;  // it is an argument's memory
  Scalar scalar;          // its type is TENSOR where `array` is set
  std::optional<Array> array;
};

// Inputs that were made before, by the text of their spec and their seed: a generator takes longer
// than a copy.
using ArrayMemory = std::map<std::pair<std::string, uint64_t>, Array>;

// A call with its arguments on the device, ready to be made any number of times.
class OpCall {
 public:
  // Makes the tensors, or takes them from `memory`; those without a device of their own go to
  // `device`.
  static Result<OpCall> prepare(const OpLibrary& library, const BoundCall& bound, Device device,
                                uint64_t seed, ArrayMemory* memory = nullptr);
  OpCall(OpCall&&) noexcept = default;
  OpCall& operator=(OpCall&&) = delete;
  ~OpCall();

  // The results of the call before are released. On a GPU it has finished only after synchronize().
  Status call();
  Status synchronize();
  // Frees the results of the last call; outputs() has none then. In the order of the stream.
  void release_results();
  // Copies of the results of the last call, then of the arguments that the op writes to and did not
  // return.
  Result<std::vector<Output>> outputs() const;
  // Names of the tensor arguments that the op must not write to and whose memory, poison around the
  // elements included, is not as it was. Those above 64 MiB are not looked at.
  Result<std::vector<std::string>> overwritten_inputs() const;

  const KilnOpInfo& op() const { return library_.ops()[index_]; }
  // Of the tensors; the device of prepare() when there is none.
  const std::vector<Device>& devices() const { return devices_; }
  // Bytes of the elements of arguments and of the last call's results, each element once; what is
  // written to, twice.
  double moved_bytes() const;
  // One for each argument tensor: "a: f32 1024x1024".
  std::vector<std::string> tensor_arguments() const;

 private:
  struct Tensor {
    std::string name;
    bool writable = false;
    std::vector<uint8_t> sent;  // what was uploaded; empty where it is not to be compared
    DeviceTensor tensor;
  };

  OpCall(OpLibrary library, uint32_t index) : library_(std::move(library)), index_(index) {}
  struct Making {
    Device device;
    uint64_t seed = 0;
    ArrayMemory* memory = nullptr;
  };
  Status add_argument(const KilnParameter& parameter, const Argument& argument,
                      const Making& making);
  Status add_tensor(std::string name, bool writable, const TensorSpec& spec, const Making& making);

  OpLibrary library_;
  uint32_t index_;
  // Deques: the KilnValues point into their elements.
  std::deque<Scalar> scalars_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<KilnTensor*>> lists_;
  std::vector<KilnValue> arguments_, results_;
  std::vector<Device> devices_;
};

}  // namespace kiln::host
