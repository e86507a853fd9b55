// SPDX-License-Identifier: Apache-2.0
#include "results/inspect/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kiln::results {
namespace {

Json sass_line_json(const Listing& listing, const SassLine& line) {
  const ControlCode& control = line.control;
  auto barrier = [](uint8_t number) { return number == 7 ? Json(nullptr) : Json(number); };
  Json waits = Json::array(), source = Json::array();
  for (unsigned i = 0; i < 6; ++i)
    if (control.wait_mask >> i & 1) waits.push_back(i);
  for (const SourceFrame& frame : line.source)
    source.push_back({{"file", listing.files[frame.file]},
                      {"line", frame.line},
                      {"function", frame.function.empty() ? Json(nullptr) : Json(frame.function)}});
  Json one{{"address", line.address},
           {"text", line.text},
           {"words", {fmt::format("0x{:016x}", line.low), fmt::format("0x{:016x}", line.high)}},
           {"control",
            {{"stall", control.stall},
             {"yield", control.yield},
             {"write_barrier", barrier(control.write_barrier)},
             {"read_barrier", barrier(control.read_barrier)},
             {"waits", std::move(waits)},
             {"reuse", control.reuse}}}};
  if (!line.label.empty()) one["label"] = line.label;
  if (!line.target.empty()) one["target"] = line.target;
  if (line.live_registers >= 0)
    one["live"] = {{"registers", line.live_registers},
                   {"predicates", std::max(line.live_predicates, 0)},
                   {"uniform", std::max(line.live_uniform, 0)}};
  if (!line.source.empty()) one["source"] = std::move(source);
  if (line.ptx_line) one["ptx_line"] = line.ptx_line;
  return one;
}

}  // namespace

Json to_json(const Listing& listing) {
  Json lines = Json::array();
  for (const SassLine& line : listing.lines) lines.push_back(sass_line_json(listing, line));
  return {{"symbol", listing.symbol},
          {"name", listing.name},
          {"arch", listing.arch},
          {"disassembled", listing.disassembled},
          {"lines", std::move(lines)}};
}

Json to_json(const PtxText& ptx) { return {{"arch", ptx.arch}, {"text", ptx.text}}; }

}  // namespace kiln::results
