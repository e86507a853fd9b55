// SPDX-License-Identifier: Apache-2.0
#include "results/profile.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, ProfileKernel& kernel) {
  field("name", kernel.name);
  field("us", kernel.us);
  field("grid", kernel.grid);
  field("block", kernel.block);
  field("registers", kernel.registers);
  field("shared_bytes", kernel.shared_bytes);
  field("occupancy", kernel.occupancy);
  field("stream", kernel.stream);
  field("bytes", kernel.bytes);
}

template <class Fields>
static void describe(Fields& field, ProfileNode& node) {
  field("name", node.name);
  field("shapes", node.shapes);
  field("begin_us", node.begin_us);
  field("cpu_us", node.cpu_us);
  field("cpu_self_us", node.cpu_self_us);
  field("gpu_self_us", node.gpu_self_us);
  field("gpu_us", node.gpu_us);
  field("kernels", node.kernels);
  field("children", node.children);
}

template <class Fields>
static void describe(Fields& field, ProfileSpan& span) {
  field("kind", span.kind);
  field("name", span.name);
  field("begin_us", span.begin_us);
  field("us", span.us);
  field("lane", span.lane);
}

template <class Fields>
static void describe(Fields& field, Profile& profile) {
  field("title", profile.title);
  field("time", profile.time);
  field("wall_us", profile.wall_us);
  field("gpu_us", profile.gpu_us);
  field("gpu_idle", profile.gpu_idle);
  field("verdict", profile.verdict);
  field("tree", profile.tree);
  field("timeline", profile.timeline);
  field("kernel_count", profile.kernel_count);
}

Json to_json(const Profile& profile) { return write(profile); }

Result<Profile> read_profile(const Json& json, std::string_view source) {
  return read<Profile>(json, source);
}

}  // namespace kiln::results
