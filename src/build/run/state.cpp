// SPDX-License-Identifier: Apache-2.0
// Can it be proved, without ninja, that nothing has changed since the last build?
//
//   kiln-state 4
//   <key>
//   <result>
//   the record of build/cache/reads.h, by state
#include "build/run/state.h"

#include <fmt/format.h>

namespace kiln::build {

namespace {

constexpr std::string_view kStateMagic = "kiln-state 4";

std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string write_state(const BuildState& state) {
  return fmt::format("{}\n{}\n{}\n", kStateMagic, state.key, state.result.string()) +
         write_reads(state.reads, By::State);
}

std::optional<BuildState> parse_state(std::string_view text) {
  auto magic = take_line(text);
  if (!magic || *magic != kStateMagic) return std::nullopt;
  auto key = take_line(text);
  auto result = key ? take_line(text) : std::nullopt;
  auto reads = result ? parse_reads(text) : std::nullopt;
  if (!reads) return std::nullopt;
  return BuildState{std::string(*key), *result, std::move(*reads)};
}

}  // namespace kiln::build
