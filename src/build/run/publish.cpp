// SPDX-License-Identifier: Apache-2.0
// Under which path does a finished build appear?
#include "build/run/publish.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace kiln::build {

namespace {

constexpr size_t kContentDigits = 12;
constexpr size_t kKeptLibraries = 4;

Status prune(sys::Files& files, const Plan& plan, const fs::path& newest) {
  struct Old {
    int64_t mtime_ns;
    fs::path path;
  };
  std::vector<Old> old;
  std::string prefix = fmt::format("lib{}-", plan.name);
  for (const std::string& name : files.list(plan.build_dir)) {
    bool is_library =
        name.starts_with(prefix) && name.ends_with(".so") &&
        name.size() == prefix.size() + kContentDigits + std::string_view(".so").size();
    fs::path path = plan.build_dir / name;
    if (is_library && path != newest) old.push_back({files.state(path).mtime_ns, path});
  }
  std::sort(old.begin(), old.end(),
            [](const Old& a, const Old& b) { return a.mtime_ns > b.mtime_ns; });
  for (size_t i = kKeptLibraries - 1; i < old.size(); ++i) CHECK_OK(files.remove(old[i].path));
  return {};
}

}  // namespace

fs::path link_path(const Plan& plan) { return plan.build_dir / fmt::format("lib{}.so", plan.name); }

Result<fs::path> publish(sys::Files& files, const Plan& plan, const fs::path& linked) {
  if (plan.program) {
    fs::path path = plan.build_dir / plan.name;
    CHECK_OK(files.publish(linked, path));
    return path;
  }
  TRY(std::string content, files.read(linked));
  std::string name =
      fmt::format("lib{}-{}.so", plan.name, hash_hex(content).substr(0, kContentDigits));
  fs::path path = plan.build_dir / name;
  CHECK_OK(files.publish(linked, path));
  CHECK_OK(files.point_link(link_path(plan), name));
  CHECK_OK(prune(files, plan, path));
  return path;
}

}  // namespace kiln::build
