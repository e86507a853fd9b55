// SPDX-License-Identifier: Apache-2.0
// What did a build with the compat headers lack, and what follows from it? More of kiln's headers,
// torch's own, or an error at once, where torch does not know the name either.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "build/plan/plan.h"

namespace kiln::build {

// In the error of a name over torch's types that no source defines.
inline constexpr std::string_view kMixedSign = "is left open";

// What the compat headers turned out not to have.
struct Lack {
  std::string source;                // as the user wrote it
  std::string place;                 // "add.cu(12)"
  std::string symbol;                // "class_", "torch/csrc/autograd/custom_function.h"
  bool mixed = false;                // of an object that was compiled with torch's own headers
  std::string message = "";          // the compiler's
  std::set<std::string> added = {};  // headers of kiln's with which it builds after all
};

// What a failed build with the compat headers lacked; nothing where the error is the source's own.
std::optional<Lack> what_compat_lacks(const Error& error, const Plan& plan,
                                      const sys::Files& files);

// Headers of kiln's that may have it, and that only sources get that need them.
std::set<std::string> headers_with(const Lack& lack, const Plan& plan, const sys::Files& files);

// Is it a name in one of torch's namespaces or a member of Tensor? Then torch's headers decide at
// once whether a build with them could help: the name is in one of them, or nowhere.
bool is_in_torchs_scope(const Lack& lack);
bool torch_knows(const sys::fs::path& package, const std::string& name, const sys::Files& files);
// A header that is in none of the folders that torch's own way adds: nor would that build find it.
bool is_header(const Lack& lack);
bool has_header(const std::vector<sys::fs::path>& folders, const std::string& name,
                const sys::Files& files);
Error unknown_header(Error error, const Lack& lack, const std::vector<sys::fs::path>& folders,
                     const sys::Files& files);
Error unknown_name(Error error, const Lack& lack, const sys::fs::path& package,
                   const sys::Files& files);

// Across builds and checkouts.
std::optional<Lack> remembered(const Source& source, const World& world);
void remember_lack(const Plan& plan, const World& world, const Lack& lack);

// The sentence for the person who waits.
std::string fallback_note(const Lack& lack, size_t sources);

}  // namespace kiln::build
