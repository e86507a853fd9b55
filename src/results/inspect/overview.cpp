// SPDX-License-Identifier: Apache-2.0
#include "results/inspect/overview.h"

#include <utility>

namespace kiln::results {
namespace {

std::string_view word_of(Service service) {
  return service == Service::Native ? "native" : service == Service::Jit ? "jit" : "none";
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json image_json(const ImageFacts& image) {
  Json out{{"container", image.container},
           {"kind", image.kind},
           {"arch", image.arch},
           {"offset", image.offset},
           {"compression", image.compression},
           {"packed_bytes", image.packed_bytes},
           {"unpacked_bytes", image.unpacked_bytes},
           {"debug", image.debug}};
  if (image.ptx_isa) out["ptx_isa"] = *image.ptx_isa;
  if (image.source) out["source"] = *image.source;
  return out;
}

// A GPU of this machine is named by its architecture alone.
Json service_json(const GpuService& gpu, bool with_names) {
  Json out{{"arch", gpu.arch}};
  if (with_names) out["gpus"] = gpu.names;
  out["service"] = word_of(gpu.service);
  out["by"] = or_null(gpu.by);
  out["jit_containers"] = gpu.jit_containers;
  return out;
}

}  // namespace

Json to_json(const Overview& overview) {
  const FileBytes& file = overview.file;
  Json groups = Json::array(), pieces = Json::array(), images = Json::array(), gpus = Json::array(),
       here = Json::array();
  for (const GroupBytes& total : file.groups)
    groups.push_back({{"group", name_of(total.group)}, {"bytes", total.bytes}});
  for (const Piece& piece : overview.pieces)
    pieces.push_back({{"group", name_of(piece.group)},
                      {"name", piece.name},
                      {"offset", piece.offset},
                      {"bytes", piece.bytes}});
  for (const ImageFacts& image : overview.images) images.push_back(image_json(image));
  for (const GpuService& gpu : overview.gpus) gpus.push_back(service_json(gpu, true));
  for (const GpuService& gpu : overview.here) here.push_back(service_json(gpu, false));
  const auto driver = [](int number) { return number ? Json(number) : Json(nullptr); };
  Json faults = overview.image_faults;
  for (const std::string& fault : overview.kernel_faults) faults.push_back(fault);
  return {
      {"name", file.name},
      {"path", overview.path},
      {"member", or_null(overview.member)},
      {"kind", file.kind},
      {"machine", or_null(file.machine)},
      {"bytes", file.bytes},
      {"groups", std::move(groups)},
      {"pieces", std::move(pieces)},
      {"containers", file.containers},
      {"images", std::move(images)},
      {"gpus", std::move(gpus)},
      {"here", std::move(here)},
      {"driver", {{"sass", driver(overview.driver.sass)}, {"ptx", driver(overview.driver.ptx)}}},
      {"compiler", or_null(overview.compiler)},
      {"faults", std::move(faults)}};
}

}  // namespace kiln::results
