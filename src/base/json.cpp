// SPDX-License-Identifier: Apache-2.0
// How does kiln write and read JSON?
#include "base/json.h"

#include <fmt/format.h>

namespace kiln {

Result<Json> parse_json(std::string_view text, std::string_view source) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    return Error{Fault::Work, fmt::format("cannot read {}", source), e.what(),
                 "fix it, or remove it so that it is written again"};
  }
}

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump(value);
}

Json to_json(const Error& error) {
  return {{"error",
           {{"what", error.what},
            {"why", error.why},
            {"fix", error.fix},
            {"fault", name_of(error.fault)}}}};
}

std::string_view name_of(Fault fault) {
  switch (fault) {
    case Fault::Work:
      return "work";
    case Fault::Usage:
      return "usage";
    case Fault::Environment:
      return "environment";
    case Fault::Bug:
      return "bug";
    case Fault::Interrupted:
      return "interrupted";
  }
  return "bug";
}

}  // namespace kiln
