// SPDX-License-Identifier: Apache-2.0
// How do the views read as JSON?
#include "inspect/views/json_views.h"

#include <fmt/format.h>

#include "inspect/views/text_views.h"

namespace kiln::inspect {
namespace {

std::string_view word(Service service) {
  return service == Service::Native ? "native" : service == Service::Jit ? "jit" : "none";
}

Json shape_json(const uint32_t (&d)[3]) { return d[0] ? Json{d[0], d[1], d[2]} : Json(nullptr); }

Json image_json(const Image& image) {
  const binary::FatbinEntry& entry = image.entry;
  const char* kind = image.is(binary::ImageKind::Elf)     ? "sass"
                     : image.is(binary::ImageKind::Ptx)   ? "ptx"
                     : image.is(binary::ImageKind::LtoIr) ? "lto"
                                                          : "unknown";
  Json out{
      {"container", image.container},
      {"kind", kind},
      {"arch", image.label()},
      {"offset", image.container_offset + entry.offset},
      {"compression", name_of(entry.compression)},
      {"packed_bytes", entry.packed_bytes},
      {"unpacked_bytes",
       entry.compression == binary::Compression::None ? entry.packed_bytes : entry.unpacked_bytes},
      {"debug", entry.debug}};
  if (image.is(binary::ImageKind::Ptx) && entry.version_major)
    out["ptx_isa"] = fmt::format("{}.{}", entry.version_major, entry.version_minor);
  if (!entry.identifier.empty()) out["source"] = entry.identifier;
  return out;
}

}  // namespace

Json overview_json(const Analysis& analysis, const std::vector<uint32_t>& gpus) {
  Json out{{"name", analysis.file.name},
           {"path", analysis.file.path.string()},
           {"member", analysis.file.member.empty() ? Json(nullptr) : Json(analysis.file.member)},
           {"kind", name_of(analysis.file.kind)},
           {"machine", analysis.machine.empty() ? Json(nullptr) : Json(analysis.machine)},
           {"bytes", analysis.file.bytes.size()}};
  Json groups = Json::array(), pieces = Json::array(), images = Json::array(),
       served = Json::array(), here = Json::array();
  for (const GroupTotal& total : totals_of(analysis.pieces))
    groups.push_back({{"group", name_of(total.group)}, {"bytes", total.bytes}});
  for (const Piece& piece : analysis.pieces)
    pieces.push_back({{"group", name_of(piece.group)},
                      {"name", piece.name},
                      {"offset", piece.offset},
                      {"bytes", piece.bytes}});
  for (const Image& image : analysis.images.images) images.push_back(image_json(image));
  for (const Served& one : served_gpus(analysis.images.images))
    served.push_back({{"arch", dotted(one.gpu->arch)},
                      {"gpus", one.gpu->names},
                      {"service", word(one.service)},
                      {"by", one.by.empty() ? Json(nullptr) : Json(one.by)},
                      {"jit_containers", one.jit_containers}});
  for (uint32_t arch : gpus) {
    Served one = service_for(analysis.images.images, arch);
    here.push_back({{"arch", dotted(arch)},
                    {"service", word(one.service)},
                    {"by", one.by.empty() ? Json(nullptr) : Json(one.by)},
                    {"jit_containers", one.jit_containers}});
  }
  out["groups"] = std::move(groups);
  out["pieces"] = std::move(pieces);
  out["containers"] = analysis.images.containers;
  out["images"] = std::move(images);
  out["gpus"] = std::move(served);
  out["here"] = std::move(here);
  auto driver = [](int number) { return number ? Json(number) : Json(nullptr); };
  out["driver"] = {{"sass", driver(analysis.floor.sass)}, {"ptx", driver(analysis.floor.ptx)}};
  out["compiler"] = analysis.release.empty() ? Json(nullptr) : Json(analysis.release);
  Json faults = analysis.images.faults;
  for (const std::string& fault : analysis.kernels.faults) faults.push_back(fault);
  out["faults"] = std::move(faults);
  return out;
}

Json kernel_json(const KernelRow& row, Demangler& demangle, uint32_t block_threads) {
  const binary::Kernel& kernel = row.resources;
  const binary::KernelAttributes& attributes = kernel.attributes;
  Json parameters = Json::array(), mix = Json::object();
  for (const binary::KernelParameter& parameter : attributes.parameters)
    parameters.push_back({{"offset", parameter.offset}, {"bytes", parameter.bytes}});
  for (size_t i = 0; i < kernel.counts.size(); ++i)
    if (kernel.counts[i])
      mix[std::string(name_of(static_cast<binary::SassClass>(i)))] = kernel.counts[i];
  uint32_t threads = row.block_threads(block_threads);
  bool known = false;
  Occupancy fits = occupancy_of(row, threads, &known);
  Json out{{"name", demangle(row.name)},
           {"symbol", row.name},
           {"arch", row.arch_text()},
           {"image", row.image},
           {"registers", kernel.registers},
           {"shared_bytes", row.user_shared_bytes()},
           {"shared_reserved_bytes", kernel.shared_reserved_bytes},
           {"stack_bytes", kernel.stack_bytes},
           {"spill_store_bytes", kernel.spill_store_bytes},
           {"spill_load_bytes", kernel.spill_load_bytes},
           {"spill_stores", kernel.spill_stores},
           {"spill_loads", kernel.spill_loads},
           {"constant_bytes", kernel.constant_bytes},
           {"parameter_bytes", attributes.parameter_bytes},
           {"parameters", std::move(parameters)},
           {"barriers", attributes.barriers},
           {"max_threads", shape_json(attributes.max_threads)},
           {"required_threads", shape_json(attributes.required_threads)},
           {"min_blocks", attributes.min_blocks ? Json(attributes.min_blocks) : Json(nullptr)},
           {"cluster", shape_json(attributes.cluster)},
           {"max_registers", attributes.max_registers},
           {"code_bytes", kernel.code_bytes},
           {"instructions", row.instructions()},
           {"mix", std::move(mix)}};
  out["occupancy"] = !known ? Json(nullptr)
                            : Json{{"block_threads", threads},
                                   {"blocks", fits.blocks},
                                   {"warps", fits.warps},
                                   {"fraction", fits.fraction},
                                   {"limiter", name_of(fits.limiter)}};
  return out;
}

void write_with_kernels(const Json& value, const Analysis& analysis, const std::string& filter,
                        uint32_t block_threads, const Sink& sink) {
  std::string head = dump(value);
  head.pop_back();
  sink(head + (value.empty() ? "\"kernels\":[" : ",\"kernels\":["));
  Demangler demangle;
  bool first = true;
  std::string pending;
  for (const KernelRow& row : analysis.kernels.rows) {
    if (!name_matches(filter, row.name, demangle(row.name))) continue;
    pending += (first ? "\n" : ",\n") + dump(kernel_json(row, demangle, block_threads));
    first = false;
    if (pending.size() > 1 << 20) {
      sink(pending);
      pending.clear();
    }
  }
  sink(pending + "]}");
}

}  // namespace kiln::inspect
