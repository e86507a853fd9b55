// SPDX-License-Identifier: Apache-2.0
// What is known from a source's text before it is compiled?
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sys/files.h"

namespace kiln::build {

struct SourceFacts {
  // A lambda marked __device__ or __host__. Never missed in the text looked at; a false alarm only
  // costs time:
  // --expt-extended-lambda makes nvcc include <functional>, 0.6 s of 1.6 s for a small kernel
  // (nvcc 13.0).
  bool extended_lambda = false;
  // One in the source's own text, or in a macro that it may use. Those in functions of headers are
  // the same after any edit of the source.
  bool own_lambda = false;
  bool macro_lambda = false;
  bool defines_op = false;    // KILN_OP(
  bool defines_main = false;  // int main(
  // What one architecture's `a` variant alone has; empty, or the word that was found. Said by the
  // text of the source and of headers below `own`: a library's headers hold such code for all who
  // include them.
  std::string hopper_only;              // wgmma, setmaxnreg
  std::string blackwell_only;           // tcgen05, setmaxnreg
  std::string torch_header;             // the first of torch's that it includes, if any
  bool kiln_header = false;             // it includes one of kiln's
  bool only_cxx20 = false;              // it has a word or a header that C++17 lacks
  bool extern_c = false;                // its own text says extern "C"
  std::set<std::string> torch_headers;  // all of torch's that it includes
  bool defines_python_module = false;   // PYBIND11_MODULE(
  // Why a file that it includes must not reach a compiler: it is a pipe, or has no end.
  std::string unreadable;
  // Headers that torch's bring along and that the text relies on, by the names it uses: "algorithm"
  // for std::sort.
  std::set<std::string> leaked;
};

SourceFacts scan_text(std::string_view text);

// The source and what it includes by "name", found next to the file or in `include_folders`; <name>
// too where those have it. `own` is the project's folder; empty: the source's.
SourceFacts scan_source(const sys::Files& files, const sys::fs::path& source,
                        const std::vector<sys::fs::path>& include_folders,
                        const sys::fs::path& own = {});

}  // namespace kiln::build
