// SPDX-License-Identifier: Apache-2.0
// How are thousands of cubins read within seconds and in little memory? By a few threads, one image
// each at a time.
#include "inspect/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>

#include "inspect/launch_bounds.h"

namespace kiln::inspect {
namespace {

using binary::ImageKind;

struct Part {
  std::vector<KernelRow> rows;
  CubinFacts facts;
  std::string fault;
  bool read = false;
};

std::string_view text_of(binary::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of the PTX that the cubin keeps (-lineinfo), or that stands next to it for the same architecture.
// PTX for another one says nothing: authors choose bounds by __CUDA_ARCH__.
void add_min_blocks(Part& part, const binary::Elf& cubin, const Image* ptx, binary::Bytes file) {
  std::map<std::string, uint32_t, std::less<>> known;
  if (const binary::ElfSection* kept = cubin.find(".nv_debug_ptx_txt")) {
    known = min_blocks_of(text_of(cubin.content(*kept)));
  } else if (ptx) {
    auto bytes = unpack(*ptx, file);
    if (bytes)
      known = min_blocks_of(text_of(*bytes));
    else
      part.fault = bytes.error().why;
  }
  if (known.empty()) return;
  for (KernelRow& row : part.rows)
    if (auto found = known.find(row.name); found != known.end())
      row.resources.attributes.min_blocks = found->second;
}

// The PTX of each container by architecture, so that a cubin finds its own.
using PtxPlaces = std::map<std::tuple<size_t, uint32_t, char>, const Image*>;

PtxPlaces ptx_places(const ImageList& images) {
  PtxPlaces out;
  for (const Image& image : images.images)
    if (image.is(ImageKind::Ptx))
      out[{image.container, image.entry.arch, image.entry.variant}] = &image;
  return out;
}

Part read_part(const Image& image, size_t index, const Image* ptx, binary::Bytes file) {
  Part part;
  auto bytes = unpack(image, file);
  if (!bytes) {
    part.fault = bytes.error().why;
    return part;
  }
  auto cubin = binary::read_cubin(*bytes);
  if (!cubin) {
    part.fault = fmt::format("{} at offset {}: {}", image.label(),
                             image.container_offset + image.entry.offset, cubin.error().why);
    return part;
  }
  part.read = true;
  part.facts = {index,
                std::string(cubin->compiler),
                std::string(cubin->compiler_options),
                cubin->has_lines,
                cubin->relocatable,
                cubin->elf.find(".nv_debug_ptx_txt") != nullptr,
                cubin->kernels.size(),
                0};
  part.rows.reserve(cubin->kernels.size());
  for (binary::Kernel& kernel : cubin->kernels) {
    KernelRow row;
    row.image = index;
    row.arch = image.entry.arch;
    row.variant = image.entry.variant;
    row.name = std::string(kernel.name);
    row.local_index = part.rows.size();
    part.facts.code_bytes += kernel.code_bytes;
    kernel.name = {};
    // Thousands of spill sites are of use to a listing alone, which reads the cubin itself.
    kernel.attributes.annotations = {};
    row.resources = std::move(kernel);
    part.rows.push_back(std::move(row));
  }
  add_min_blocks(part, cubin->elf, ptx, file);
  return part;
}

}  // namespace

uint32_t KernelRow::instructions() const {
  return std::accumulate(resources.counts.begin(), resources.counts.end(), 0u);
}

std::string KernelRow::arch_text() const {
  return fmt::format("sm_{}{}", arch, variant ? std::string(1, variant) : std::string());
}

uint32_t KernelRow::block_threads(uint32_t wanted) const {
  auto product = [](const uint32_t(&d)[3]) {
    uint64_t all = 1;
    for (uint32_t x : d) all = std::min<uint64_t>(all * std::max(x, 1u), 1u << 20);
    return d[0] ? static_cast<uint32_t>(all) : 0u;
  };
  if (uint32_t required = product(resources.attributes.required_threads)) return required;
  uint32_t most = product(resources.attributes.max_threads);
  return most ? std::min(most, wanted) : wanted;
}

KernelList read_kernels(const ImageList& images, binary::Bytes file, const ReadOptions& options) {
  std::vector<size_t> work;
  for (size_t i = 0; i < images.images.size(); ++i) {
    const Image& image = images.images[i];
    if (image.is(ImageKind::Elf) && (!options.wanted || options.wanted(image))) work.push_back(i);
  }
  std::vector<Part> parts(work.size());
  const PtxPlaces places = ptx_places(images);
  std::atomic<size_t> next = 0;
  std::mutex done;
  auto run = [&] {
    for (size_t i = next++; i < work.size(); i = next++) {
      const Image& image = images.images[work[i]];
      auto ptx = places.find({image.container, image.entry.arch, image.entry.variant});
      parts[i] = read_part(image, work[i], ptx == places.end() ? nullptr : ptx->second, file);
      if (options.on_done) {
        std::lock_guard lock(done);
        options.on_done(image);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.threads && static_cast<size_t>(i) < work.size(); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  KernelList out;
  size_t total = 0;
  for (const Part& part : parts) total += part.rows.size();
  out.rows.reserve(total);
  for (Part& part : parts) {
    std::move(part.rows.begin(), part.rows.end(), std::back_inserter(out.rows));
    part.rows = {};
    if (part.read) out.cubins.push_back(std::move(part.facts));
    if (!part.fault.empty()) out.faults.push_back(std::move(part.fault));
  }
  return out;
}

std::string compiler_release(std::string_view compiler) {
  constexpr std::string_view kWord = "release ";
  size_t at = compiler.find(kWord);
  if (at == compiler.npos) return "";
  std::string_view rest = compiler.substr(at + kWord.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

std::string newest_release(const KernelList& kernels) {
  std::string newest;
  auto key = [](const std::string& release) {
    int major = 0, minor = 0;
    std::sscanf(release.c_str(), "%d.%d", &major, &minor);
    return std::pair(major, minor);
  };
  for (const CubinFacts& cubin : kernels.cubins) {
    std::string release = compiler_release(cubin.compiler);
    if (!release.empty() && (newest.empty() || key(release) > key(newest))) newest = release;
  }
  return newest;
}

Occupancy occupancy_of(const KernelRow& row, uint32_t block_threads, bool* known) {
  const GpuLimits* gpu = limits_of(row.arch);
  *known = gpu != nullptr;
  if (!gpu) return {};
  return occupancy(*gpu, {block_threads, row.resources.registers, row.user_shared_bytes()});
}

const std::string& Demangler::operator()(const std::string& name) {
  auto found = names_.find(name);
  if (found == names_.end()) found = names_.emplace(name, binary::demangle(name)).first;
  return found->second;
}

}  // namespace kiln::inspect
