// SPDX-License-Identifier: Apache-2.0
#include "inspect/facts.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "inspect/code.h"

namespace kiln::inspect {
namespace {

results::ImageFacts image_of(const Image& image) {
  const binary::FatbinEntry& entry = image.entry;
  results::ImageFacts out;
  out.container = image.container;
  out.kind = image.is(binary::ImageKind::Elf)     ? "sass"
             : image.is(binary::ImageKind::Ptx)   ? "ptx"
             : image.is(binary::ImageKind::LtoIr) ? "lto"
                                                  : "unknown";
  out.arch = image.label();
  out.offset = image.container_offset + entry.offset;
  out.compression = name_of(entry.compression);
  out.packed_bytes = entry.packed_bytes;
  out.unpacked_bytes =
      entry.compression == binary::Compression::None ? entry.packed_bytes : entry.unpacked_bytes;
  out.debug = entry.debug;
  if (image.is(binary::ImageKind::Ptx) && entry.version_major)
    out.ptx_isa = fmt::format("{}.{}", entry.version_major, entry.version_minor);
  if (!entry.identifier.empty()) out.source = entry.identifier;
  return out;
}

results::GpuService service_of(uint32_t arch, std::string_view names, const Served& served) {
  return {dotted(arch), std::string(names), served.service, served.by, served.jit_containers};
}

results::Shape shape_of(const uint32_t (&d)[3]) { return {d[0], d[1], d[2]}; }

}  // namespace

results::FileBytes file_bytes_of(const Analysis& analysis) {
  results::FileBytes out;
  out.name = analysis.file.name;
  out.kind = name_of(analysis.file.kind);
  out.machine = analysis.machine;
  out.bytes = analysis.file.bytes.size();
  out.groups = totals_of(analysis.pieces);
  out.containers = analysis.images.containers;
  for (const ImageGroup& group : groups_of(analysis.images.images))
    out.images.push_back({group.label, group.compression, group.count, group.packed_bytes,
                          group.unpacked_bytes, group.debug});
  return out;
}

results::Overview overview_of(const Analysis& analysis, const std::vector<uint32_t>& gpus) {
  results::Overview out;
  out.file = file_bytes_of(analysis);
  out.path = analysis.file.path.string();
  out.member = analysis.file.member;
  out.pieces = analysis.pieces;
  const std::vector<Image>& images = analysis.images.images;
  for (const Image& image : images) out.images.push_back(image_of(image));
  for (const Served& served : served_gpus(images))
    out.gpus.push_back(service_of(served.gpu->arch, served.gpu->names, served));
  for (const uint32_t arch : gpus)
    out.here.push_back(service_of(arch, "", service_for(images, arch)));
  out.driver = analysis.floor;
  out.compiler = analysis.release;
  out.image_faults = analysis.images.faults;
  out.kernel_faults = analysis.kernels.faults;
  return out;
}

results::KernelFacts kernel_of(const KernelRow& row, Demangler& demangle, uint32_t block_threads) {
  const binary::Kernel& kernel = row.resources;
  const binary::KernelAttributes& attributes = kernel.attributes;
  results::KernelFacts out;
  out.name = demangle(row.name);
  out.symbol = row.name;
  out.arch = row.arch_text();
  out.image = row.image;
  out.registers = kernel.registers;
  out.shared_bytes = row.user_shared_bytes();
  out.reserved_shared_bytes = kernel.shared_reserved_bytes;
  out.stack_bytes = kernel.stack_bytes;
  out.spill_store_bytes = kernel.spill_store_bytes;
  out.spill_load_bytes = kernel.spill_load_bytes;
  out.spill_stores = kernel.spill_stores;
  out.spill_loads = kernel.spill_loads;
  out.constant_bytes = kernel.constant_bytes;
  out.parameter_bytes = attributes.parameter_bytes;
  for (const binary::KernelParameter& parameter : attributes.parameters)
    out.parameters.push_back({parameter.offset, parameter.bytes});
  out.barriers = attributes.barriers;
  out.max_threads = shape_of(attributes.max_threads);
  out.required_threads = shape_of(attributes.required_threads);
  out.cluster = shape_of(attributes.cluster);
  out.min_blocks = attributes.min_blocks;
  out.max_registers = attributes.max_registers;
  out.code_bytes = kernel.code_bytes;
  out.instructions = row.instructions();
  for (size_t i = 0; i < kernel.counts.size(); ++i)
    if (kernel.counts[i])
      out.mix.emplace_back(name_of(static_cast<binary::SassClass>(i)), kernel.counts[i]);
  const uint32_t threads = row.block_threads(block_threads);
  bool known = false;
  const Occupancy fits = occupancy_of(row, threads, &known);
  if (known)
    out.fit = {fits.blocks, threads, fits.fraction, std::string(name_of(fits.limiter)), fits.warps};
  return out;
}

std::vector<results::KernelFacts> kernels_of(const Analysis& analysis, const std::string& filter,
                                             uint32_t block_threads) {
  std::vector<results::KernelFacts> out;
  Demangler demangle;
  for (const KernelRow& row : analysis.kernels.rows)
    if (name_matches(filter, row.name, demangle(row.name)))
      out.push_back(kernel_of(row, demangle, block_threads));
  return out;
}

results::Symbols symbols_of(SymbolView view) {
  results::Symbols out;
  out.soname = std::move(view.soname);
  out.rpath = std::move(view.rpath);
  out.runpath = std::move(view.runpath);
  out.interpreter = std::move(view.interpreter);
  out.origin = std::move(view.origin);
  out.torch = std::move(view.torch.version);
  out.defined = std::move(view.defined);
  out.needed = std::move(view.needed);
  out.dynamic = std::move(view.dynamic);
  out.all = std::move(view.all);
  out.floor = std::move(view.floor);
  out.advice = std::move(view.advice);
  for (LoadedLibrary& library : view.libraries)
    out.libraries.push_back({std::move(library.name), library.path.string(), std::move(library.how),
                             std::move(library.member), library.by_loader, library.parent,
                             std::move(library.children)});
  return out;
}

results::Inspection inspection_of(PageInput input) {
  results::Inspection out;
  out.overview = overview_of(input.analysis, input.gpus);
  out.code = std::move(input.code);
  std::map<std::pair<size_t, std::string>, int> listing_of;
  int listings = 0;
  for (const results::CodeImage& image : out.code.images)
    for (const results::Listing& listing : image.listing.kernels)
      listing_of[{image.image, listing.symbol}] = listings++;
  out.kernels = kernels_of(input.analysis, "", input.block_threads);
  for (results::KernelFacts& kernel : out.kernels)
    if (const auto found = listing_of.find({kernel.image, kernel.symbol});
        found != listing_of.end())
      kernel.listing = found->second;
  if (input.symbols) out.symbols = symbols_of(std::move(*input.symbols));
  return out;
}

}  // namespace kiln::inspect
