// SPDX-License-Identifier: Apache-2.0
// How do SASS and PTX read, as text and as JSON?
#pragma once

#include "base/json.h"
#include "inspect/analysis.h"
#include "inspect/sources.h"
#include "inspect/views/listing.h"
#include "inspect/views/text_views.h"

namespace kiln::inspect {

struct PtxImage {
  std::string arch;  // "compute_90"
  std::string text;
};
// The PTX images that the options leave, or what cubins keep of theirs when there is none.
Result<std::vector<PtxImage>> read_ptx_images(const Analysis& analysis,
                                              const std::vector<std::string>& archs);
// Only the functions with this text in their name; all of the module for an empty one.
std::string ptx_of_kernels(const std::string& module, const std::string& filter);
std::string ptx_text(const std::vector<PtxImage>& images, const std::string& filter,
                     const TextStyle& style);

struct CodeOptions {
  std::vector<std::string> archs;
  std::string kernel;           // text in its name
  size_t max_instructions = 0;  // of all kernels together; the first is always listed; 0: no limit
};
struct CodeImage {
  size_t image = 0;
  CubinListing listing;
};
struct CodeList {
  std::vector<CodeImage> images;
  size_t left_out = 0;  // kernels beyond max_instructions
  std::string note;
};
Result<CodeList> list_code(const Analysis& analysis, const CodeOptions& options, sys::Files& files,
                           sys::Processes& processes, const sys::Environment& env);

std::string sass_text(const CodeList& code, const TextStyle& style);
// With the source's text between, as far as the files are on this disk.
std::string sass_with_source_text(const CodeList& code, Sources& sources, const TextStyle& style);
Json listing_json(const Listing& listing);

}  // namespace kiln::inspect
