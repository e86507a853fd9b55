// SPDX-License-Identifier: Apache-2.0
// How is device code compiled within this process? By libnvrtc of nvcc's own version.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/files.h"

namespace kiln::build {

struct NvrtcProgram {
  std::string ptx, cubin;
  std::string log;  // what ptxas warned of
};

// Which libnvrtc is next to `nvcc`: a hash of the names, sizes and times of its files; empty: none.
// Another one may compile otherwise. Takes microseconds, opening the library milliseconds.
std::string nvrtc_identity(const sys::Files& files, const sys::fs::path& nvcc);

class Nvrtc {
 public:
  // The library next to `nvcc`, of the version it tells; an error where there is none.
  static Result<Nvrtc> open(const sys::Files& files, const sys::fs::path& nvcc);
  // `name` is the source's path for line tables. `expressions` name the kernels wanted:
  // "add_kernel<float>".
  Result<NvrtcProgram> compile(const std::string& text, const std::string& name,
                               const std::vector<std::string>& options,
                               const std::vector<std::string>& expressions) const;

 private:
  struct Functions;
  explicit Nvrtc(const Functions* functions) : functions_(functions) {}
  const Functions* functions_;
};

}  // namespace kiln::build
