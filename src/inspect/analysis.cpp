// SPDX-License-Identifier: Apache-2.0
// In which order are the parts of a file read?
#include "inspect/analysis.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::inspect {

bool matches(const Image& image, const std::vector<std::string>& archs) {
  if (archs.empty()) return true;
  std::string label = image.label();
  std::string number = label.substr(label.find('_') + 1);
  return std::any_of(archs.begin(), archs.end(), [&](const std::string& wanted) {
    if (wanted == label || wanted == number) return true;
    // "9.0a"
    std::string dotless;
    for (char c : wanted)
      if (c != '.') dotless += c;
    return wanted.find('.') != wanted.npos && dotless == number;
  });
}

Result<Analysis> analyse(Artifact file, const AnalyseOptions& options) {
  Analysis out;
  out.file = std::move(file);
  binary::Bytes bytes = out.file.bytes;
  auto located = [&](Error error) {
    error.what = fmt::format("cannot inspect {}", out.file.name);
    if (error.fix.empty()) error.fix = kDamagedFix;
    return error;
  };
  auto images = find_images(bytes);
  if (!images) return located(std::move(images.error()));
  out.images = std::move(*images);
  if (binary::is_elf(bytes)) {
    auto elf = binary::read_elf(bytes);
    if (!elf) return located(std::move(elf.error()));
    if (elf->machine != binary::kMachineCuda) out.machine = binary::machine_name(elf->machine);
  }
  out.pieces = picture_of(bytes, out.images);
  ReadOptions read;
  read.threads = options.threads;
  size_t first = out.images.images.size();
  for (size_t i = first; i-- > 0;)
    if (out.images.images[i].is(binary::ImageKind::Elf)) first = i;
  const Image* only =
      !options.kernels && first < out.images.images.size() ? &out.images.images[first] : nullptr;
  read.wanted = [&](const Image& image) {
    return only ? &image == only : matches(image, options.archs);
  };
  if (const sys::MappedFile* mapping = out.file.unpacked ? nullptr : out.file.mapping.get()) {
    read.on_done = [mapping](const Image& image) {
      if (!image.container_bytes.empty())
        mapping->forget(
            image.container_bytes.subspan(image.entry.offset, image.entry.payload_bytes));
    };
  }
  if (options.kernels || only) out.kernels = read_kernels(out.images, bytes, read);
  out.kernels_read = options.kernels;
  out.release = newest_release(out.kernels);
  out.floor = driver_floor(out.images.images, out.release);
  return out;
}

std::vector<ImageGroup> groups_of(const std::vector<Image>& images) {
  std::vector<ImageGroup> out;
  for (const Image& image : images) {
    std::string label = image.label();
    std::string_view compression = name_of(image.entry.compression);
    auto found = std::find_if(out.begin(), out.end(), [&](const ImageGroup& group) {
      return group.label == label && group.compression == compression &&
             group.debug == image.entry.debug;
    });
    if (found == out.end())
      found = out.insert(found, {label, std::string(compression), image.entry.debug, 0, 0, 0});
    found->count += 1;
    found->packed_bytes += image.entry.packed_bytes;
    // An image that is not packed may leave the size away.
    found->unpacked_bytes += image.entry.compression == binary::Compression::None
                                 ? image.entry.packed_bytes
                                 : image.entry.unpacked_bytes;
  }
  return out;
}

std::string dotted(uint32_t arch) { return fmt::format("{}.{}", arch / 10, arch % 10); }

}  // namespace kiln::inspect
