// SPDX-License-Identifier: Apache-2.0
#include "results/counters.h"

#include <fmt/format.h>

#include "results/dims.h"
#include "results/fields.h"

namespace kiln::results {
namespace {

constexpr const char* kHeader = "kiln_counters";
constexpr int kForm = 1;  // of the lines; another one is refused

}  // namespace

std::optional<Metric> find_metric(std::string_view id) {
  for (size_t i = 0; i < kMetricCount; ++i) {
    if (kMetrics[i].id == id) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

template <class Fields>
static void describe(Fields& field, WarpSample& sample) {
  field("space", sample.space);
  field("kind", sample.kind);
  field("bytes", sample.bytes);
  field("block", sample.block);
  field("warp", sample.warp);
  field("addresses", sample.addresses);
}

template <class Fields>
static void describe(Fields& field, CounterInstruction& instruction) {
  field("at", instruction.at);
  field("inlined_at", instruction.inlined_at);
  field("ptx_line", instruction.ptx_line);
  field("ptx", instruction.ptx);
  field("kind", instruction.kind);
}

template <class Fields>
static void describe(Fields& field, CounterProgram& program) {
  field("id", program.id);
  field("name", program.name);
  field("instructions", program.instructions);
}

template <class Fields>
static void describe(Fields& field, OtherWidths& other) {
  field("bytes", other.bytes);
  field("passes4", other.passes4);
  field("ideal4", other.ideal4);
  field("passes8", other.passes8);
  field("ideal8", other.ideal8);
  field("passes16", other.passes16);
  field("ideal16", other.ideal16);
}

// Only what is not zero: most instructions have four numbers.
template <class Fields>
static void describe(Fields& field, CounterSite& site) {
  Named<uint64_t> named;
  for (size_t i = 0; i < kMetricCount; ++i) {
    if (site.counts.of[i]) named.emplace_back(kMetrics[i].id, site.counts.of[i]);
  }
  field("program", site.program);
  field("instruction", site.instruction);
  field("counts", named);
  field.maybe("other_widths", site.other);
  field.maybe("sample", site.sample);
  for (const auto& [id, value] : named) {
    if (const auto metric = find_metric(id)) site.counts[*metric] = value;
  }
}

template <class Fields>
static void describe(Fields& field, ModelledTraffic& traffic) {
  field("multiprocessors", traffic.multiprocessors);
  field("resident_blocks", traffic.resident_blocks);
  field("l2_bytes", traffic.l2_bytes);
  field("l2_read_sectors", traffic.l2_read_sectors);
  field("l2_write_sectors", traffic.l2_write_sectors);
  field("dram_read_bytes", traffic.dram_read_bytes);
  field("dram_write_bytes", traffic.dram_write_bytes);
  field.maybe("dram_reread_bytes", traffic.dram_reread_bytes);
  field("read_bytes", traffic.read_bytes);
  field("written_bytes", traffic.written_bytes);
  field("least_l2_read_sectors", traffic.least_l2_read_sectors);
  field.maybe("busiest_atomic_updates", traffic.busiest_atomic_updates);
}

template <class Fields>
static void describe(Fields& field, CounterLaunch& launch) {
  field("number", launch.number);
  field("kernel", launch.kernel);
  field("mangled", launch.mangled);
  field("file", launch.file);
  describe_dims(field, "grid", launch.grid);
  describe_dims(field, "block", launch.block);
  describe_dims(field, "cluster", launch.cluster);
  field("shared_bytes", launch.shared_bytes);
  field("dynamic_shared_bytes", launch.dynamic_shared_bytes);
  field("code", launch.code);
  field("traffic", launch.traffic);
  field("sites", launch.sites);
}

namespace {

std::string line_of(const char* key, Json value) {
  return Json{{key, std::move(value)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Error not_counters(std::string_view source, std::string why) {
  return Error{Fault::Usage, fmt::format("cannot read counters from {}", source), std::move(why),
               "make the file again: kiln counters ... -o FILE"};
}

Status read_line(std::string_view line, size_t number, std::string_view source, CounterRun& run) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return not_counters(source, fmt::format("line {} is not a JSON object", number));
  const std::string where = fmt::format("{}, line {}", source, number);
  if (number == 1) {
    if (!json.contains(kHeader)) return not_counters(source, "its first line is not a header");
    if (json[kHeader] != kForm)
      return not_counters(
          source, fmt::format("its format is {}, this kiln reads {}", json[kHeader].dump(), kForm));
    run.version = json.value("version", "");
    return {};
  }
  if (json.contains("program")) {
    TRY(CounterProgram program, read<CounterProgram>(json["program"], where));
    run.programs.push_back(std::move(program));
  } else if (json.contains("launch")) {
    TRY(CounterLaunch launch, read<CounterLaunch>(json["launch"], where));
    run.launches.push_back(std::move(launch));
  }
  return {};
}

}  // namespace

std::string header_line(std::string_view version) {
  return Json{{kHeader, kForm}, {"version", version}}.dump() + "\n";
}
std::string to_line(const CounterProgram& program) { return line_of("program", write(program)); }
std::string to_line(const CounterLaunch& launch) { return line_of("launch", write(launch)); }

Result<CounterRun> read_counter_run(std::string_view text, std::string_view source) {
  CounterRun run;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    // A process that was killed may have left half a line.
    if (end == text.npos) break;
    CHECK_OK(read_line(text.substr(0, end), ++number, source, run));
    text.remove_prefix(end + 1);
  }
  if (number == 0) return not_counters(source, "the file is empty");
  return run;
}

}  // namespace kiln::results
