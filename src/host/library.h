// SPDX-License-Identifier: Apache-2.0
// How is an op library brought into a process without torch, and what is in it?
#pragma once

#include <kiln/abi.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/tensor_spec.h"
#include "sys/env.h"
#include "sys/library.h"

namespace kiln::host {

// A loaded op library. It stays mapped for the life of the process.
class OpLibrary {
 public:
  // Fails when the file is missing, no ELF, of another CPU, no op library, or of another version of
  // the ABI.
  static Result<OpLibrary> open(const std::filesystem::path& path);

  const KilnLibrary& table() const { return *table_; }
  std::span<const KilnOpInfo> ops() const { return {table_->ops, table_->op_count}; }
  const std::filesystem::path& path() const { return path_; }

  // What the runtime says about its last failure on this thread.
  Error last_error(std::string what) const;
  // Ops of this thread put their work on that cudaStream_t. False: the library is older than that.
  bool use_stream(void* stream) const;
  // Where ops run when nobody says otherwise.
  Result<Device> default_device() const;

 private:
  OpLibrary(std::filesystem::path path, const KilnLibrary* table)
      : path_(std::move(path)), table_(table) {}
  std::filesystem::path path_;
  const KilnLibrary* table_;
};

// "cust_add.int", or "cust_add" without overload.
std::string full_name(const KilnOpInfo& op);

// The runtime writes its errors as kiln does ("error: ...", "  why: ...", "  fix: ..."): back into
// their parts. A text without that form is the why of `what`.
Error parse_error(std::string_view text, std::string what);

// "x86-64", "AArch64", "machine 22": the e_machine field of an ELF file.
std::string architecture_name(uint16_t machine);

// The runtime looks for the engine where KILN_ENGINE says; unless it is set, points it at the one
// that came with this command (../lib/libkiln_engine.so next to its bin). Sets the variable in this
// process. False: there is none.
bool point_to_own_engine(const sys::Environment& env);

// The model name of a GPU as the driver says it, or "" without a driver.
std::string gpu_name(int32_t index);

}  // namespace kiln::host
