// SPDX-License-Identifier: Apache-2.0
// Which manylinux tag do the needed versions allow?
#include "inspect/wheel_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace kiln::inspect {
namespace {

struct Policy {
  std::string_view tag, machine, glibc, glibcxx, cxxabi, gcc, zlib, atomic;
};
constexpr Policy kPolicies[] = {
#define KILN_MANYLINUX(tag, machine, glibc, glibcxx, cxxabi, gcc, zlib, atomic) \
  {tag, machine, glibc, glibcxx, cxxabi, gcc, zlib, atomic},
#include "inspect/manylinux.def"
#undef KILN_MANYLINUX
};

// PEP 600 promises these on every system with the tag.
constexpr std::string_view kPromised[] = {
    "libatomic.so.1", "libgcc_s.so.1",       "libstdc++.so.6",      "libm.so.6",
    "libanl.so.1",    "libdl.so.2",          "librt.so.1",          "libc.so.6",
    "libnsl.so.1",    "libutil.so.1",        "libpthread.so.0",     "libX11.so.6",
    "libXext.so.6",   "libXrender.so.1",     "libICE.so.6",         "libSM.so.6",
    "libGL.so.1",     "libgobject-2.0.so.0", "libgthread-2.0.so.0", "libglib-2.0.so.0",
    "libresolv.so.2", "libexpat.so.1",       "libz.so.1",           "libmvec.so.1"};

struct Need {
  std::string_view family, number, whole;  // GLIBC, 2.34, GLIBC_2.34
};

// Empty: the family is none that a policy limits.
std::string_view limit(const Policy& policy, std::string_view family) {
  if (family == "GLIBC") return policy.glibc;
  if (family == "GLIBCXX") return policy.glibcxx;
  if (family == "CXXABI") return policy.cxxabi;
  if (family == "GCC") return policy.gcc;
  if (family == "ZLIB") return policy.zlib;
  if (family == "LIBATOMIC") return policy.atomic;
  return {};
}

bool allows(const Policy& policy, const Need& need) {
  std::string_view most = limit(policy, need.family);
  if (most.empty()) return true;
  // Names without a number; each came with the glibc or GCC of some tag.
  if (need.number == "TM_1") return compare_versions(policy.glibc, "2.17") >= 0;
  if (need.number == "FLOAT128")
    return policy.machine == "x86_64" && compare_versions(policy.glibc, "2.24") >= 0;
  if (need.number == "ABI_DT_RELR") return compare_versions(policy.glibc, "2.36") >= 0;
  if (need.number.empty() || need.number[0] < '0' || need.number[0] > '9') return false;
  return compare_versions(need.number, most) <= 0;
}

void raise(std::string& floor, const Need& need, std::string_view family) {
  if (need.family != family || need.number.empty() || need.number[0] < '0' || need.number[0] > '9')
    return;
  if (floor.empty() || compare_versions(floor, need.number) < 0) floor = std::string(need.number);
}

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
  std::vector<std::string_view> left = text::split(a, '.'), right = text::split(b, '.');
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    int64_t x = i < left.size() ? text::to_int(left[i]).value_or(0) : 0;
    int64_t y = i < right.size() ? text::to_int(right[i]).value_or(0) : 0;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

SystemFloor system_floor(const std::vector<binary::NeededVersion>& versions,
                         const std::vector<std::string_view>& needed, std::string_view machine) {
  SystemFloor floor;
  std::vector<Need> needs;
  for (const binary::NeededVersion& version : versions) {
    // The loader's own versions come with the libc that is there.
    if (version.library.starts_with("ld-linux")) continue;
    size_t at = version.version.find('_');
    if (at == version.version.npos) continue;
    needs.push_back(
        {version.version.substr(0, at), version.version.substr(at + 1), version.version});
    raise(floor.glibc, needs.back(), "GLIBC");
    raise(floor.glibcxx, needs.back(), "GLIBCXX");
    raise(floor.cxxabi, needs.back(), "CXXABI");
  }
  const Policy* previous = nullptr;
  for (const Policy& policy : kPolicies) {
    if (policy.machine != machine) continue;
    if (std::all_of(needs.begin(), needs.end(),
                    [&](const Need& need) { return allows(policy, need); })) {
      floor.tag = fmt::format("{}_{}", policy.tag, machine);
      break;
    }
    previous = &policy;
  }
  if (floor.tag.empty()) floor.tag = fmt::format("linux_{}", machine);
  for (const Need& need : needs)
    if (previous && !allows(*previous, need)) floor.reasons.emplace_back(need.whole);
  for (std::string_view library : needed)
    if (std::find(std::begin(kPromised), std::end(kPromised), library) == std::end(kPromised) &&
        !library.starts_with("ld-linux"))
      floor.outside.emplace_back(library);
  return floor;
}

}  // namespace kiln::inspect
