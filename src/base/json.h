// SPDX-License-Identifier: Apache-2.0
// How does kiln write and read JSON? By nlohmann's type with the order of keys kept, and without
// its exceptions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kiln {

using Json = nlohmann::ordered_json;

// `source` names the text in the error: a file, an option.
Result<Json> parse_json(std::string_view text, std::string_view source);

// Never throws: bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& value, int indent = -1);

// A string as it is, anything else as JSON.
std::string plain_text(const Json& value);

// {"error": {"what", "why", "fix", "fault"}}
Json to_json(const Error& error);

// "work", "usage", "environment", "bug", "interrupted"
std::string_view name_of(Fault fault);

}  // namespace kiln
