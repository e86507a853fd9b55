// SPDX-License-Identifier: Apache-2.0
// Which parts of a source are device code alone? What changed inside them cannot change the
// host's object file.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "build/edit/macros.h"

namespace kiln::build {

enum class ItemKind {
  Device,        // a function with __global__ or __device__ that the host cannot look into
  HostFunction,  // a function with neither
  Statement,     // KILN_OP(..); and other uses of macros
  Other,         // types, declarations, namespaces' lines, directives
};

// A piece of the text at namespace scope.
struct Item {
  ItemKind kind = ItemKind::Other;
  size_t begin = 0, end = 0;  // from its first word to behind its closing brace or semicolon
  size_t body_begin = 0, body_end = 0;  // between the braces, where it has a body
  std::string name;                     // of a function
};

// Nothing when the text cannot be followed: braces that do not match, a directive between them that
// could hide some.
std::optional<std::vector<Item>> items_of(std::string_view text);

// What surrounds the text of a source.
struct Surroundings {
  Macros macros;  // of the source, of its headers and of the command line
  // What tells its caller's line without a macro ("__builtin_LINE"), if there is anything.
  std::string line_teller;
  // The lines in which the bodies begin that the compiler left out of the host's code. It alone
  // knows: a declaration anywhere may make a function the host's too. Nothing: it was not asked.
  std::optional<std::set<size_t>> hidden_bodies;
};

// Why an edit is more than one of device code and comments; empty when it is not, and the host's
// object is what it was.
std::string why_host_changes(std::string_view before, std::string_view after,
                             const Surroundings& around = {});

// The names that the text's #if and #elif lines depend on.
std::set<std::string> names_in_conditions(std::string_view text, const Macros& macros);

// A word in the text that NVRTC answers otherwise than nvcc does; empty when there is none.
std::string why_nvrtc_may_differ(std::string_view text);

struct Slice {
  std::string text;  // lines stay where they were
  std::string why;   // there is none
};
// The source without what is the host's, for NVRTC; only where nothing in it could mean something
// else there.
Slice slice_of(std::string_view text);

}  // namespace kiln::build
