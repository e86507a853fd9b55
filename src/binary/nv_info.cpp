// SPDX-License-Identifier: Apache-2.0
// How are the records of .nv.info told apart? By a byte of form: 1 no value, 2 a byte, 3 two bytes,
// 4 a payload.
#include "binary/nv_info.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::binary {
namespace {

constexpr uint8_t kFormNone = 1, kFormByte = 2, kFormPayload = 4;

Error damaged_info(uint64_t offset, std::string why) {
  return Error{Fault::Work, "cannot read .nv.info of a cubin",
               fmt::format("at offset {} of it: {}", offset, why), ""};
}

void read_three(Bytes payload, uint32_t (&out)[3]) {
  for (size_t i = 0; i < 3; ++i) out[i] = read_at<uint32_t>(payload, i * 4).value_or(out[i]);
}

void read_annotations(Bytes payload, std::vector<Annotation>& out) {
  for (uint64_t at = 0; at + 8 <= payload.size(); at += 8)
    out.push_back({*read_at<uint32_t>(payload, at + 4), *read_at<uint32_t>(payload, at)});
}

}  // namespace

Result<std::vector<NvRecord>> read_nv_info(Bytes section) {
  std::vector<NvRecord> out;
  uint64_t at = 0;
  while (at + 4 <= section.size()) {
    NvRecord record;
    uint8_t form = *read_at<uint8_t>(section, at);
    record.attribute = static_cast<NvAttribute>(*read_at<uint8_t>(section, at + 1));
    record.offset = at;
    record.value = *read_at<uint16_t>(section, at + 2);
    if (form < kFormNone || form > kFormPayload)
      return damaged_info(at, fmt::format("a record of unknown form {}", form));
    at += 4;
    if (form == kFormPayload) {
      auto payload = slice(section, at, record.value);
      if (!payload) {
        return damaged_info(record.offset, fmt::format("a record claims {} bytes, but {} are left",
                                                       record.value, section.size() - at));
      }
      record.payload = *payload;
      at += (record.value + 3u) & ~3u;
    }
    if (form == kFormByte) record.value &= 0xff;
    out.push_back(record);
  }
  return out;
}

Result<KernelAttributes> read_kernel_attributes(Bytes section) {
  TRY(auto records, read_nv_info(section));
  KernelAttributes out;
  for (const NvRecord& record : records) {
    switch (record.attribute) {
      case NvAttribute::MaxThreads:
        read_three(record.payload, out.max_threads);
        break;
      case NvAttribute::RequiredThreads:
        read_three(record.payload, out.required_threads);
        break;
      case NvAttribute::BlocksPerCluster:
        read_three(record.payload, out.cluster);
        break;
      case NvAttribute::MaxClusterRank:
        out.max_cluster_rank = read_at<uint32_t>(record.payload, 0).value_or(0);
        break;
      case NvAttribute::ParameterBytes:
        out.parameter_bytes = record.value;
        break;
      case NvAttribute::MaxRegisters:
        out.max_registers = record.value;
        break;
      case NvAttribute::BarrierCount:
        out.barriers = record.value;
        break;
      case NvAttribute::KernelParameter:
        if (record.payload.size() >= 12)
          out.parameters.push_back({*read_at<uint16_t>(record.payload, 4),
                                    *read_at<uint16_t>(record.payload, 6),
                                    *read_at<uint32_t>(record.payload, 8) >> 18});
        break;
      case NvAttribute::Annotations:
        read_annotations(record.payload, out.annotations);
        break;
      default:
        break;
    }
  }
  std::sort(
      out.parameters.begin(), out.parameters.end(),
      [](const KernelParameter& a, const KernelParameter& b) { return a.ordinal < b.ordinal; });
  return out;
}

Result<std::vector<SymbolAttributes>> read_symbol_attributes(Bytes section, uint64_t symbol_count) {
  TRY(auto records, read_nv_info(section));
  std::vector<SymbolAttributes> out;
  for (const NvRecord& record : records) {
    auto symbol = read_at<uint32_t>(record.payload, 0),
         value = read_at<uint32_t>(record.payload, 4);
    if (!symbol || !value || *symbol >= symbol_count) continue;
    if (out.size() <= *symbol) out.resize(*symbol + 1u);
    SymbolAttributes& attributes = out[*symbol];
    if (record.attribute == NvAttribute::RegisterCount) attributes.registers = *value;
    if (record.attribute == NvAttribute::FrameBytes) attributes.frame_bytes = *value;
    if (record.attribute == NvAttribute::MinStackBytes) attributes.min_stack_bytes = *value;
    if (record.attribute == NvAttribute::MaxStackBytes) attributes.max_stack_bytes = *value;
  }
  return out;
}

}  // namespace kiln::binary
